#include "common/operations/load.hpp"

#include <deque>
#include <unordered_map>

#include "common/base/bounds.hpp"
#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/cluster/decorators.hpp"
#include "common/cluster/statistics.hpp"
#include "common/journal/journal.hpp"
#include "common/operations/expiry.hpp"
#include "common/operations/never_saved.hpp"
#include "common/operations/roots.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/primitives/in_use.hpp"
#include "common/primitives/key_names.hpp"

namespace mcds {

namespace {

constexpr std::size_t writes_in_flight = 3;
constexpr std::size_t batch_while_room = 64;
// The clocks of servers may differ.
constexpr std::int64_t latest_end = Exptime::latest - 24 * 3600;

// Has what was read of the file, as if that were a server.
class FileAsCluster final : public Decorator {
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

// Whether what is in use by the one is by the other.
bool has_all_in_use(std::string_view value, std::string_view wanted, WallTime now) {
  const std::vector<InUse> there = parse_in_use(value, now);
  return std::ranges::all_of(parse_in_use(wanted, now), [&](const InUse& one) {
    return std::ranges::find(there, one.what, &InUse::what) != there.end();
  });
}

class Loading {
 public:
  // Asks the servers for their time and their largest item.
  Loading(const Context& context, LoadOptions options, LoadWatch watch, LoadReport& report)
      : report_(report),
        context_(context),
        options_(std::move(options)),
        watch_(std::move(watch)),
        file_(context.cluster),
        pace_(options_.rate, context.clock.steady()),
        largest_batch_(pace_.largest_batch()) {
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
    clocks_ = moving::look_at_clocks(context_.cluster, context_.clock);
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
      ++report_.passed_over[as.why];
      return;
    }
    if (evicts_) {
      ++report_.no_room;
      return;
    }
    if (!held_.empty() && as.root != held_of_) place_held();
    if (as.what == Savable::structure && !options_.dry_run && !replaces(as) && take_journal(item, as)) return;
    place(item);
  }

  void finish() {
    place_held();
    finish_all();
    for (const auto& [manifest, entries] : stale_) forget_in(manifest, entries);
  }

  // What is on its way may arrive.
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

  // `one`: a saved item, or a request that stores it.
  SavedAs as_of(const auto& one) const {
    return judged(saved_as(one.key, options_.selection.key_prefix), one.key, one.value, one.flags);
  }

  // Of a structure all or nothing. An element in another namespace may also be an application's item.
  bool is_selected(const SavedItem& item, const SavedAs& as) const {
    const bool ours = as.element || (as.grouped && as.what != Savable::item);
    if (ours && selects(options_.selection, as)) return true;
    return (!ours || (as.element && !as.exact)) && options_.selection.has(item.key);
  }

  // An index lists what there is and what was; the elements themselves are replaced.
  bool replaces(const SavedAs& as) const {
    const bool index = as.what == Savable::structure && (as.structure == "table" || as.structure == "hash");
    return options_.overwrite && !index;
  }

  // What is put into a structure later would end with what was loaded of it.
  bool is_bounded(const SavedItem& item) const {
    if (!options_.max_ttl || item.ends_s != 0) return options_.max_ttl.has_value();
    const SavedAs as = as_of(item);
    return as.what == Savable::item && !as.element;
  }

  void place(const SavedItem& item) {
    const bool bounded = is_bounded(item), replaces_all = options_.overwrite && replaces(as_of(item));
    const std::vector<Owner> places = places_of(item);
    report_.astray += places.empty() ? 1 : 0;
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

  // A journal that has outgrown an item: its segments wait for its root, because what is there may be united
  // with it instead. False: it is none of this.
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

  // Takes them from those that are held.
  std::vector<Held> segments_of(const std::string& root) {
    const auto others = std::stable_partition(held_.begin(), held_.end(),
                                              [&](const Held& segment) { return segment.with == root; });
    std::vector<Held> its(std::move_iterator(held_.begin()), std::move_iterator(others));
    held_.erase(held_.begin(), others);
    return its;
  }

  // Whose root is not in the file, or is another.
  void place_held() {
    for (const Held& segment : held_) place({segment.key, segment.flags, segment.ends_s, segment.value});
    held_.clear();
  }

  // nullopt: it has ended.
  std::optional<Exptime> exptime_on(std::size_t server, std::int64_t ends_s, bool bounded) const {
    const WallTime now = context_.clock.wall();
    const std::int64_t now_s = std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
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

  // Returns all servers on which the item must be; none if it was astray and its server is gone.
  std::vector<Owner> places_of(const SavedItem& item) const {
    if (options_.on) return {{*options_.on}};
    const Placement& placement = context_.cluster.placement();
    const SavedAs as = as_of(item);
    // Nothing but the name tells an element.
    const bool ours = as.what != Savable::item || (as.element && as.exact);
    const std::string key = ours ? placed(item.key, std::string(as.key_prefix)).placed_by() : item.key;
    if (options_.places && item.from && *item.from < options_.places->now.size() &&
        as.what != Savable::structure && !options_.places->before->owners_of(key).has(*item.from)) {
      const auto& now = options_.places->now[*item.from];
      return now ? std::vector<Owner>{{*now}} : std::vector<Owner>();
    }
    if (ours) return {{placement.server_of(key)}};
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
                                    "its " + std::to_string(item.value.size()) +
                                        " bytes are more than the server accepts; raise its -I",
                                    context_.cluster.address_of(server)));
    return false;
  }

