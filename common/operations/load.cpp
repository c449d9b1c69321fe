#include "common/operations/load.hpp"

#include <deque>

#include "common/base/pace.hpp"
#include "common/cluster/statistics.hpp"
#include "common/operations/move/expiry.hpp"
#include "common/operations/never_saved.hpp"
#include "common/operations/store.hpp"
#include "common/primitives/parts.hpp"

namespace mcds {

namespace {

constexpr std::size_t writes_in_flight = 3;
constexpr std::size_t batch_while_room = 64;
// The clocks of servers may differ.
constexpr std::int64_t latest_end = Exptime::latest - 24 * 3600;
// What an item takes beside its key and value, at most.
constexpr std::size_t item_overhead = 80;

class Loading {
 public:
  // Asks the servers for their time and their largest item.
  Loading(const Context& context, LoadOptions options, LoadWatch watch)
      : context_(context),
        options_(std::move(options)),
        watch_(std::move(watch)),
        pace_(options_.rate, context.clock.steady()),
        largest_batch_(pace_.largest_batch()) {
    const std::size_t servers = context_.cluster.placement().pool().size();
    report_.servers.resize(servers);
    largest_items_.resize(servers);
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
      if (!reply.failed())
        largest_items_[reply.server] = statistic_number(reply.value, "item_size_max").value_or(0);
    }
  }

  void take(const SavedItem& item) {
    if (!options_.selection.has(item.key)) return;
    ++report_.items;
    const SavedAs as = saved_as(item.key, options_.selection.key_prefix, context_.copies);
    if (const char* why = never_saved(as, item.key, item.value, item.flags)) {
      ++report_.passed_over[why];
      return;
    }
    if (evicts_) {
      ++report_.no_room;
      return;
    }
    for (const Owner& place : places_of(item)) {
      const auto exptime = exptime_on(place.server, item.ends_s);
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
      request.flags = item.flags;
      next_.push_back(std::move(request).on(place.server));
      next_bytes_ += item.key.size() + item.value.size();
    }
    if (next_.size() >= largest_batch_ || next_bytes_ >= batch_bytes) begin();
  }

  const LoadReport& finish() {
    begin();
    while (!writing_.empty()) finish_one();
    return report_;
  }

 private:
  // nullopt: it has ended.
  std::optional<Exptime> exptime_on(std::size_t server, std::int64_t ends_s) const {
    const WallTime now = context_.clock.wall();
    const std::int64_t now_s = std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
    if (ends_s != 0 && ends_s <= now_s) return std::nullopt;
    if (options_.max_ttl && (ends_s == 0 || ends_s > now_s + options_.max_ttl->count()))
      ends_s = now_s + options_.max_ttl->count();
    if (ends_s == 0) return Exptime::never();
    ends_s = std::min(ends_s, latest_end);
    if (const auto& clock = clocks_[server]) {
      if (const auto exptime = Exptime::absolute(ends_s + moving::seconds_ahead(moving::ClockLook{}, *clock)))
        return exptime;
    }
    return Exptime::at(WallTime(std::chrono::seconds(ends_s)), now);
  }

  // Of the client, or of our structures; all in which the item must be.
  std::vector<Owner> places_of(const SavedItem& item) const {
    if (options_.on) return {{*options_.on}};
    const Placement& placement = context_.cluster.placement();
    const SavedAs as = saved_as(item.key, options_.selection.key_prefix, context_.copies);
    if (as.what != Savable::item)
      return {{placement.server_of(placed(item.key, std::string(as.key_prefix)).placed_by())}};
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
    fail(
        item.key, server, ErrorCode::refused,
        "its " + std::to_string(item.value.size()) + " bytes are more than the server accepts; raise its -I");
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

  void finish_one() {
    const auto pending = std::move(writing_.front());
    writing_.pop_front();
    std::vector<Reply> replies = pending->finish();
    if (options_.overwrite) replace_what_is_there(pending->batch(), replies);
    for (std::size_t i = 0; i < replies.size(); ++i) count(pending->batch()[i], replies[i]);
    watch_.progress(done_ += replies.size());
  }

  void replace_what_is_there(std::span<const Request> batch, std::vector<Reply>& replies) const {
    std::vector<std::size_t> places;
    std::vector<Request> items;
    for (std::size_t i = 0; i < replies.size(); ++i) {
      if (replies[i].outcome != Outcome::not_stored) continue;
      places.push_back(i);
      items.push_back(batch[i]);
    }
    std::vector<Reply> stored = store(context_.cluster, items, Op::replace);
    for (std::size_t i = 0; i < places.size(); ++i) replies[places[i]] = std::move(stored[i]);
  }

  void count(const Request& request, const Reply& reply) {
    LoadedServer& server = report_.servers[reply.server];
    if (reply.outcome == Outcome::stored) {
      ++server.loaded;
    } else if (!reply.failed()) {
      ++server.there;
    } else {
      ++(reply.unknown() ? server.unknown : server.failed);
      fail(request.key, reply.server, error_code_of(*reply.failure), reply.failure->message);
    }
  }

  void fail(const std::string& key, std::size_t server, ErrorCode code, const std::string& message) {
    watch_.failed(key, Failure(code, message, context_.cluster.address_of(server)));
  }

  Context context_;
  LoadOptions options_;
  LoadWatch watch_;
  Pace pace_;
  std::size_t largest_batch_;
  moving::Clocks clocks_;
  std::vector<std::uint64_t> largest_items_;  // of the servers; 0: unknown
  std::vector<Request> next_;
  std::size_t next_bytes_ = 0;
  std::deque<std::unique_ptr<Pending>> writing_;
  std::uint64_t done_ = 0;
  std::optional<std::uint64_t> evictions_;  // of `on`, before the first item
  bool evicts_ = false;
  LoadReport report_;
};

}  // namespace

LoadReport load_saved(const Context& context, const LoadOptions& options, const LoadWatch& watch,
                      const std::function<std::optional<SavedItem>()>& next) {
  Loading loading(context, options, watch);
  while (const auto item = next()) loading.take(*item);
  return loading.finish();
}

}  // namespace mcds
