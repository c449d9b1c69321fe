// Lists names in the shards of one index, names new shards in the manifest, and fills them from another copy.
#include <algorithm>
#include <limits>

#include "common/base/json.hpp"
#include "common/primitives/seal.hpp"
#include "common/replication/copy_count_guard.hpp"
#include "common/structures/elements/index_lines.hpp"

namespace mcds {

namespace {

constexpr std::size_t lines_per_change = 2000;
constexpr std::size_t bytes_per_change = 128 * 1024;
constexpr std::size_t line_overhead = 64;

// The time after which clients that create a shard at the same moment have finished.
constexpr auto just_now = std::chrono::seconds(10);

}  // namespace

std::string ElementIndex::line_operation() const {
  const auto now = static_cast<std::uint64_t>(unix_seconds(context_.clock.wall())) & 0xffffffff;
  return hex64(now << 32 | (context_.random.bits() & 0xffffffff));
}

// Names the shards in the manifest by one change: all or none. Returns true if it created the manifest.
bool ElementIndex::name_in_manifest(const std::map<std::size_t, std::string>& incarnations) const {
  const std::string operation = line_operation();
  std::vector<JournalLine> lines;
  for (const auto& [shard, incarnation] : incarnations)
    lines.push_back(
        {Change::add, journal_line_id(operation, lines.size()), manifest_entry(shard, incarnation)});
  return !lines.empty() && Journal(context_, manifest_key(), options_).append(lines).created;
}

void ElementIndex::say_dropped(const std::vector<std::string>& entries, bool dropped) const {
  const std::string operation = line_operation();
  std::vector<JournalLine> lines;
  for (const std::string& entry : entries)
    lines.push_back(
        {dropped ? Change::remove : Change::add, journal_line_id(operation, lines.size()), entry});
  // A manifest that no longer exists has nothing to record.
  if (!lines.empty()) static_cast<void>(journal(manifest_key()).append(lines, [] { return true; }));
}

void ElementIndex::record_loss(bool lost) const {
  const JournalLine line{lost ? Change::add : Change::remove, journal_line_id(line_operation(), 0),
                         std::string(loss_mark)};
  static_cast<void>(journal(manifest_key()).append(std::span(&line, 1), [] { return true; }));
}

Request ElementIndex::mark(std::size_t shard, const std::string& incarnation) const {
  const JournalLine line{Change::remove, journal_line_id(line_operation(), 0),
                         std::string(named_mark) + incarnation};
  return Request::append(shard_key(shard), encode(line));
}

std::vector<ElementIndex::Share> ElementIndex::shares_of(std::span<const std::string* const> names) const {
  std::vector<Share> shares;
  std::array<std::optional<std::size_t>, index_shards> open{};
  JournalLine line{Change::add, {}, {}};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::size_t shard = index_shard_of(*names[i]);
    if (!open[shard] || shares[*open[shard]].places.size() >= lines_per_change ||
        shares[*open[shard]].lines.size() >= bytes_per_change) {
      open[shard] = shares.size();
      shares.push_back({.shard = shard, .operation = line_operation()});
    }
    Share& share = shares[*open[shard]];
    if (beside_copies_) {
      if (!share.lines.empty()) share.lines += '\t';
      append_quoted_bytes(share.lines, *names[i]);
    } else {
      line.id.clear();
      append_all(line.id, {share.operation, ".", std::to_string(share.places.size())});
      line.element = quote_bytes(*names[i]);
      append_line(share.lines, line);
    }
    share.places.push_back(i);
  }
  for (Share& share : shares) {
    if (beside_copies_)
      share.lines = encode({Change::add, journal_line_id(share.operation, 0), std::move(share.lines)});
    share.birth = encode(
        {Change::remove, journal_line_id(share.operation, share.places.size()), std::string(born_mark)});
  }
  return shares;
}

