// The indexes of all copies of a table or hash, in which names are listed at once.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/replication/replicas.hpp"
#include "common/structures/elements/index.hpp"

namespace mcds {

class ElementIndexes {
 public:
  // Whether none of these elements is in one copy and not in another.
  using Alike = std::function<bool(std::span<const std::string> names)>;
  // Context and copies outlive it. `several`: one that cannot be read is made up for by the others.
  ElementIndexes(const Context& context, const Replicas& copies, bool several, const std::string& base,
                 const ElementIndex::Present& present, Alike alike, const Journal::Options& options);

  ElementIndex& operator[](std::size_t copy) const { return *indexes_[copy]; }

  struct Listed {
    // Per name, of each copy: none, listed. Empty: listed in all.
    std::vector<std::vector<std::optional<Failure>>> failures;
    bool began = false;  // it created an index
  };
  Listed list(std::span<const std::string* const> names);
  // list in two steps.
  struct Listing {
    std::vector<ElementIndex::Share> shares;
    std::vector<ElementIndex::Attempts> attempts;  // per copy
    std::unique_ptr<Pending> replies;
  };
  Listing begin_list(std::span<const std::string* const> names) const;
  Listed finish_list(Listing begun);
  // What tells whether parts of the index are lost, to be sent with anything else: the manifest, and whether
  // the shards of these names are there; of each copy.
  struct Probe {
    std::vector<std::size_t> shards;
    std::vector<Request> requests;
  };
  Probe probe(std::span<const std::string* const> names) const;
  // Whether every copy that answered has lost something. `shards`: those that list elements that are there.
  bool is_damaged(const Probe& probe, std::span<const Reply> replies,
                  const std::set<std::size_t>& shards) const;
  // Whether we created these shards, each in every copy.
  bool created_just_now(std::span<const ElementIndex::Share> shares) const;

  // Of each copy. `partial`: although one cannot be read.
  std::vector<ElementIndex::Look> look(bool partial) const;

 private:
  using OfCopies = EachResult<ElementIndex::Listing>;
  Listed complete(OfCopies listings, std::size_t names);
  std::map<std::size_t, ElementIndex::There> shards_there(const OfCopies& listings) const;
  bool is_being_created(const ElementIndex::There& there) const;
  void note_created(const OfCopies& listings);

  const Context& context_;
  const Replicas& copies_;
  bool several_;
  Alike alike_;
  std::vector<std::unique_ptr<ElementIndex>> indexes_;             // per copy
  std::array<std::optional<SteadyTime>, index_shards> created_{};  // when we did, in every copy
};

}  // namespace mcds
