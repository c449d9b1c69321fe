// A batch of elements on its way to another number of copies.
#include <algorithm>
#include <utility>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/json.hpp"
#include "common/base/rely.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/structures/elements/recopier.hpp"

namespace mcds {

namespace {

constexpr std::size_t name_bytes_at_once = 128 * 1024;
constexpr std::size_t value_bytes_at_once = 2 << 20;
constexpr auto staged_for = std::chrono::hours(24);

}  // namespace

void Elements::RecopyBatch::move(const std::vector<std::string>& names, std::vector<std::string>* absent) {
  std::vector<Piece> pieces;
  std::size_t bytes = 0;
  for (const std::string& name : names) {
    pieces.push_back({.name = name});
    bytes += name.size();
    if (pieces.size() < largest_ && bytes < name_bytes_at_once) continue;
    settle(std::exchange(pieces, {}), absent);
    bytes = 0;
  }
  if (!pieces.empty()) settle(std::move(pieces), absent);
}

void Elements::RecopyBatch::settle(std::vector<Piece> pieces, std::vector<std::string>* absent,
                                   bool together) {
  std::vector<std::string> later;
  for (int round = 0; !pieces.empty(); ++round) {
    if (round == Change::most_rounds) throw Contention("other clients keep changing an element; try again");
    // Later nothing is put off: what a removal without a reply left in doubt would be forgotten.
    const bool divides = !together && round == 0;
    if (!read(pieces)) {
      if (!divides)
        throw Contention("other clients made its elements too large to be read at once; try again");
      divide(pieces, later);
      break;
    }
    if (divides) postpone(pieces, later);
    if (absent != nullptr) {
      for (const Piece& piece : pieces) {
        if (piece.gone) absent->push_back(piece.name);
      }
    }
    std::erase_if(pieces, [](const Piece& piece) { return piece.gone; });
    if (pieces.empty()) break;
    try {
      stage(pieces);
    } catch (const Failure& refusal) {
      if (refusal.code() != ErrorCode::refused || !divides || pieces.size() == 1) throw;
      divide(pieces, later);
      break;
    }
    remove(pieces);
    publish(pieces);
    std::erase_if(pieces, [](const Piece& piece) { return piece.ready || piece.gone; });
  }
  if (!later.empty()) move(later, absent);
}

// Too many at once: for one read, or for the mark.
void Elements::RecopyBatch::divide(std::vector<Piece>& pieces, std::vector<std::string>& later) {
  largest_ = most_ = std::max<std::size_t>(1, pieces.size() / 2);
  for (Piece& piece : pieces) later.push_back(std::move(piece.name));
}

void Elements::RecopyBatch::postpone(std::vector<Piece>& pieces, std::vector<std::string>& later) {
  std::size_t bytes = 0;
  std::size_t count = 0;
  while (count < pieces.size() && (count == 0 || bytes + pieces[count].value.size() <= value_bytes_at_once))
    bytes += pieces[count++].value.size();
  for (std::size_t i = count; i < pieces.size(); ++i) later.push_back(std::move(pieces[i].name));
  pieces.resize(count);
}

bool Elements::RecopyBatch::read(std::vector<Piece>& pieces) {
  std::vector<Request> batch;
  std::vector<std::string> keys;
  for (const Piece& piece : pieces) {
    batch.push_back(Request::gets(change_.from.key_of(piece.name)));
    keys.push_back(change_.to.key_of(piece.name));
  }
  const CopyReplies replies = execute_copies(change_.from.context_, batch);
  std::vector<VersionedItem> found(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    found[i] = change_.from.versions_.item_of(batch[i].key, replies[i]);
    if (pieces.size() > 1 && found[i].flood()) return false;
  }
  std::vector<VersionedItem> targets = read_targets(keys);
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    Piece& piece = pieces[i];
    const auto before = std::exchange(piece.old, std::move(found[i]));
    piece.target = std::move(targets[i]);
    piece.old.expect_all();
    piece.target.expect_all();
    // What compares with another value is executed late in vain.
    if (!change_.from_versions() && !before.copies.empty() && piece.old.copies[0].found &&
        !(piece.old.copies[0].cas == before.copies[0].cas))
      piece.in_doubt = false;
    take(piece);
    bytes += piece.value.size();
  }
  remove_strays(pieces);
  const std::size_t fitting = value_bytes_at_once / (bytes / pieces.size() + 1);
  largest_ = std::clamp<std::size_t>(fitting, 1, std::min(most_, 4 * largest_));
  return true;
}

