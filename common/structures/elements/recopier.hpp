// Putting a table or hash into another number of copies: the steps of
// common/primitives/several/recopying.hpp for elements. Its contract stands at the end of this file.
#pragma once

#include <set>
#include <span>

#include "common/base/bytes.hpp"
#include "common/primitives/key_names.hpp"
#include "common/structures/elements/elements.hpp"
#include "common/structures/elements/indexes.hpp"

namespace mcds {

struct Elements::Change {
  static constexpr int most_rounds = 100;
  static constexpr std::size_t names_at_once = 500;

  Change(Recopying& change, const std::string& structure, const std::string& name,
         const Journal::Options& options);

  // Whether the elements of that side have versions: with one copy they have none, and are compared
  // otherwise.
  bool from_versions() const { return from.versions_.in_use(); }
  bool to_versions() const { return to.versions_.in_use(); }
  const std::string& mover() const { return recopying.mark().mover; }

  void list(const std::vector<std::string>& names);

  // Where an element is staged.
  std::string staging_key(std::string_view mover, std::string_view name) const {
    return element_key(recopying.staging_key(mover), name);
  }
  // From one copy: an item that is stored on every server before anything is removed there, by the same
  // connection. Where there is none, nothing was, and what is missing was removed by clients.
  std::string begun_key(std::string_view mover) const { return recopying.staging_key(mover); }
  // Into one copy: one that is stored after everything was. Where it is, what is missing was removed by
  // clients.
  std::string stored_key(std::string_view mover) const { return recopying.staging_key(mover) + "::"; }
  // Both have this value.
  std::string batch_digest() const { return digest128(recopying.mark().moving); }
  // `side`: from or to.
  std::size_t server_of(const Elements& side, std::string_view name) const {
    return safe.cluster.placement().server_of(side.key_of(name));
  }

  Recopying& recopying;
  Elements from, to;
  Context safe;
  SteadyTime first_listed_at;
};

class Elements::RecopyBatch {
 public:
  // An element on its way: staged, and named in the mark.
  struct Piece {
    std::string name;
    std::uint32_t number = 0;      // its version under the new keys; with one copy there is none
    std::uint32_t old_number = 0;  // the value's under the old keys, likewise
    std::string value = {};
    VersionedItem old = {};
    VersionedItem target = {};  // under the new keys
    bool staged = false;
    bool stored = false;    // by a mover before this one, if it removed it
    bool in_doubt = false;  // perhaps removed from the old keys by a mover
    bool ready = false;     // certainly
    bool gone = false;      // a client removed it, or there is nothing more to do
  };

  explicit RecopyBatch(Change& change) : change_(change) {}

  // What a mover before this one may have removed already: listed under the new keys, and safe from that
  // mover (recopy_unfinished.cpp).
  std::vector<Piece> unfinished();

  // `absent`: those that were not there.
  void move(const std::vector<std::string>& names, std::vector<std::string>* absent);
  // Until each is under the new keys, or nowhere. `together`: nothing may leave the mark before it is.
  void settle(std::vector<Piece> pieces, std::vector<std::string>* absent, bool together = false);

 private:
  std::vector<Piece> named_in_mark();
  std::set<std::size_t> servers_that_say(const std::string& key);
  void take_hold(std::vector<Piece>& pieces);
  // False: too much was asked for at once.
  bool read(std::vector<Piece>& pieces);
  // What is under the new keys.
  std::vector<VersionedItem> read_targets(const std::vector<std::string>& keys);
  void divide(std::vector<Piece>& pieces, std::vector<std::string>& later);
  // Those that are too large to go with those before them.
  static void postpone(std::vector<Piece>& pieces, std::vector<std::string>& later);
  // The newest of the old keys and what is staged, or that it is gone.
  void take(Piece& piece);
  // What is under the new keys already, and not because a mover stored it there: it was executed late, or
  // written by somebody who stood still during an earlier change.
  void remove_strays(std::vector<Piece>& pieces);
  void stage(std::vector<Piece>& pieces);
  // The word under the new keys of several copies, in the trip of `beside`.
  void reserve(std::vector<Piece>& pieces, std::span<const Request> beside);
  // Each copy by compare-and-delete.
  void remove(std::vector<Piece>& pieces);
  void publish(std::vector<Piece>& pieces);
  void publish_copies(const std::vector<const Piece*>& ready);
  void publish_only(const std::vector<const Piece*>& ready, const std::vector<Piece>& pieces);
  void unstage(const std::vector<const Piece*>& pieces);
  std::set<std::size_t> servers_of(const Elements& side, const std::vector<Piece>& pieces) const;
  // One request for each server of these pieces.
  void say(const std::string& key, const std::set<std::size_t>& servers, std::vector<Request>& batch) const;

  static constexpr std::size_t first_names = 16;  // they show how large values are

  Change& change_;
  std::size_t largest_ = first_names;
  std::size_t most_ = Change::names_at_once;
  std::uint64_t batches_ = 0;
};

}  // namespace mcds

// The mark names a batch of elements: `<mover>`, a number that is another for each batch, then a line for
// each:
// `<number> <old number> <in doubt> <name>`. Who takes over finds each
//   under the old keys     and goes on as if nobody had begun. From several copies the newest counts, the
//                          staged value among them: a copy that is left may have missed what was removed from
//                          the others. From one, if it is under the new keys too, with the number in the mark
//                          or a higher one: a mover stored it there after it had removed it here, so what is
//                          here was executed late, and is removed.
//   nowhere, and staged    From several copies: a mover removed it, because a client's removal leaves its
//                          word. From one: a mover did if it said so on that server before (begun_key), or if
//                          the mark says that it was in doubt already; else a client did. What a client had
//                          changed before, so that the mover did not remove it, is staged no longer behind
//                          that. Into one copy: if
//                          the mover before said on that server that all was stored (stored_key), a client
//                          has removed it there since.
//   nowhere, not staged    it was stored under the new keys, or removed by a client
// From one copy what is still there first gets another cas unique, so that nothing the mover before may still
// send removes it: from then on, what is missing was removed by a client.
// Before a batch is named in the mark, its elements have a word under the new keys of several copies,
// wherever nothing is: removed, of version 0, which counts less than anything. What is stored there takes its
// place by cas, so nothing that is executed late, when the element has gone on to yet another number, is
// stored.
// Invariant: an element that a client has acknowledged under the new number was stored there by a mover, or
// created after the change; nothing that is stored later replaces it: into several copies because its version
// is higher, into one because what exists is not stored over.
