// What the doctor saw of a pool: two looks at every server, some time apart, and what was asked of it in
// between.
//
// Only data; gather.hpp fills it, checks.hpp judges it. What a server did not tell is absent, never zero.
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

// The answer to one `stats ARGUMENT`: lines of name and value.
class Figures {
 public:
  Figures() = default;
  explicit Figures(std::string lines) : lines_(std::move(lines)) {}
  bool known() const { return !lines_.empty(); }
  std::optional<std::uint64_t> number(std::string_view name) const { return statistic_number(lines_, name); }
  std::optional<double> real(std::string_view name) const;
  std::optional<std::string_view> word(std::string_view name) const { return statistic(lines_, name); }
  // `yes`, `on` and 1; `no`, `off` and 0.
  std::optional<bool> on(std::string_view name) const;
  const std::string& lines() const { return lines_; }

 private:
  std::string lines_;
};

// The figures of one slab class, of `stats items` (evicted, age and others) and `stats slabs` (get_hits and
// others).
using SlabClass = std::map<std::string, std::uint64_t, std::less<>>;
using SlabClasses = std::map<std::uint64_t, SlabClass>;
std::uint64_t figure_of(const SlabClass& one, std::string_view name);

struct Look {
  bool up = false;
  std::shared_ptr<const ReplyFailure> failure;  // why it is down
  std::string silence;                          // up, but why it gives no statistics
  Figures stats, settings;
  SlabClasses classes;
  bool knows_items = false, knows_slabs = false;
  WallTime asked{}, answered{};  // our clock, around `stats`
  SteadyTime at{};
};

// A server's two looks and what came with them.
struct Patient {
  std::string version;
  Look first, second;
  std::vector<std::chrono::microseconds> probes;  // round trips of one word
  bool lost_probe = false;                        // one of them got no answer in time
  std::optional<WallTime> certificate_ends;
  std::optional<std::vector<ClientConnections>> clients;  // if asked for, or if few connections are left
  std::vector<std::string> addresses;                     // of its host name, of the family with the most
  unsigned trips = 0;

  bool up() const { return first.up && second.up; }
  bool told() const { return up() && first.stats.known() && second.stats.known(); }
  // What it counts is of one process at both looks.
  bool comparable() const { return told() && !restarted(); }
  // Another process answers at the second look, or the same one has lost its past.
  bool restarted() const;
  // That process was there before the first look: the second one has a connection of its own.
  bool is_balanced() const;
  double seconds() const { return std::chrono::duration<double>(second.at - first.at).count(); }
  // What a counter of `stats` rose by; nullopt: unknown, set back, or restarted.
  std::optional<std::uint64_t> grown(std::string_view name) const;
  std::optional<std::uint64_t> number(std::string_view name) const { return second.stats.number(name); }
  // The same two, and 0 if they are unknown.
  std::uint64_t rise(std::string_view name) const { return grown(name).value_or(0); }
  std::uint64_t count(std::string_view name) const { return number(name).value_or(0); }
  // Memcached 1.5.22 with maxconns_fast counts every client that it accepts as turned away, too.
  bool counts_rejections() const { return count("rejected_connections") + 1 != count("total_connections"); }
  // Returns whether more than 80 % of its connections are in use, with what it keeps for itself.
  bool has_few_connections_left() const {
    return (count("curr_connections") + count("reserved_fds")) * 10 > count("max_connections") * 8 &&
           count("max_connections") > 0;
  }
  // The same of a counter of one slab class.
  std::uint64_t class_grown(std::uint64_t number, std::string_view name) const;
  bool is_proxy() const { return number("proxy_conn_requests").has_value(); }
};

// Of one structure, what its keys in a list of live keys show.
struct StructureSeen {
  std::string structure, name;  // the name with its namespace, if that is not ours
  std::size_t copies = 1;
  std::uint64_t largest_bytes = 0;      // of its keys, the largest item
  std::size_t largest_on = 0;           // the server that has it
  std::optional<std::int64_t> ends_in;  // seconds to the last expiry of its keys; negative: never
  std::set<std::size_t> servers;
  std::map<std::size_t, std::set<std::uint64_t>> sizes;  // of its items, in bytes, by server
  bool in_namespace = false;  // ours; in another it may be an application's key of such a name
  bool lost_parts = false;    // keys are missing that its others need
};

// What --live adds: a part of the keys of every server.
struct LiveKeysSeen {
  // Misplaced: its own server has it not. Duplicated: on another server, too. Divergent: with another value.
  std::uint64_t keys = 0, misplaced = 0, duplicated = 0, divergent = 0;
  std::map<std::size_t, std::uint64_t> misplaced_on, duplicated_on;  // by the server where it does not belong
  std::map<std::size_t, std::uint64_t> divergent_on;
  std::string divergent_prefix;  // that those have in common, behind the namespace
  std::string guess;             // the client that explains them, if there is another
  std::vector<StructureSeen> structures;
  std::vector<std::size_t> unlisted;   // servers that did not list keys
  std::vector<std::size_t> unwatched;  // and those that let nobody watch them
};

struct Examination {
  std::shared_ptr<const Placement> placement;
  std::vector<Patient> patients;               // one for each server of the pool
  std::vector<Finding> ring;                   // what `ring check` says
  std::vector<double> shares, fair;            // of the keys: as the ring gives them, and as the weights ask
  std::vector<std::vector<std::size_t>> same;  // groups of entries that are one server
  std::optional<LiveKeysSeen> live;
  Duration interval{};
  WallTime now{};

  const Pool& pool() const { return placement->pool(); }
  std::size_t size() const { return patients.size(); }
};

}  // namespace mcds::doctor