std::vector<VersionedItem> Elements::RecopyBatch::read_targets(const std::vector<std::string>& keys) {
  if (change_.to_versions()) return change_.to.versions_.read(keys);
  std::vector<Request> batch;
  for (const std::string& key : keys) batch.push_back(Request::gets(key));
  const std::vector<Reply> replies = change_.to.context_.cluster.execute(batch);
  std::vector<VersionedItem> targets;
  for (std::size_t i = 0; i < keys.size(); ++i)
    targets.push_back(change_.to.versions_.item_of(keys[i], std::span(&replies[i], 1)));
  return targets;
}

void Elements::RecopyBatch::take(Piece& piece) {
  const VersionedCopy* newest = piece.old.newest();
  if (newest == nullptr) {
    // With several copies a removal leaves its word behind.
    piece.gone = !piece.staged || piece.stored || (!change_.from_versions() && !piece.in_doubt);
    return;
  }
  // Of several copies the one that is left may have missed what a mover removed from the others.
  const VersionedCopy staged{.found = true, .number = piece.old_number, .value = piece.value};
  const VersionedWrite left{
      .item = &piece.old, .number = newest->number, .removed = newest->removed, .value = newest->value};
  if (change_.from_versions() && piece.staged && !left.lacks(staged)) return;
  piece.gone = newest->removed;
  if (piece.gone) return;
  piece.value = newest->value;
  piece.old_number = newest->number;
  const auto next = change_.to_versions() ? piece.target.next_number() : std::optional<std::uint32_t>(0);
  if (!next) throw no_version_left(piece.target.key);
  piece.number = *next;
}

void Elements::RecopyBatch::remove_strays(std::vector<Piece>& pieces) {
  std::vector<VersionedItem*> strays;
  for (Piece& piece : pieces) {
    const bool here = piece.old.live();
    // Versions tell which is newer.
    const bool harmful = here ? !change_.to_versions() : piece.gone;
    // A mover before this one stored it, and removed it before from several copies; a single one may hold
    // what was executed late.
    const bool may_be_theirs = change_.recopying.taken_over() && !(here && change_.from_versions());
    if (harmful && !may_be_theirs && piece.target.live()) strays.push_back(&piece.target);
  }
  if (strays.empty()) return;
  change_.recopying.check();
  if (change_.to_versions()) {
    std::vector<VersionedWrite> writes;
    for (VersionedItem* stray : strays) {
      if (const auto number = stray->next_number())
        writes.push_back({.item = stray, .number = *number, .removed = true, .once = true});
    }
    return change_.to.versions_.write(writes);
  }
  std::vector<Request> batch;
  for (const VersionedItem* stray : strays)
    batch.push_back(Request::remove_if(stray->key, stray->copies.front().cas));
  for (const Reply& reply : change_.to.context_.cluster.execute(batch))
    expect(change_.to.context_.cluster, reply);
}

void Elements::RecopyBatch::stage(std::vector<Piece>& pieces) {
  const Exptime exptime = Exptime::after(staged_for, change_.safe.clock.wall());
  std::string moving = change_.mover() + '\n' + std::to_string(++batches_);
  std::vector<Request> sets;
  for (Piece& piece : pieces) {
    append_all(moving, {"\n", std::to_string(piece.number), " ", std::to_string(piece.old_number),
                        piece.in_doubt ? " 1 " : " 0 ", quote_bytes(piece.name)});
    sets.push_back(Request::set(change_.staging_key(change_.mover(), piece.name), piece.value, exptime));
    piece.staged = true;
  }
  reserve(pieces, sets);
  change_.recopying.write(std::move(moving));
}

void Elements::RecopyBatch::reserve(std::vector<Piece>& pieces, std::span<const Request> beside) {
  std::vector<VersionedWrite> words;
  for (Piece& piece : pieces) {
    // A value without a version would count as older than the word.
    if (change_.to_versions() && !(piece.target.live() && piece.target.newest()->number == 0))
      words.push_back({.item = &piece.target, .number = 0, .removed = true});
  }
  auto writing = change_.to.versions_.begin_write(words);
  for (const Reply& reply : execute_copies(change_.safe, beside).take_all())
    expect(change_.safe.cluster, reply);
  change_.to.versions_.finish_write(std::move(writing));
  for (const VersionedWrite& word : words) word.item->expect_all();
}