  // nullopt: it does not say.
  std::optional<std::uint64_t> evictions() const {
    const Reply reply = context_.cluster.execute(Request::stats(*options_.on));
    return reply.failed() ? std::nullopt : statistic_number(reply.value, "evictions");
  }

  void begin() {
    if (next_.empty()) return;
    pace_.wait_for(next_.size(), context_.clock);
    writing_.push_back(context_.cluster.begin(std::exchange(next_, {})));
    next_bytes_ = 0;
    if (options_.while_room || writing_.size() >= writes_in_flight) finish_one();
    if (!options_.while_room) return;
    const auto now = evictions();
    evicts_ = now && evictions_ && *now > *evictions_;  // a server that does not say is no full one
  }

  void finish_all() {
    begin();
    while (!writing_.empty()) finish_one();
  }

  void finish_one() {
    const auto& pending = writing_.front();  // till its replies are counted
    std::vector<Reply> replies = pending->finish();
    if (options_.overwrite) replace_what_is_there(pending->batch(), replies);
    const std::vector<bool> failed = unite_what_is_there(pending->batch(), replies);
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

  // Which could not be, and were told.
  std::vector<bool> unite_what_is_there(std::span<const Request> batch, std::span<const Reply> replies) {
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

  // A counter of digits is an item like others, but what it had counted is lost.
  bool is_of_structure(const Request& request) const {
    const SavedAs as = as_of(request);
    if (replaces(as)) return false;
    return as.what == Savable::structure || as.what == Savable::counter ||
           (as.structure == "counter" && as.exact && parse_u64(request.value));
  }

  // With what is there instead. False: that is not known, or could not be changed.
  bool compare(const Request& request, const Reply& seen) {
    if (seen.failed()) {
      watch_.failed(request.key, failure_of_read(context_.cluster, seen));
      return false;
    }
    if (seen.outcome != Outcome::hit || seen.value == request.value) return true;
    const SavedAs as = as_of(request);
    if (!moving::Roots::is_of(as.kind, request.value) || !moving::Roots::is_of(as.kind, seen.value)) {
      const bool conf =
          request.key.ends_with(":conf") && has_all_in_use(seen.value, request.value, context_.clock.wall());
      if (!conf) report_.other_structures.insert(full_name(as));
      return true;
    }
    file_.values[request.key] = request.value;
    const auto united = attempt([&] {
      const Context file{file_, context_.clock, context_.random, "", 1};
      moving::Roots(file, context_.cluster)
          .unite({request.key, seen.server, seen.server}, as.kind, request.value);
    });
    file_.values.erase(request.key);
    if (const auto& failure = united.failure()) {
      watch_.failed(request.key, *failure);
      return false;
    }
    ++report_.united;
    note_incarnations(as, request, seen.value);
    return true;
  }

  // What a shard had goes on in the one that is there, and is not lost with the incarnation that the manifest
  // names.
  void note_incarnations(const SavedAs& as, const Request& request, std::string_view there) {
    constexpr std::string_view mark = ":i:";
    const std::string_view part = std::string_view(request.key).substr(as.root.size());
    if ((as.structure != "table" && as.structure != "hash") || !part.starts_with(mark)) return;
    const auto saved = decode_journal_root(request.value), now = decode_journal_root(there);
    if (saved && now && saved->incarnation != now->incarnation)
      stale_[std::string(as.root) + ":i"].insert(std::string(part.substr(mark.size())) + ':' +
                                                 saved->incarnation);
  }

  void forget_in(const std::string& manifest, const std::set<std::string>& entries) {
    const auto done = attempt([&] {
      Journal(context_, manifest).compact([&](std::vector<JournalLine> lines) {
        std::erase_if(lines, [&](const JournalLine& line) {
          return line.change == Change::add && entries.contains(line.element);
        });
        return lines;
      });
    });
    if (const auto& failure = done.failure()) watch_.failed(manifest, *failure);
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
  FileAsCluster file_;
  Pace pace_;
  std::size_t largest_batch_;
  moving::Clocks clocks_;
  std::vector<std::uint64_t> largest_items_;  // of the servers; 0: unknown
  std::vector<char> refuses_;                 // one that is full (-M): a set would lose what is there
  std::vector<Request> next_;
  std::size_t next_bytes_ = 0;
  std::deque<std::unique_ptr<Pending>> writing_;
  std::vector<Held> held_;                              // segments
  std::string held_of_;                                 // of this structure
  std::map<std::string, std::set<std::string>> stale_;  // what manifests are to name no longer
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
