// ElementIndex lists the names of a table or hash that were ever set, spread over shards, so that fetch knows
// which keys to read. ElementIndexes are those of all copies. The contract is at the end of this file.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/errors.hpp"
#include "common/journal/journal.hpp"
#include "common/replication/replicas.hpp"
#include "common/structures/elements/element.hpp"

namespace mcds {

std::uint64_t digest_of_name(std::string_view name);

class ElementIndex {
 private:
  struct Roots;

 public:
  // Lines younger than this are never dropped.
  static constexpr auto grace = std::chrono::seconds(60);

  // The maximum time between a name's line and its element. A client that takes longer lists the name again,
  // because until the element exists, compaction drops an old line, and a fetch does not restore a lost one.
  static constexpr auto max_unlisted = std::chrono::seconds(2);
  static constexpr auto settles_after = max_unlisted + std::chrono::milliseconds(200);

  // Returns which of these names are elements now. An element whose state is unknown counts as present.
  using Present = std::function<std::vector<bool>(std::span<const std::string> names)>;

  // If `beside_copies` is set, a name counts as listed even if its new shard could not be named in the
  // manifest.
  ElementIndex(const Context& context, std::string base, Present present, bool beside_copies,
               const Journal::Options& options = Journal::Options())
      : context_(context),
        base_(std::move(base)),
        present_(std::move(present)),
        beside_copies_(beside_copies),
        options_(options) {
    options_.compares = beside_copies;
  }

  // The state of names that are being listed.
  struct Listing {
    std::vector<std::optional<Failure>> failures;  // nullopt: listed
    std::map<std::size_t, std::string> created;    // shards to be named, and their incarnations
    std::set<std::size_t> there;                   // shards that existed before
    std::set<std::size_t> full;
    std::vector<std::size_t> shards;  // of each name
    bool began = false;               // there was no manifest

    void note(std::size_t shard, const Journal::Appended& appended);
  };
  // Names of one shard that are listed by one change. In several copies the lines are the same.
  struct Share {
    std::size_t shard = 0;
    std::string operation = {};
    std::vector<std::size_t> places = {};  // indices in list()'s names
    std::string lines = {};                // as stored
    std::string birth = {};
  };
  std::vector<Share> shares_of(std::span<const std::string* const> names) const;
  // begin_list() and finish_list() list names; take_marks() then returns requests for the shards that this
  // created. In between, several copies exchange what they had. With `lossy`, a shard that is created is
  // marked as incomplete (journal.hpp). `there` has, for each new shard that another copy had, the contents
  // of that copy: ours was lost, or another client is creating both just now. Ours gets the same lines, or is
  // marked as incomplete.
  struct There {
    bool whole = false;                   // a copy that has lost nothing has it
    std::vector<JournalLine> lines = {};  // those that list names
    std::vector<std::string> names = {};  // the names that they list
    bool just_now = true;                 // all were listed in the last seconds
  };
  Listing begin_list(std::span<const Share> shares, bool lossy = false);
  // attempts_at() and take_appended() are the two steps of begin_list() for existing shards. In between, the
  // appends may be sent with any other requests, each to the server of its key's copy.
  using Attempts = std::vector<Journal::Attempt>;
  Attempts attempts_at(std::span<const Share> shares, bool lossy = false) const;
  static Request append_of(const Journal::Attempt& attempt) {
    return Request::append(attempt.request.key, attempt.request.value);
  }
  Listing take_appended(std::span<const Share> shares, const Attempts& attempts, std::vector<Reply> replies);
  void finish_list(Listing& listing, const std::map<std::size_t, There>& there);
  There what_is_there(std::size_t shard) const;

  // Creates shards that other copies have, without names, and marks them as incomplete until accept().
  void create(const std::set<std::size_t>& shards);

  // Sets whether the next shards and the manifest are created before they are appended to, because they are
  // likely to be missing. That saves a trip each.
  void expect_new(bool is_new) { options_.seems_missing = is_new; }

  // Returns the requests that mark shards as named by the manifest. Send them with the next requests. Nothing
  // depends on their replies.
  std::vector<Request> take_marks() { return std::exchange(marks_, {}); }

  // The index as of one moment, read shard by shard, so that one shard is in memory at a time.
  class Look {
   public:
    enum class Shard {
      whole,
      absent,  // according to the manifest, it was never created
      lost,    // it was created, and a part of it is lost
      unreachable,
    };
    Look(Look&&) noexcept;
    ~Look();
    Shard state(std::size_t shard) const { return states_[shard]; }
    // Returns why the manifest could not be read, or nullopt.
    const std::optional<Failure>& manifest_failure() const;
    // Returns true if the manifest exists and names all existing shards.
    bool manifest_whole() const { return manifest_whole_; }
    // Returns true if a client has recorded a loss. It alone is no loss: a shard may have come back since.
    bool loss_recorded() const;
    // Returns false if there is no manifest, a shard could not be read, or one that seems lost may only not
    // be named yet.
    bool certain() const;
    // Compares several copies: a shard that one copy's manifest names and another copy has is not lost. After
    // a move to other servers, each key's copies may be in an order of their own.
    static void reconcile(std::span<Look> copies);
    // Returns the distinct names of a shard; state() may report a loss afterwards. Throws NotApplied,
    // CorruptData.
    std::vector<std::string> take(std::size_t shard);
    // Counts the names that the shards taken list, repeated ones included; `old`: listed before the grace.
    struct Names {
      std::size_t listed = 0;
      std::size_t old = 0;
    };
    const Names& names(std::size_t shard) const { return names_[shard]; }
    std::size_t lines() const { return lines_; }
    std::size_t shards() const { return shards_; }

