// What a mover of elements left when it died.
#include <utility>

#include "common/base/bytes.hpp"
#include "common/base/json.hpp"
#include "common/structures/elements/recopier.hpp"

namespace mcds {

std::vector<Elements::RecopyBatch::Piece> Elements::RecopyBatch::unfinished() {
  std::vector<Piece> pieces = named_in_mark();
  if (pieces.empty()) return pieces;
  std::vector<std::string> names;
  const std::string mover(split(change_.recopying.mark().moving, '\n').front());
  const auto began =
      change_.from_versions() ? std::set<std::size_t>() : servers_that_say(change_.begun_key(mover));
  const auto stored =
      change_.to_versions() ? std::set<std::size_t>() : servers_that_say(change_.stored_key(mover));
  for (Piece& piece : pieces) {
    piece.in_doubt =
        piece.staged && (piece.in_doubt || began.contains(change_.server_of(change_.from, piece.name)));
    piece.stored = stored.contains(change_.server_of(change_.to, piece.name));
    names.push_back(piece.name);
  }
  change_.list(names);
  if (!change_.from_versions()) take_hold(pieces);
  return pieces;
}

std::vector<Elements::RecopyBatch::Piece> Elements::RecopyBatch::named_in_mark() {
  std::vector<Piece> pieces;
  auto lines = split(change_.recopying.mark().moving, '\n');
  std::vector<Request> gets;
  for (std::size_t i = 2; i < lines.size(); ++i) {
    const auto words = split(lines[i], ' ');
    if (words.size() < 4) continue;
    const std::size_t before = words[0].size() + words[1].size() + words[2].size() + 3;
    auto name = unquote_bytes(lines[i].substr(before));
    const auto number = parse_u64(words[0]);
    const auto old_number = parse_u64(words[1]);
    if (!name || !number || !old_number) continue;
    gets.push_back(Request::get(change_.staging_key(lines[0], *name)));
    pieces.push_back({.name = std::move(*name),
                      .number = static_cast<std::uint32_t>(*number),
                      .old_number = static_cast<std::uint32_t>(*old_number),
                      .in_doubt = words[2] == "1"});
  }
  CopyReplies replies = execute_copies(change_.safe, gets);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    for (Reply& reply : replies[i]) {
      expect_read(change_.safe.cluster, reply);
      if (reply.outcome != Outcome::hit || pieces[i].staged) continue;
      pieces[i].value = std::move(reply.value);
      pieces[i].staged = true;
    }
  }
  return pieces;
}

std::set<std::size_t> Elements::RecopyBatch::servers_that_say(const std::string& key) {
  std::set<std::size_t> found;
  const std::string batch = change_.batch_digest();
  std::vector<Request> gets;
  for (std::size_t server = 0; server < change_.safe.cluster.placement().pool().size(); ++server)
    gets.push_back(Request::get(key).on(server));
  for (const Reply& reply : change_.safe.cluster.execute(gets)) {
    if (expect_read(change_.safe.cluster, reply).outcome == Outcome::hit && reply.value == batch)
      found.insert(reply.server);
  }
  return found;
}

// From one copy. What is stored under the new keys had been removed before: what is here was executed late.
// Whatever else is still there gets another cas unique, so that what the mover before removes late is not it.
void Elements::RecopyBatch::take_hold(std::vector<Piece>& pieces) {
  std::vector<Request> gets;
  std::vector<std::string> keys;
  for (const Piece& piece : pieces) {
    gets.push_back(Request::gets(change_.from.key_of(piece.name)));
    keys.push_back(change_.to.key_of(piece.name));
  }
  Cluster& cluster = change_.from.context_.cluster;
  const std::vector<Reply> found = cluster.execute(gets);
  const std::vector<VersionedItem> targets = change_.to.versions_.read(keys);
  std::vector<Request> batch;
  std::vector<Piece*> of;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    targets[i].expect_all();
    if (expect_read(cluster, found[i]).outcome != Outcome::hit) continue;
    const VersionedCopy* newest = targets[i].newest();
    if (newest != nullptr && newest->number >= pieces[i].number) {
      batch.push_back(Request::remove_if(gets[i].key, found[i].cas));
    } else {
      batch.push_back(Request::compare_and_set(gets[i].key, found[i].value, Exptime::never(), found[i].cas));
      batch.back().flags = found[i].flags;
    }
    of.push_back(&pieces[i]);
  }
  const std::vector<Reply> replies = cluster.execute(batch);
  for (std::size_t i = 0; i < replies.size(); ++i) {
    const Outcome outcome = expect(cluster, replies[i]).outcome;
    if (outcome == Outcome::stored || outcome == Outcome::exists) of[i]->in_doubt = false;
  }
}

}  // namespace mcds
