// The data that the doctor collects about a pool: two readings of every server, some time apart, and the
// results of requests in between. gather.hpp fills it, checks.hpp judges it. Values that a server does not
// report are absent, never zero.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.hpp"
#include "common/cluster/request.hpp"
#include "common/cluster/statistics.hpp"
#include "common/placement/placement.hpp"
#include "common/placement/ring/check.hpp"

namespace mcds::doctor {

// The reply to one `stats ARGUMENT`: lines of name and value.
class StatisticsReply {
 public:
  StatisticsReply() = default;
  explicit StatisticsReply(std::string lines) : lines_(std::move(lines)) {}
  bool known() const { return !lines_.empty(); }
  std::optional<std::uint64_t> number(std::string_view name) const { return statistic_number(lines_, name); }
  std::optional<double> real(std::string_view name) const;
  std::optional<std::string_view> word(std::string_view name) const { return statistic(lines_, name); }
  // Returns true for `yes`, `on` and 1, false for `no`, `off` and 0, nullopt otherwise.
  std::optional<bool> on(std::string_view name) const;
  const std::string& lines() const { return lines_; }

 private:
  std::string lines_;
};

// The numbers of one slab class, from `stats items` (evicted, age …) and `stats slabs` (get_hits …).
using SlabClass = std::map<std::string, std::uint64_t, std::less<>>;
using SlabClasses = std::map<std::uint64_t, SlabClass>;
std::uint64_t metric_of(const SlabClass& one, std::string_view name);

struct Reading {
  bool up = false;
  std::shared_ptr<const ReplyFailure> failure;  // why it is down
  std::string silence;                          // why a server that is up gives no statistics
  StatisticsReply stats, settings;
  SlabClasses classes;
  bool knows_items = false, knows_slabs = false;
  WallTime asked{}, answered{};  // our clock, before and after `stats`
  SteadyTime at{};
};

// The two readings of a server, with the other results for it.
struct ServerSnapshot {
  std::string version;
  Reading before, after;
  std::vector<std::chrono::microseconds> probes;  // round trips of `version`
  bool lost_probe = false;                        // a probe was not answered in time
  std::optional<WallTime> certificate_ends;
  std::optional<std::vector<ClientConnections>> clients;  // if requested, or if few connections are left
  std::vector<std::string> addresses;  // of its host name, in the address family that has the most
  unsigned trips = 0;

  bool up() const { return before.up && after.up; }
  bool reported() const { return up() && before.stats.known() && after.stats.known(); }
  // Returns true if both readings are of the same process, so that its counters can be compared.
  bool comparable() const { return reported() && !restarted(); }
  // Returns true if the second reading is of another process, or of one that lost its counters.
  bool restarted() const;
  // Returns true if that process already ran at the first reading: a load balancer chose another server.
  bool is_balanced() const;
  double seconds() const { return std::chrono::duration<double>(after.at - before.at).count(); }
  // Returns the increase of a counter of `stats`; nullopt if unknown, reset, or after a restart.
  std::optional<std::uint64_t> grown(std::string_view name) const;
  std::optional<std::uint64_t> number(std::string_view name) const { return after.stats.number(name); }
  // Same as grown() and number(), but 0 if unknown.
  std::uint64_t rise(std::string_view name) const { return grown(name).value_or(0); }
  std::uint64_t count(std::string_view name) const { return number(name).value_or(0); }
  // Memcached 1.5.22 with maxconns_fast also counts each accepted client as rejected.
  bool counts_rejections() const { return count("rejected_connections") + 1 != count("total_connections"); }
  // Returns true if more than 80 % of its connections are in use, including those reserved for itself.
  bool has_few_connections_left() const {
    return (count("curr_connections") + count("reserved_fds")) * 10 > count("max_connections") * 8 &&
           count("max_connections") > 0;
  }
  // Returns the increase of a counter of one slab class.
  std::uint64_t class_grown(std::uint64_t number, std::string_view name) const;
  bool is_proxy() const { return number("proxy_conn_requests").has_value(); }
};

// One structure, as its keys in a list of live keys show it.
struct StructureSeen {
  std::string structure, name;          // with the namespace if that is not ours
  std::size_t copies = 1;               // of a lock only if its holder was read: the first endless one
  std::uint64_t largest_bytes = 0;      // its largest item
  std::size_t largest_on = 0;           // the server with that item
  std::optional<std::int64_t> ends_in;  // seconds to the last expiry of its keys; negative: never
  std::set<std::size_t> servers;
  std::map<std::size_t, std::set<std::uint64_t>> sizes;  // sizes of its items in bytes, by server
  bool in_namespace = false;  // in our namespace; in others it may be an application's key of such a name
  bool lost_parts = false;    // keys are missing that its other keys need

  bool is_endless_lock() const { return structure == "lock" && in_namespace && ends_in && *ends_in < 0; }
};

// The results of --live, from a part of the keys of every server.
struct LiveKeysSeen {
  // Misplaced: missing on its own server. Duplicated: also on another. Divergent: with another value.
  std::uint64_t keys = 0, misplaced = 0, duplicated = 0, divergent = 0;
  std::map<std::size_t, std::uint64_t> misplaced_on, duplicated_on;  // by the server that should not have it
  std::map<std::size_t, std::uint64_t> divergent_on;
  std::string divergent_prefix;  // common prefix of the divergent keys, after the namespace
  std::string guess;             // another profile that explains the misplaced keys, if any
  std::vector<StructureSeen> structures;
  std::map<std::size_t, std::string> unlisted;  // servers that did not list keys, and why
  std::vector<std::size_t> unwatched;           // servers that do not allow watching
};

struct Examination {
  std::shared_ptr<const Placement> placement;
  std::vector<ServerSnapshot> snapshots;       // one for each server of the pool
  std::vector<Finding> ring;                   // the findings of `ring check`
  bool ignores_weights = false;                // the client places keys as if all weights were 1
  std::vector<double> shares, fair;            // of the keys: by the ring, and by the weights
  std::vector<std::vector<std::size_t>> same;  // groups of pool entries that are one server
  std::optional<LiveKeysSeen> live;
  Duration interval{};
  WallTime now{};

  const Pool& pool() const { return placement->pool(); }
  std::size_t size() const { return snapshots.size(); }
};

}  // namespace mcds::doctor
