// Lists names in the indexes of all copies, which exchange what they had of a new shard.
#include <algorithm>
#include <iterator>

#include "common/base/distinct.hpp"
#include "common/structures/elements/index_lines.hpp"

namespace mcds {

namespace {

// For this long, a client that began a structure treats names that another client lists as concurrent
// creations. An element of another client that the first copy has lost since may then count as new again.
constexpr auto just_begun = std::chrono::seconds(10);

// Returns the shards that a manifest names, or nullopt if it shows a loss: two incarnations of one shard, of
// which the earlier is lost, or the mark of a client that found a loss.
std::optional<std::set<std::string>> shards_named(std::string_view manifest) {
  const auto root = decode_journal_root(manifest);
  std::set<std::string> named;
  for (JournalLine& line : decode_journal_lines(root ? root->tail : "")) {
    if (line.change == Change::add)
      named.insert(std::move(line.element));
    else
      named.erase(line.element);
  }
  std::set<std::string> shards;
  for (const std::string& entry : named) {
    if (entry == loss_mark || !shards.insert(entry.substr(0, entry.find(':'))).second) return std::nullopt;
  }
  // Segments, which are rare, may name the others.
  for (std::size_t shard = 0; root && !root->segments.empty() && shard < index_shards; ++shard)
    shards.insert(std::to_string(shard));
  return shards;
}

}  // namespace

ElementIndexes::ElementIndexes(const Context& context, const Replicas& copies, bool several,
                               const std::string& base, const ElementIndex::Present& present, Alike alike,
                               const Journal::Options& options)
    : context_(context), copies_(copies), several_(several), alike_(std::move(alike)) {
  for (std::size_t copy = 0; copy < copies.size(); ++copy)
    indexes_.push_back(std::make_unique<ElementIndex>(copies.at(copy), base, present, several, options));
}

std::vector<ElementIndex::Look> ElementIndexes::look(bool partial) const {
  return expect_all(
      copies_.each([&](std::size_t copy) { return indexes_[copy]->look(partial || several_); }));
}

ElementIndexes::Listed ElementIndexes::list(std::span<const std::string* const> names) {
  const auto shares = indexes_.front()->shares_of(names);
  return complete(copies_.each([&](std::size_t copy) { return indexes_[copy]->begin_list(shares); }),
                  names.size());
}

ElementIndexes::Listing ElementIndexes::begin_list(std::span<const std::string* const> names) const {
  Listing begun{.shares = indexes_.front()->shares_of(names), .attempts = {}, .replies = {}};
  std::vector<Request> batch;
  for (std::size_t copy = 0; copy < copies_.size(); ++copy) {
    for (const auto& attempt : begun.attempts.emplace_back(indexes_[copy]->attempts_at(begun.shares))) {
      const auto server = copy_servers(context_, attempt.request.key)[copy];
      batch.push_back(ElementIndex::append_of(attempt).on(server));
    }
  }
  begun.replies = context_.cluster.begin(std::move(batch));
  return begun;
}

ElementIndexes::Listed ElementIndexes::finish_list(Listing begun) {
  std::vector<Reply> replies = begun.replies->finish();
  const auto shares = static_cast<std::ptrdiff_t>(begun.shares.size());
  std::size_t names = 0;
  for (const ElementIndex::Share& share : begun.shares) names += share.places.size();
  const auto of_copy = [&](std::size_t copy) {
    const auto first = std::make_move_iterator(replies.begin() + static_cast<std::ptrdiff_t>(copy) * shares);
    return indexes_[copy]->take_appended(begun.shares, begun.attempts[copy], {first, first + shares});
  };
  return complete(copies_.each(of_copy), names);
}

ElementIndexes::Listed ElementIndexes::complete(OfCopies listings, std::size_t names) {
  const auto there = shards_there(listings);
  const auto finished =
      copies_.each([&](std::size_t copy) { indexes_[copy]->finish_list(listings[copy].value(), there); });
  note_created(listings);
  Listed listed{.failures = {}, .began = listings.any(std::mem_fn(&ElementIndex::Listing::began))};
  listed.failures.resize(names);
  for (std::size_t i = 0; i < names; ++i) {
    const auto failure_in = [&](std::size_t copy) -> const std::optional<Failure>& {
      const auto& failure = finished[copy].failure();
      return failure ? failure : listings[copy].value().failures[i];
    };
    std::size_t copy = 0;
    while (copy < copies_.size() && !failure_in(copy)) ++copy;
    if (copy == copies_.size()) continue;
    for (copy = 0; copy < copies_.size(); ++copy) listed.failures[i].push_back(failure_in(copy));
  }
  return listed;
}

void ElementIndexes::note_created(const OfCopies& listings) {
  for (std::size_t shard = 0; shard < index_shards; ++shard) {
    const auto creates = [&](const auto& listing) { return listing.created.contains(shard); };
    if (listings.count(creates) == listings.size()) created_[shard] = context_.clock.steady();
  }
}

ElementIndexes::Probe ElementIndexes::probe(std::span<const std::string* const> names) const {
  std::set<std::size_t> shards;
  for (const std::string* name : names) shards.insert(index_shard_of(*name));
  Probe probe{.shards = {shards.begin(), shards.end()}, .requests = {}};
  for (std::size_t copy = 0; copy < copies_.size(); ++copy) {
    const ElementIndex& index = *indexes_[copy];
    const auto ask = [&](Request request) {
      const std::size_t server = copy_servers(context_, request.key)[copy];
      probe.requests.push_back(std::move(request).on(server));
    };
    ask(Request::get(index.manifest_key()));
    for (const std::size_t shard : probe.shards)
      ask(Request::touch(index.shard_key(shard), Exptime::never()));
  }
  return probe;
}

bool ElementIndexes::is_damaged(const Probe& probe, std::span<const Reply> replies,
                                const std::set<std::size_t>& shards) const {
  std::size_t answered = 0, damaged = 0;
  for (; !replies.empty(); replies = replies.subspan(1 + probe.shards.size())) {
    const auto of_copy = replies.first(1 + probe.shards.size());
    if (std::ranges::any_of(of_copy, &Reply::failed)) continue;
    ++answered;
    const auto named = shards_named(of_copy.front().value);
    bool lost = !named || (of_copy.front().outcome == Outcome::miss && !shards.empty());
    for (std::size_t i = 0; i < probe.shards.size() && !lost; ++i) {
      // A shard that is not named has an earlier manifest, unless its creator has not named it yet.
      const bool absent = of_copy[i + 1].outcome == Outcome::not_found;
      lost = absent ? shards.contains(probe.shards[i]) : !named->contains(std::to_string(probe.shards[i]));
    }
    if (lost) ++damaged;
  }
  return damaged != 0 && damaged == answered;
}

bool ElementIndexes::created_just_now(std::span<const ElementIndex::Share> shares) const {
  return std::all_of(shares.begin(), shares.end(), [&](const ElementIndex::Share& share) {
    return created_[share.shard] && context_.clock.steady() - *created_[share.shard] < just_begun;
  });
}

// Returns, for shards that existed in one copy and were created in another, what the first has. The new one
// was lost, or another client is creating both just now. It gets what the other has, or is marked as
// incomplete until a fetch has restored the rest. `whole` is set only if two clients create the structure at
// the same time: then no element is in one copy and not in another, because its writer has not finished
// listing it. Too many elements to compare must all have been listed just now.
std::map<std::size_t, ElementIndex::There> ElementIndexes::shards_there(const OfCopies& listings) const {
  std::map<std::size_t, ElementIndex::There> there;
  for (const auto& listing : listings) {
    if (listing.failure()) continue;
    for (const std::size_t shard : listing.value().there) {
      if (listings.any([&](const auto& other) { return other.created.contains(shard); }))
        there.try_emplace(shard);
    }
  }
  if (there.empty()) return there;
  std::vector<std::map<std::size_t, ElementIndex::There>> found(listings.size());
  static_cast<void>(copies_.each([&](std::size_t copy) {
    for (const std::size_t shard : listings[copy].value().there) {
      if (there.contains(shard)) found[copy][shard] = indexes_[copy]->what_is_there(shard);
    }
  }));
  for (auto& of_copy : found) {
    for (auto& [shard, one] : of_copy) {
      ElementIndex::There& all = there.at(shard);
      all.whole = all.whole || (one.whole && is_being_created(one));
      std::move(one.lines.begin(), one.lines.end(), std::back_inserter(all.lines));
    }
  }
  for (auto& [shard, all] : there)
    keep_first_of_each(all.lines, [](const JournalLine& line) { return std::string_view(line.id); });
  return there;
}

bool ElementIndexes::is_being_created(const ElementIndex::There& there) const {
  constexpr std::size_t max_asked = 16;
  return there.names.size() > max_asked ? there.just_now : alike_(there.names);
}

}  // namespace mcds