void ElementIndex::create(const std::set<std::size_t>& shards) {
  std::vector<Share> shares;
  for (const std::size_t shard : shards) {
    Share& share = shares.emplace_back(Share{.shard = shard, .operation = line_operation()});
    share.lines = encode({Change::remove, journal_line_id(share.operation, 0), std::string(restored_mark)});
    share.birth = encode({Change::remove, journal_line_id(share.operation, 1), std::string(born_mark)});
  }
  Listing listing = begin_list(shares, true);
  for (const std::size_t shard : shards) {
    if (!listing.created.contains(shard) && !listing.there.contains(shard))
      throw NotApplied(ErrorCode::unavailable, "a part of the index could not be created");
  }
  finish_list(listing, {});
}

Journal ElementIndex::journal_of(const Share& share, bool lossy) const {
  Journal::Options options = options_;
  options.lossy = lossy;
  options.birth = share.birth;
  return {context_, shard_key(share.shard), options};
}

ElementIndex::Attempts ElementIndex::attempts_at(std::span<const Share> shares, bool lossy) const {
  Attempts attempts;
  for (const Share& share : shares)
    attempts.push_back(journal_of(share, lossy).attempt_of(share.lines, journal_line_id(share.operation, 0)));
  return attempts;
}

ElementIndex::Listing ElementIndex::begin_list(std::span<const Share> shares, bool lossy) {
  const Attempts attempts = attempts_at(shares, lossy);
  std::vector<Request> batch;
  for (const Journal::Attempt& attempt : attempts) batch.push_back(attempt.request);
  return take(shares, attempts, context_.cluster.execute(batch), lossy);
}

// Retries the appends that were refused, because the shard was missing or full.
ElementIndex::Listing ElementIndex::take_appended(std::span<const Share> shares, const Attempts& attempts,
                                                  std::vector<Reply> replies) {
  std::vector<Request> again;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (replies[i].outcome == Outcome::not_stored) again.push_back(attempts[i].request);
  }
  if (!again.empty()) {
    std::vector<Reply> reported = context_.cluster.execute(again);
    auto anew = reported.begin();
    for (Reply& reply : replies) {
      if (reply.outcome == Outcome::not_stored) reply = std::move(*anew++);
    }
  }
  return take(shares, attempts, std::move(replies), false);
}

ElementIndex::Listing ElementIndex::take(std::span<const Share> shares, const Attempts& attempts,
                                         std::vector<Reply> replies, bool lossy) {
  Listing listing;
  std::size_t names = 0;
  for (const Share& share : shares) names += share.places.size();
  listing.failures.resize(names);
  listing.shards.resize(names);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const Share& share = shares[i];
    const auto result =
        attempt([&] { return journal_of(share, lossy).settle(attempts[i], std::move(replies[i])); });
    const auto& failure = result.failure();
    for (const std::size_t place : share.places) {
      if (failure) listing.failures[place] = failure;
      listing.shards[place] = share.shard;
    }
    if (!failure)
      listing.note(share.shard, result.value());
    else if (failure->code() == ErrorCode::refused && share.places.size() > 1)
      list_in_pieces(share, lossy, listing);
  }
  return listing;
}

void ElementIndex::list_in_pieces(const Share& share, bool lossy, Listing& listing) const {
  Journal journal = journal_of(share, lossy);
  std::vector<JournalLine> lines;  // one per name
  for (const JournalLine& line : decode_journal_lines(share.lines)) {
    for_each_quoted(line.element, [&](std::string_view quoted) {
      lines.push_back({line.change, journal_line_id(share.operation, lines.size()), std::string(quoted)});
    });
  }
  const auto listed = attempt([&] {
    in_pieces(lines.size(), [&](std::size_t first, std::size_t last) {
      listing.note(share.shard, journal.append(std::span(lines).subspan(first, last - first)));
      for (std::size_t i = first; i < last; ++i) listing.failures[share.places[i]].reset();
    });
  });
  for (const std::size_t place : share.places) {
    if (listing.failures[place]) listing.failures[place] = listed.failure();
  }
}

void ElementIndex::Listing::note(std::size_t shard, const Journal::Appended& appended) {
  if (appended.created) created[shard] = appended.incarnation;
  if (!appended.created && !created.contains(shard)) there.insert(shard);
  if (appended.doubled) full.insert(shard);
}

