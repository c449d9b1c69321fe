#include "common/operations/load.hpp"

#include <deque>
#include <unordered_map>

#include "common/base/bounds.hpp"
#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/units.hpp"
#include "common/cluster/decorators.hpp"
#include "common/cluster/statistics.hpp"
#include "common/journal/journal.hpp"
#include "common/operations/expiry.hpp"
#include "common/operations/not_saveable.hpp"
#include "common/operations/structure_merger.hpp"
#include "common/primitives/active_variants.hpp"
#include "common/primitives/cas_update.hpp"

namespace mcds {

namespace {

constexpr std::size_t writes_in_flight = 3;
constexpr std::size_t batch_while_room = 64;
// A day before the maximum, since the clocks of servers may differ.
constexpr std::int64_t latest_end = Exptime::latest - 24 * 3600;

// Answers reads from the file's items, as if the file were a server.
class SavedItemsCluster final : public Decorator {
 public:
  using Cluster::execute;
  using Decorator::Decorator;
  std::vector<Reply> execute(std::span<const Request> batch) override {
    std::vector<Reply> replies;
    for (const Request& request : batch) {
      const auto found = values.find(request.key);
      Reply reply = Reply::of(found == values.end() ? Outcome::miss : Outcome::hit, server_of(request));
      if (found != values.end()) reply.value = found->second;
      replies.push_back(std::move(reply));
    }
    return replies;
  }

  std::unordered_map<std::string, std::string> values;
};

// Returns true if `value` has every entry that is in use in `wanted`.
bool has_all_in_use(std::string_view value, std::string_view wanted, WallTime now) {
  const std::vector<ActiveVariant> there = parse_active_variants(value, now);
  return std::ranges::all_of(parse_active_variants(wanted, now), [&](const ActiveVariant& one) {
    return std::ranges::find(there, one.what, &ActiveVariant::what) != there.end();
  });
}

class Loading {
 public:
  // Reads the servers' time and maximum item size.
  Loading(const Context& context, LoadOptions options, LoadWatch watch, LoadReport& report)
      : report_(report),
        context_(context),
        options_(std::move(options)),
        watch_(std::move(watch)),
        file_(context.cluster),
        limiter_(options_.rate, context.clock.steady()),
        largest_batch_(limiter_.largest_batch()) {
    const std::size_t servers = context_.cluster.placement().pool().size();
    report_.servers.resize(servers);
    largest_items_.resize(servers);
    refuses_.resize(servers);
    clocks_.resize(servers);
    if (options_.dry_run) return;
    if (options_.while_room) {
      largest_batch_ = std::min(largest_batch_, batch_while_room);
      evictions_ = evictions();
    }
    clocks_ = moving::read_clocks(context_.cluster, context_.clock);
    std::vector<Request> requests;
    for (std::size_t i = 0; i < servers; ++i) requests.push_back(Request::stats(i, "settings"));
    for (const Reply& reply : context_.cluster.execute(requests)) {
      if (reply.failed()) continue;
      largest_items_[reply.server] = statistic_number(reply.value, "item_size_max").value_or(0);
      refuses_[reply.server] = statistic(reply.value, "evictions") == "off";
    }
  }

  void take(const SavedItem& item) {
    const SavedAs as = as_of(item);
    if (!is_selected(item, as)) return;
    ++report_.items;
    if (as.what == Savable::never) {
      ++report_.skipped[as.why];
      return;
    }
    if (evicts_) {
      ++report_.no_room;
      return;
    }
    if (!held_.empty() && as.root != held_of_) place_held();
    const bool merges = as.what == Savable::structure && !options_.dry_run && !replaces(as);
    if (merges && !was_misplaced(item, as) && take_journal(item, as)) return;
    place(item);
  }

  void finish() {
    place_held();
    finish_all();
  }

  // Counts the requests in flight as unknown: they may still be applied.
  void give_up() {
    for (const auto& batch : writing_) {
      for (const Request& request : batch->batch()) ++report_.servers[*request.server].unknown;
    }
  }

 private:
  struct Held {
    std::string key, with;
    std::uint32_t flags;
    std::int64_t ends_s;
    std::string value;
  };

  // `one` is a saved item, or a request that stores it.
  SavedAs as_of(const auto& one) const {
    return judged(saved_as(one.key, options_.selection.key_prefix), one.key, one.value, one.flags);
  }

