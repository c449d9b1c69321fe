// Mistakes in requests that a careless client could make. Simulation and exploration must both detect them.
#pragma once

#include <algorithm>
#include <chrono>

#include "common/base/bytes.hpp"
#include "common/cluster/request.hpp"
#include "common/placement/placement.hpp"

namespace mcds::test {

// Writes over any cas token.
inline void write_without_comparing(Request& request) {
  if (request.op == Op::cas) request.op = Op::set;
}

inline void add_over_what_is_there(Request& request) {
  if (request.op == Op::add) request.op = Op::set;
}

// Lets a lock expire too early.
inline void expire_with_the_ttl(Request& request) {
  const std::int64_t seconds = request.exptime.wire();
  if (seconds > 2) request.exptime = Exptime::after(std::chrono::seconds(seconds - 2), WallTime{});
}

inline void release_without_comparing(Request& request) {
  if (request.op == Op::remove_if) request.op = Op::remove;
}

// Returns true for the entry of the cache `k`.
inline bool is_entry(const Request& request) {
  return request.key == "cache:k";
}

inline void store_by_set(Request& request) {
  if (request.op == Op::cas && is_entry(request)) request.op = Op::set;
}

inline void lock_by_set(Request& request) {
  if (request.op == Op::add && !is_entry(request)) request.op = Op::set;
}

// Hides a placeholder's owner: a late one, or another client's, is then mistaken for the invalidated one.
inline void placeholder_of_nobody(Request& request) {
  if (request.op == Op::add && is_entry(request))
    request.value = "P1 0000000000000000 *" + checksum("P1 0000000000000000") + "\n";
}

// Places the further parts of a copy by their own bytes, so that two copies share a server.
inline auto guess_owner(const Placement& placement, std::size_t copies) {
  return [&placement, copies](Request& request) {
    if (request.with.empty() || !request.server) return;
    const auto right = placement.servers_of(request.with, copies);
    const auto copy =
        static_cast<std::size_t>(std::find(right.begin(), right.end(), *request.server) - right.begin());
    if (copy < copies) request.server = placement.servers_of(request.key, copies)[copy];
  };
}

}  // namespace mcds::test