ElementIndex::There ElementIndex::what_is_there(std::size_t shard) const {
  JournalContents contents = Journal(context_, shard_key(shard), options_).read();
  There there{.whole = contents.found && !contents.loss.any()};
  const std::int64_t earliest = unix_seconds(context_.clock.wall()) - just_now.count();
  for (JournalLine& line : contents.lines) {
    if (line.change != Change::add) continue;
    for_each_quoted(line.element, [&](std::string_view quoted) {
      if (auto name = unquote_bytes(quoted)) there.names.push_back(std::move(*name));
    });
    there.just_now = there.just_now && seconds_of(line.id) >= earliest;
    there.lines.push_back(std::move(line));
  }
  return there;
}

// Copies lines to our shard, where known ids have no effect. Returns false if it may not have all of them.
bool ElementIndex::restore(std::size_t shard, const There& there) const {
  if (!there.whole) return false;
  Journal journal(context_, shard_key(shard), options_);
  // It fails if they are too many for one change, or without a reply.
  return !attempt([&] {
            in_pieces(there.lines.size(), [&](std::size_t first, std::size_t last) {
              journal.append(std::span(there.lines).subspan(first, last - first));
            });
          }).failure();
}

void ElementIndex::finish_list(Listing& listing, const std::map<std::size_t, There>& there) {
  auto to_name = listing.created;
  const auto fail = [&](std::size_t shard, const std::optional<Failure>& failure) {
    if (failure) to_name.erase(shard);
    for (std::size_t i = 0; i < listing.failures.size() && !beside_copies_; ++i) {
      if (failure && listing.shards[i] == shard) listing.failures[i] = failure;
    }
  };
  for (const auto& [shard, incarnation] : listing.created) {
    const auto elsewhere = there.find(shard);
    if (elsewhere == there.end()) continue;
    fail(shard, attempt([&, number = shard] {
                  if (!restore(number, elsewhere->second)) mark_lossy(number);
                }).failure());
  }
  const auto named = attempt([&] { listing.began = name_in_manifest(to_name) || listing.began; });
  for (const auto& [shard, incarnation] : std::map(to_name)) fail(shard, named.failure());
  for (const auto& [shard, incarnation] : to_name) marks_.push_back(mark(shard, incarnation));
  // If there are other copies, the next requests are not sent by this index, so the marks are sent now.
  if (beside_copies_ && !marks_.empty()) static_cast<void>(context_.cluster.execute(take_marks()));
  // Listed or not, the name is certainly not an element yet.
  for (auto& failure : listing.failures) {
    if (failure && failure->code() == ErrorCode::unknown_outcome)
      failure = NotApplied(ErrorCode::unavailable,
                           "no reply while the element was listed in the index; nothing was set; try again",
                           failure->server());
  }
  // The result does not depend on this compaction; the next client that finds the shard full tries again.
  for (const std::size_t shard : listing.full)
    static_cast<void>(attempt([&] {
      if (may_be_half_dead(shard)) compact(shard, std::numeric_limits<std::size_t>::max());
    }));
}

bool ElementIndex::take_back(const std::set<std::string>& names) const {
  std::set<std::string> ours, listed;
  for (const std::string& name : names) ours.insert(quote_bytes(name));
  std::vector<Request> gets;
  for (std::string& key : keys()) gets.push_back(Request::gets(std::move(key)));
  std::reverse(gets.begin(), gets.end());
  const auto is_ours = [&](std::size_t get, const Reply& there) {
    const auto root = decode_journal_root(there.value);
    const bool manifest = get == index_shards;
    const std::set<std::string>& allowed = manifest ? listed : ours;
    bool known = root && root->segments.empty();
    if (!known) return false;
    for (const JournalLine& line : decode_journal_lines(root->tail)) {
      for_each_quoted(line.element, [&](std::string_view quoted) {
        known = known && (line.change != Change::add || allowed.contains(std::string(quoted)));
      });
    }
    if (!manifest) listed.insert(manifest_entry(index_shards - 1 - get, root->incarnation));
    return known;
  };
  return remove_created(context_.cluster, gets, is_ours, true);
}

void ElementIndex::mark_lossy(std::size_t shard) const {
  Journal::Options options = options_;
  options.lossy = true;
  static_cast<void>(
      Journal(context_, shard_key(shard), options).compact([](const auto& lines) { return lines; }, true));
}

}  // namespace mcds