  // Structures are selected as a whole. An element in another namespace may also be an application's item.
  bool is_selected(const SavedItem& item, const SavedAs& as) const {
    const bool ours = as.element || (as.grouped && as.what != Savable::item);
    if (ours && selects(options_.selection, as)) return true;
    return (!ours || (as.element && !as.exact)) && options_.selection.has(item.key);
  }

  // An index is merged, because it lists existing and former elements; elements are replaced.
  bool replaces(const SavedAs& as) const {
    const bool index = as.what == Savable::structure && (as.structure == "table" || as.structure == "hash");
    return options_.overwrite && !index;
  }

  // Returns true if max_ttl limits the item. Parts of structures, counters and the JSON of arrays are exempt:
  // what is written to them later would expire with them.
  bool is_bounded(const SavedItem& item) const {
    if (!options_.max_ttl) return false;
    const SavedAs as = as_of(item);
    const auto ours = structure_in(item.key, options_.selection.key_prefix);
    const bool json = ours && ours->name.structure == "array" && item.key.ends_with(":json");
    const bool number = as.structure == "counter" && parse_u64(item.value);
    return as.what == Savable::item && !as.element && !number && !(json && item.value.starts_with('['));
  }

  void place(const SavedItem& item) {
    const bool bounded = is_bounded(item), replaces_all = options_.overwrite && replaces(as_of(item));
    const std::vector<Owner> places = places_of(item);
    report_.misplaced += places.empty() ? 1 : 0;
    for (const Owner& place : places) {
      const auto exptime = exptime_on(place.server, item.ends_s, bounded);
      if (!exptime) {
        ++report_.expired;
        return;
      }
      if (options_.dry_run) {
        ++report_.servers[place.server].loaded;
        continue;
      }
      if (!fits(item, place.server)) continue;
      const std::string& key = place.wire_key.empty() ? item.key : place.wire_key;
      Request request = Request::add(key, std::string(item.value), *exptime);
      if (replaces_all && !refuses_[place.server]) request.op = Op::set;
      request.flags = item.flags;
      next_.push_back(std::move(request).on(place.server));
      next_bytes_ += item.key.size() + item.value.size();
    }
    if (next_.size() >= largest_batch_ || next_bytes_ >= batch_bytes) begin();
  }

  // Handles a journal with segments. The segments wait for the root, because the journal is merged as a whole
  // if the server has one already. Returns false for any other item.
  bool take_journal(const SavedItem& item, const SavedAs& as) {
    const PlacedKey placed_key = placed(item.key, as.key_prefix);
    if (is_segment(placed_key)) {
      held_of_ = as.root;
      held_.push_back({item.key, placed_key.with, item.flags, item.ends_s, std::string(item.value)});
      return true;
    }
    const std::vector<Held> its = segments_of(item.key);
    if (its.empty()) return false;
    for (const Held& segment : its) file_.values[segment.key] = segment.value;
    finish_all();
    const std::size_t server = places_of(item).front().server;
    const Reply seen = context_.cluster.execute(Request::get(item.key).on(server));
    if (seen.outcome == Outcome::hit && seen.value != item.value) {
      LoadedServer& counted = report_.servers[server];
      counted.there += its.size();
      ++(compare(Request::add(item.key, std::string(item.value), Exptime::never()).on(server), seen)
             ? counted.there
             : counted.failed);
    } else {
      for (const Held& segment : its) place({segment.key, segment.flags, segment.ends_s, segment.value});
      place(item);
      finish_all();
    }
    file_.values.clear();
    return true;
  }

  // Removes the segments of `root` from held_ and returns them.
  std::vector<Held> segments_of(const std::string& root) {
    const auto others = std::stable_partition(held_.begin(), held_.end(),
                                              [&](const Held& segment) { return segment.with == root; });
    std::vector<Held> its(std::move_iterator(held_.begin()), std::move_iterator(others));
    held_.erase(held_.begin(), others);
    return its;
  }

  // Stores segments whose root is missing in the file, or differs.
  void place_held() {
    for (const Held& segment : held_) place({segment.key, segment.flags, segment.ends_s, segment.value});
    held_.clear();
  }