   private:
    friend class ElementIndex;
    Look(std::unique_ptr<Roots> roots, std::int64_t now);
    void set_states();
    std::unique_ptr<Roots> roots_;
    std::array<Shard, index_shards> states_{};
    bool manifest_whole_ = true;
    std::int64_t now_;
    std::array<Names, index_shards> names_{};
    std::size_t lines_ = 0;
    std::size_t shards_ = 0;
  };
  // Reads the roots. Throws their servers' failures, or with `despite_failures` marks their shards as
  // unreachable.
  Look look(bool despite_failures = false) const;

  // Drops the names in a shard that are not elements, if they are half of all: those listed long ago, and
  // those in `removed` whose only line is settled. Skips a shard with more than `max_segments` segments or
  // with a loss. Throws Contention.
  void compact(std::size_t shard, std::size_t max_segments, RemovedNames* removed = nullptr) const;
  // Returns true if compacting a shard may be worthwhile, judged by a sample of the names that were listed
  // long ago. Takes two trips, and more if the shard has segments. A shard that only grows is not compacted.
  bool may_be_half_dead(std::size_t shard) const;
  // Declares the index complete as it is, except for parts with lines in an unknown form. Returns false if
  // there is none.
  bool accept();

  // Records a loss in the manifest, if there is one, so that clients that set several elements list them
  // again although they exist. With `lost` false, records that there is none.
  void record_loss(bool lost) const;

  // Records in the manifest that these shards are being removed, or with `dropped` false that they stay.
  void say_dropped(const std::vector<std::string>& entries, bool dropped) const;
  Journal journal(const std::string& key) const { return Journal(context_, key, options_); }

  // Removes parts that list only these names, by compare-and-delete, the manifest last. False: a part is
  // left.
  bool take_back(const std::set<std::string>& names) const;

  std::vector<std::string> keys() const;
  std::string manifest_key() const { return base_ + ":i"; }
  std::string shard_key(std::size_t shard) const { return base_ + ":i:" + std::to_string(shard); }

 private:
  std::unique_ptr<Roots> roots(bool despite_failures) const;
  Journal journal_of(const Share& share, bool lossy) const;
  Listing take(std::span<const Share> shares, const Attempts& attempts, std::vector<Reply> replies,
               bool lossy);
  void list_in_pieces(const Share& share, bool lossy, Listing& listing) const;
  bool restore(std::size_t shard, const There& there) const;
  void mark_lossy(std::size_t shard) const;
  bool name_in_manifest(const std::map<std::size_t, std::string>& incarnations) const;
  Request mark(std::size_t shard, const std::string& incarnation) const;
  void name_new(Roots& roots) const;
  std::string line_operation() const;
  std::vector<JournalLine> still_needed(const std::vector<JournalLine>& lines,
                                        RemovedNames* removed = nullptr) const;

  Context context_;
  std::string base_;
  Present present_;
  bool beside_copies_;
  Journal::Options options_;
  std::vector<Request> marks_;
};

// The indexes of all copies of a table or hash. Lists names in all of them at once.
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

// Key layout (base: `<namespace>table:<name>` or `<namespace>hash:<name>`)
//   <base>:i:<shard>     a journal of `+ <time and random>.<n> <name> *<checksum>` lines; shard = crc32(name)
//                        % 16. The first 8 hex digits of a line's id are its writer's UNIX seconds. With
//                        several copies, `+ <id> <name>`, tab, `<name>` …: all names of one change, so that
//                        the item that each change copies grows less; also read with a single copy. A new
//                        shard begins with `- <id> born *<checksum>`; once the manifest names it, `- <id>
//                        named:<incarnation> *<checksum>` follows.
//   <base>:i             the manifest: a journal of `+ … <shard>:<incarnation> …` lines, one per shard ever
//                        created; `- … <shard>:<incarnation> …` if drop is removing it or has removed it;
//                        `+ … lost …` if a fetch found that a part of the index was lost, `- … lost …` if
//                        a later one found everything
//   E.g. table:blocked:i:9 = J1 …            table:blocked:i = J1 …
//                            + 6920f3d5b7c1e0f2.0 "10.1.2.3" *0b2f1c9e      + 6920f3d5….0 9:5be1d27348a0c6f1
//                                                                           *77d0a3c1
// Invariants
//   Every name whose list() returned is found by every later look(), unless the index lost data; then the
//   state of a shard reports it. The manifest names each shard with its incarnation, so the loss of a shard
//   is detected even after it was created again. Names in the index may be repeated, and may be absent as
//   elements. Compaction keeps every line younger than the grace, so that the lines of a name show how many
//   clients may be about to write it; of older lines of one name the youngest stays. Who has removed many
//   names drops younger lines, too: the only one of a name, if its writer has had time to add the element. A
//   shard that has `named` and is not in the manifest shows that the manifest was lost. A shard that has only
//   `born` is new, and the next look names it.
// Round trips
//   list 1 (1 more if it creates a shard, 3 more if it finds one full); look 1, with segments 1 more per
//   shard; 3 more if it finds shards that are not named or lost. Recording a loss takes 1, once.
// When things fail
//   crash          between creating a shard and naming it: the next look names it, also after a failed
//                  request. If the shard is lost before that look, or the manifest before `named` was
//                  written, the loss is not detected.
//   lost reply     of a name's append: its line's id is looked up; if the outcome stays unknown, NotApplied,
//                  because a listed name is not yet an element.
//   eviction, restart, flush   complete: false. If all of it is lost at once, the index looks as if it had
//                              never existed.
//   skew           compaction compares the age of a line across clocks, which may differ by half the grace.
