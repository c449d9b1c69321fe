// Where to look for the elements of a table or hash: the names that were ever set, spread over shards. Its
// contract stands at the end of this file.
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
#include "common/primitives/context.hpp"
#include "common/structures/elements/element.hpp"

namespace mcds {

// Names that their client has found present, and has removed itself: digests, sorted.
using RemovedNames = std::span<const std::uint64_t>;
std::uint64_t digest_of_name(std::string_view name);

class ElementIndex {
 private:
  struct Roots;

 public:
  // Lines younger than this are never dropped.
  static constexpr auto grace = std::chrono::seconds(60);

  // From a line to its element; who takes longer lists it again. Meanwhile the line is about nothing:
  // compaction drops it when it is old, and a fetch that heals copies does not restore it where it was lost.
  static constexpr auto most_unlisted = std::chrono::seconds(2);

  // Which of these names are elements now; what is not known counts as present.
  using Present = std::function<std::vector<bool>(std::span<const std::string> names)>;

  // `beside_copies`: a name counts as listed although its new shard could not be named in the manifest.
  ElementIndex(const Context& context, std::string base, Present present, bool beside_copies,
               const Journal::Options& options = Journal::Options())
      : context_(context),
        base_(std::move(base)),
        present_(std::move(present)),
        beside_copies_(beside_copies),
        options_(options) {
    options_.compares = beside_copies;
  }

  // Names that are being listed.
  struct Listing {
    std::vector<std::optional<Failure>> failures;  // none: listed
    std::map<std::size_t, std::string> created;    // shards that are to be named, and their incarnations
    std::set<std::size_t> there;                   // that were there before
    std::set<std::size_t> full;
    std::vector<std::size_t> shards;  // of each name
    bool began = false;               // there was no manifest

    void note(std::size_t shard, const Journal::Appended& appended);
  };
  // Whether each name is listed: no failure. take_marks() then has something for the shards that it created.
  std::vector<std::optional<Failure>> list(std::span<const std::string* const> names);
  // Names of one shard that are being listed: at most what one change holds. Of one listing in several copies
  // the lines are the same.
  struct Share {
    std::size_t shard = 0;
    std::string operation = {};
    std::vector<std::size_t> places = {};  // in list()'s names
    std::string lines = {};                // as they are stored
    std::string birth = {};
  };
  std::vector<Share> shares_of(std::span<const std::string* const> names) const;
  // `lossy`: what is created is incomplete (journal.hpp).
  // list in two steps, between which several copies exchange what they had. `there`: shards that another
  // copy had, and what is in them: ours were lost, or another client is creating all just now. Ours get what
  // they have, or say that they lack something.
  struct There {
    bool whole = false;                   // one copy has lost nothing
    std::vector<JournalLine> lines = {};  // that list something
    std::vector<std::string> names = {};  // what they list
    bool just_now = true;                 // they were all listed in the last seconds
  };
  Listing begin_list(std::span<const Share> shares, bool lossy = false);
  // begin_list in two steps, for shards that are there: what is sent in between may be sent with anything
  // else, each to the server of its key's copy.
  using Attempts = std::vector<Journal::Attempt>;
  Attempts attempts_at(std::span<const Share> shares, bool lossy = false) const;
  static Request append_of(const Journal::Attempt& attempt) {
    return Request::append(attempt.request.key, attempt.request.value);
  }
  Listing take_appended(std::span<const Share> shares, const Attempts& attempts, std::vector<Reply> replies);
  void finish_list(Listing& listing, const std::map<std::size_t, There>& there);
  There what_is_there(std::size_t shard) const;

  // Shards that other copies have, without names; what is there stays. Like all that is created beside
  // others, they say that they are incomplete until that is accepted.
  void create(const std::set<std::size_t>& shards);

  // What shards are to say now that the manifest names them; to be sent with whatever is sent next. Nothing
  // depends on the replies.
  std::vector<Request> take_marks() { return std::exchange(marks_, {}); }