  // Returns nullopt if the item has expired.
  std::optional<Exptime> exptime_on(std::size_t server, std::int64_t ends_s, bool bounded) const {
    const WallTime now = context_.clock.wall();
    const std::int64_t now_s = whole_seconds(now);
    if (ends_s != 0 && ends_s <= now_s) return std::nullopt;
    if (bounded && (ends_s == 0 || ends_s > now_s + options_.max_ttl->count()))
      ends_s = now_s + options_.max_ttl->count();
    if (ends_s == 0) return Exptime::never();
    ends_s = std::min(ends_s, latest_end);
    if (const auto& clock = clocks_[server]) {
      if (const auto exptime = Exptime::absolute(ends_s + moving::seconds_ahead(moving::ClockLook{}, *clock)))
        return exptime;
    }
    return Exptime::at(WallTime(std::chrono::seconds(ends_s)), now);
  }

  // An element is recognized by its name only.
  static bool is_ours(const SavedAs& as) { return as.what != Savable::item || (as.element && as.exact); }
  static std::string placing_key(const SavedItem& item, const SavedAs& as) {
    return is_ours(as) ? placed(item.key, std::string(as.key_prefix)).placed_by() : std::string(item.key);
  }
  // Returns true if the item was saved from a server where its profile does not look: another, newer value
  // may be on the right one.
  bool was_misplaced(const SavedItem& item, const SavedAs& as) const {
    return options_.places && item.from && *item.from < options_.places->now.size() &&
           !options_.places->before->owners_of(placing_key(item, as)).has(*item.from);
  }

  // Returns all servers that must get the item, or none if it was misplaced and its server is gone.
  std::vector<Owner> places_of(const SavedItem& item) const {
    if (options_.on) return {{*options_.on}};
    const Placement& placement = context_.cluster.placement();
    const SavedAs as = as_of(item);
    if (was_misplaced(item, as)) {
      // Not to its old server if clients would read it there now.
      const auto& now = options_.places->now[*item.from];
      const bool is_read = now && placement.owners_of(placing_key(item, as)).has(*now);
      return now && !is_read ? std::vector<Owner>{{*now}} : std::vector<Owner>();
    }
    if (is_ours(as)) return {{placement.server_of(placing_key(item, as))}};
    if (placement.has_plain_owners()) return {{placement.server_of(item.key)}};
    std::vector<Owner> places = placement.owners_of(item.key).list;
    const Owner first = places.front();
    std::erase_if(places, [](const Owner& owner) { return !owner.must; });
    if (places.empty()) places.push_back(first);
    return places;
  }

  bool fits(const SavedItem& item, std::size_t server) {
    const std::uint64_t largest = largest_items_[server];
    if (item.value.size() <= max_value_size || largest == 0 ||
        item.key.size() + item.value.size() + item_overhead <= largest)
      return true;
    ++report_.servers[server].failed;
    watch_.failed(item.key, Failure(ErrorCode::refused,
                                    "an item of " + std::to_string(item.value.size()) +
                                        " bytes is larger than the server accepts; raise its -I",
                                    context_.cluster.address_of(server)));
    return false;
  }

  // Returns nullopt if the server does not report it.
  std::optional<std::uint64_t> evictions() const {
    const Reply reply = context_.cluster.execute(Request::stats(*options_.on));
    return reply.failed() ? std::nullopt : statistic_number(reply.value, "evictions");
  }

  void begin() {
    if (next_.empty()) return;
    limiter_.wait_for(next_.size(), context_.clock);
    writing_.push_back(context_.cluster.begin(std::exchange(next_, {})));
    next_bytes_ = 0;
    if (options_.while_room || writing_.size() >= writes_in_flight) finish_one();
    if (!options_.while_room) return;
    const auto now = evictions();
    evicts_ = now && evictions_ && *now > *evictions_;  // without the statistic, assume that it is not full
  }

  void finish_all() {
    begin();
    while (!writing_.empty()) finish_one();
  }

  void finish_one() {
    const auto& pending = writing_.front();  // valid until its replies are counted
    std::vector<Reply> replies = pending->finish();
    if (options_.overwrite) replace_what_is_there(pending->batch(), replies);
    const std::vector<bool> failed = merge_with_target(pending->batch(), replies);
    for (std::size_t i = 0; i < replies.size(); ++i) {
      if (failed[i])
        ++report_.servers[replies[i].server].failed;
      else
        count(pending->batch()[i], replies[i]);
    }
    writing_.pop_front();
    watch_.progress(done_ += replies.size());
  }