void Elements::RecopyBatch::remove(std::vector<Piece>& pieces) {
  std::vector<Request> batch;
  std::vector<Piece*> of;
  if (!change_.from_versions())
    say(change_.begun_key(change_.mover()), servers_of(change_.from, pieces), batch);
  const std::size_t first = batch.size();
  for (Piece& piece : pieces) {
    rely_on(piece.staged, "what is removed is staged and named in the mark");
    piece.ready = true;
    for (const VersionedCopy& copy : piece.old.copies) {
      if (!copy.found) continue;
      expect_cas(change_.safe.cluster, copy.server, copy.cas);
      batch.push_back(Request::remove_if(piece.old.key, copy.cas).on(copy.server));
      of.push_back(&piece);
    }
  }
  const std::vector<Reply> replies = change_.safe.cluster.execute(batch);
  bool by_another = false;
  for (std::size_t i = first; i < replies.size(); ++i) {
    Piece& piece = *of[i - first];
    switch (replies[i].outcome) {
      case Outcome::deleted: break;
      case Outcome::not_found:
        // By a client, or by another mover, who then has the mark.
        by_another = true;
        piece.gone = !change_.from_versions() && !piece.in_doubt;
        break;
      case Outcome::exists: piece.ready = piece.in_doubt = false; break;
      default:
        piece.ready = false;
        piece.in_doubt = true;
        if (!replies[i].unknown()) expect(change_.safe.cluster, replies[i]);
    }
  }
  std::vector<const Piece*> not_by_us;
  for (Piece& piece : pieces) {
    piece.ready = piece.ready && !piece.gone;
    if (!change_.from_versions() && !piece.ready && !piece.in_doubt) not_by_us.push_back(&piece);
  }
  // From now on nobody thinks that a mover removed them: those that a client has changed may be removed by
  // one next.
  unstage(not_by_us);
  if (by_another) change_.recopying.check();
}

std::set<std::size_t> Elements::RecopyBatch::servers_of(const Elements& side,
                                                        const std::vector<Piece>& pieces) const {
  std::set<std::size_t> servers;
  for (const Piece& piece : pieces) servers.insert(change_.server_of(side, piece.name));
  return servers;
}

void Elements::RecopyBatch::say(const std::string& key, const std::set<std::size_t>& servers,
                                std::vector<Request>& batch) const {
  const Exptime exptime = Exptime::after(staged_for, change_.safe.clock.wall());
  for (const std::size_t server : servers)
    batch.push_back(Request::set(key, change_.batch_digest(), exptime).on(server));
}

void Elements::RecopyBatch::unstage(const std::vector<const Piece*>& pieces) {
  if (pieces.empty()) return;
  std::vector<Request> batch;
  for (const Piece* piece : pieces)
    batch.push_back(Request::remove(change_.staging_key(change_.mover(), piece->name)));
  static_cast<void>(execute_copies(change_.safe, batch));
}

void Elements::RecopyBatch::publish(std::vector<Piece>& pieces) {
  std::vector<std::string> names;
  std::vector<const Piece*> ready;
  for (const Piece& piece : pieces) {
    if (!piece.ready) continue;
    ready.push_back(&piece);
    names.push_back(piece.name);
  }
  if (ready.empty()) return;
  // A compaction may have dropped names that were listed long before.
  if (change_.to.context_.clock.steady() - change_.first_listed_at > ElementIndex::grace / 4)
    change_.list(names);
  if (change_.to_versions())
    publish_copies(ready);
  else
    publish_only(ready, pieces);
  unstage(ready);
}

void Elements::RecopyBatch::publish_copies(const std::vector<const Piece*>& ready) {
  std::vector<std::string> keys;
  for (const Piece* piece : ready) keys.push_back(change_.to.key_of(piece->name));
  std::vector<VersionedItem> items = change_.to.versions_.read(keys);
  std::vector<VersionedWrite> writes;
  for (std::size_t i = 0; i < items.size(); ++i) {
    rely_on(ready[i]->number != 0, "what is stored in several copies has a version");
    writes.push_back({.item = &items[i], .number = ready[i]->number, .value = ready[i]->value});
  }
  change_.recopying.keep_alive();
  change_.to.versions_.write(writes);
  for (const VersionedItem& item : items) item.expect_all();
}

void Elements::RecopyBatch::publish_only(const std::vector<const Piece*>& ready,
                                         const std::vector<Piece>& pieces) {
  std::vector<Request> batch;
  for (const Piece* piece : ready)
    batch.push_back(Request::add(change_.to.key_of(piece->name), piece->value, Exptime::never()));
  const auto removed_or_not = [](const Piece& piece) { return !piece.ready && piece.in_doubt; };
  if (std::ranges::none_of(pieces, removed_or_not))
    say(change_.stored_key(change_.mover()), servers_of(change_.to, pieces), batch);
  change_.recopying.keep_alive();
  const std::vector<Reply> replies = change_.to.context_.cluster.execute(batch);
  for (std::size_t i = 0; i < ready.size(); ++i) expect(change_.to.context_.cluster, replies[i]);
}

}  // namespace mcds