  // The index at one moment, to be read shard by shard: one shard is in memory at a time.
  class Look {
   public:
    enum class Shard {
      whole,
      absent,  // it was never created, according to the manifest
      lost,    // it was created, and something of it is gone
      unreachable,
    };
    Look(Look&&) noexcept;
    ~Look();
    Shard state(std::size_t shard) const { return states_[shard]; }
    // Why the manifest could not be read, if so.
    const std::optional<Failure>& manifest_failure() const;
    // The manifest is there and names all shards there are.
    bool manifest_whole() const { return manifest_whole_; }
    // Of several copies: what the manifest of one says of another's shard is no loss. After a move to other
    // servers the copies of a key may be in another order, each key's in its own.
    static void reconcile(std::span<Look> copies);
    // The names of a shard, each once; state() may then know of a loss. Throws NotApplied, CorruptData.
    std::vector<std::string> take(std::size_t shard);
    // Of the shards taken: names that they list, the repeated ones too, and how many of them long enough ago.
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
  // Throws what the roots' servers fail with, unless `despite_failures`: then their shards are unreachable.
  Look look(bool despite_failures = false) const;

  // Drops the names in a shard that are no elements, if they are half of all: those listed long ago, and
  // those in `removed` that no other line lists. Leaves a shard of more than `most_segments`, and one that
  // has lost something. Throws Contention.
  void compact(std::size_t shard, std::size_t most_segments, RemovedNames removed = {}) const;
  // Returns whether compacting a shard may pay, judged by a sample of the names that were listed long ago.
  // Two trips, and those of its segments. A shard that only grows is not rewritten.
  bool may_be_half_dead(std::size_t shard) const;
  // Declares the index complete as it is. False: there is none.
  bool accept();

  // Says in the manifest that these shards are being removed, which is no loss, or stay after all.
  void say_dropped(const std::vector<std::string>& entries, bool dropped) const;
  Journal journal(const std::string& key) const { return Journal(context_, key, options_); }

  // Removes what lists nothing but these, each part by compare-and-delete, the manifest last. False:
  // something is left.
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
  std::vector<JournalLine> still_needed(const std::vector<JournalLine>& lines, RemovedNames removed) const;

  Context context_;
  std::string base_;
  Present present_;
  bool beside_copies_;
  Journal::Options options_;
  std::vector<Request> marks_;
};

}  // namespace mcds

// Key layout (base: `<namespace>table:<name>` or `<namespace>hash:<name>`)
//   <base>:i:<shard>     a journal of `+ <time and chance>.<n> <name> *<checksum>` lines; shard = crc32(name)
//                        % 16. The first 8 hex digits of a line's id are its writer's UNIX seconds.
//                        Of several copies, `+ <id> <name>`, tab, `<name>` …: all names of one change, so
//                        that the item that each change copies grows less; read of an only copy, too.
//                        A new shard begins with `- <id> born *<checksum>`; once the manifest lists it,
//                        `- <id> named:<incarnation> *<checksum>` follows.
//   <base>:i             the manifest: a journal of `+ … <shard>:<incarnation> …` lines, one per shard ever
//                        created; `- … <shard>:<incarnation> …`: drop is removing it, or has
//   E.g. table:blocked:i:9 = J1 …            table:blocked:i = J1 …
//                            + 6920f3d5b7c1e0f2.0 "10.1.2.3" *0b2f1c9e      + 6920f3d5….0 9:5be1d27348a0c6f1
//                                                                           *77d0a3c1
// Invariants
//   Every name whose list() returned is found by every later look(), unless the index lost data; then the
//   state of a shard reports it. The loss of a shard is detected by the manifest, which lists it with its
//   incarnation, even after the shard was created again. Names in the index may be absent as elements, and
//   repeated. Compaction leaves every line younger than the grace as it is, so that the lines of a name tell
//   how many clients may be about to write it; of older lines of one name the youngest stays.
//   A shard that says `named` and is missing in the manifest shows that the manifest was lost. A shard that
//   only says `born` is new, and the next look lists it.
// Round trips
//   list 1 (1 more if it creates a shard, 3 more if it finds one full); look 1, with segments 1 more per
//   shard; 3 more if it finds shards that are not listed.
// When things fail
//   crash          between creating a shard and listing it, or no connection then: the next look lists it. If
//                  the shard is lost before that look, or the manifest before `named` was written, the loss
//                  is not detected.
//   lost reply     of a name's append: looked up by its line's id; if it stays unknown, NotApplied, because a
//                  listed name is not yet an element.
//   eviction, restart, flush   complete: false. If all of it is lost at once, the index looks as if it had
//                              never existed.
//   skew           compaction judges the age of a line across clocks, which may differ by half the grace.