  void replace_what_is_there(std::span<const Request> batch, std::vector<Reply>& replies) const {
    std::vector<std::size_t> places;
    std::vector<Request> items;
    for (std::size_t i = 0; i < replies.size(); ++i) {
      if (replies[i].outcome != Outcome::not_stored || !replaces(as_of(batch[i]))) continue;
      places.push_back(i);
      items.push_back(batch[i]);
    }
    std::vector<Reply> stored = store(context_.cluster, items, Op::replace);
    for (std::size_t i = 0; i < places.size(); ++i) replies[places[i]] = std::move(stored[i]);
  }

  // Merges saved structures with existing ones. Returns which items failed; these were reported.
  std::vector<bool> merge_with_target(std::span<const Request> batch, std::span<const Reply> replies) {
    std::vector<bool> failed(replies.size());
    std::vector<std::size_t> places;
    std::vector<Request> gets;
    for (std::size_t i = 0; i < replies.size(); ++i) {
      if (replies[i].outcome != Outcome::not_stored || !is_of_structure(batch[i])) continue;
      places.push_back(i);
      gets.push_back(Request::get(batch[i].key).on(replies[i].server));
    }
    if (gets.empty()) return failed;
    const std::vector<Reply> seen = context_.cluster.execute(gets);
    for (std::size_t i = 0; i < places.size(); ++i) failed[places[i]] = !compare(batch[places[i]], seen[i]);
    return failed;
  }

  // A saved plain counter or element is stored like any item, but if one exists, the saved one is lost, so
  // report it.
  bool is_of_structure(const Request& request) const {
    const SavedAs as = as_of(request);
    if (replaces(as)) return false;
    return as.what == Savable::structure || as.what == Savable::counter ||
           (as.exact && (as.element || (as.structure == "counter" && parse_u64(request.value))));
  }

  // Compares a saved item with the existing one, and merges them if possible. Returns false if the existing
  // one is unknown or could not be changed.
  bool compare(const Request& request, const Reply& seen) {
    if (seen.failed()) {
      watch_.failed(request.key, failure_of_read(context_.cluster, seen));
      return false;
    }
    if (seen.outcome != Outcome::hit || seen.value == request.value) return true;
    const SavedAs as = as_of(request);
    if (!moving::StructureMerger::is_of(as.kind, request.value) ||
        !moving::StructureMerger::is_of(as.kind, seen.value)) {
      const bool conf =
          request.key.ends_with(":conf") && has_all_in_use(seen.value, request.value, context_.clock.wall());
      if (!conf) report_.other_structures.insert(full_name(as));
      return true;
    }
    file_.values[request.key] = request.value;
    const auto merged = attempt([&] {
      const Context file{file_, context_.clock, context_.random, "", 1};
      moving::StructureMerger(file, context_.cluster)
          .merge({request.key, seen.server, seen.server}, as.kind, request.value);
    });
    file_.values.erase(request.key);
    if (const auto& failure = merged.failure()) {
      watch_.failed(request.key, *failure);
      return false;
    }
    ++report_.merged;
    return true;
  }

  void count(const Request& request, const Reply& reply) {
    LoadedServer& server = report_.servers[reply.server];
    if (reply.outcome == Outcome::stored) {
      ++server.loaded;
    } else if (!reply.failed()) {
      ++server.there;
    } else {
      ++(reply.unknown() ? server.unknown : server.failed);
      watch_.failed(request.key, failure_of(context_.cluster, reply));
    }
  }

  LoadReport& report_;
  Context context_;
  LoadOptions options_;
  LoadWatch watch_;
  SavedItemsCluster file_;
  RateLimiter limiter_;
  std::size_t largest_batch_;
  moving::Clocks clocks_;
  std::vector<std::uint64_t> largest_items_;  // of the servers, in bytes; 0: unknown
  std::vector<char> refuses_;  // when full (-M), so that a refused set would remove the old value
  std::vector<Request> next_;
  std::size_t next_bytes_ = 0;
  std::deque<std::unique_ptr<Pending>> writing_;
  std::vector<Held> held_;  // segments whose root has not been read yet
  std::string held_of_;     // root of the structure that they belong to
  std::uint64_t done_ = 0;
  std::optional<std::uint64_t> evictions_;  // of `on`, before the first item
  bool evicts_ = false;
};

}  // namespace

void load_saved(const Context& context, const LoadOptions& options, const LoadWatch& watch,
                const std::function<std::optional<SavedItem>()>& next, LoadReport& report) {
  Loading loading(context, options, watch, report);
  try {
    while (const auto item = next()) loading.take(*item);
    loading.finish();
  } catch (...) {
    loading.give_up();
    throw;
  }
}

}  // namespace mcds
