// ElementIndexes holds the indexes of all copies of a table or hash and lists names in all of them at once.
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
  // Returns true if none of these elements is in one copy and not in another.
  using Alike = std::function<bool(std::span<const std::string> names)>;
  // The context and the copies must outlive it. With `several`, the other copies make up for an unreadable
  // one.
  ElementIndexes(const Context& context, const Replicas& copies, bool several, const std::string& base,
                 const ElementIndex::Present& present, Alike alike, const Journal::Options& options);

  ElementIndex& operator[](std::size_t copy) const { return *indexes_[copy]; }

  struct Listed {
    // Per name and copy, nullopt: listed. An empty inner vector means listed in all copies.
    std::vector<std::vector<std::optional<Failure>>> failures;
    bool began = false;  // this call created an index
  };
  Listed list(std::span<const std::string* const> names);
  // Says that the structure was just found missing, or not.
  void expect_new(bool is_new) const {
    for (const auto& index : indexes_) index->expect_new(is_new);
  }
  // begin_list() and finish_list() are the two steps of list().
  struct Listing {
    std::vector<ElementIndex::Share> shares;
    std::vector<ElementIndex::Attempts> attempts;  // per copy
    std::unique_ptr<Pending> replies;
  };
  Listing begin_list(std::span<const std::string* const> names) const;
  Listed finish_list(Listing begun);
  // The requests that show whether parts of the index are lost, to be sent with other requests: in each copy,
  // whether the manifest and the shards of these names exist.
  struct Probe {
    std::vector<std::size_t> shards;
    std::vector<Request> requests;
  };
  Probe probe(std::span<const std::string* const> names) const;
  // Returns true if every copy that answered has lost something. `shards` list elements that exist.
  bool is_damaged(const Probe& probe, std::span<const Reply> replies,
                  const std::set<std::size_t>& shards) const;
  // Returns true if this client has just created each of these shards in every copy.
  bool created_just_now(std::span<const ElementIndex::Share> shares) const;

  // Returns one Look per copy. With `partial`, succeeds even if one cannot be read.
  std::vector<ElementIndex::Look> look(bool partial) const;

 private:
  using OfCopies = PerCopyResults<ElementIndex::Listing>;
  Listed complete(OfCopies listings, std::size_t names);
  std::map<std::size_t, ElementIndex::There> shards_there(const OfCopies& listings) const;
  bool is_being_created(const ElementIndex::There& there) const;
  void note_created(const OfCopies& listings);

  const Context& context_;
  const Replicas& copies_;
  bool several_;
  Alike alike_;
  std::vector<std::unique_ptr<ElementIndex>> indexes_;             // per copy
  std::array<std::optional<SteadyTime>, index_shards> created_{};  // when we created it in every copy
};

}  // namespace mcds
