// The tests of the table in checks.cpp, by source file, and helpers shared by them.
#pragma once

#include "common/operations/doctor/checks.hpp"

namespace mcds::doctor {

using enum Severity;

// reach.cpp
// Tests why a server does not answer, one for each cause.
enum class Cause { none, down, silent, full, login, no_login, certificate, foreign };
template <Cause cause>
void failed(const ServerSnapshot& snapshot, Diagnosis& diagnosis);
ServerCheck silent, login_unused, connections_full, certificate_ends, several_addresses, balancer;
PoolCheck slow, same_server;
// releases.cpp
ServerCheck known_fault, restarted, restarted_lately, clock_stands;
PoolCheck mixed_abilities, mixed_versions, clock_off, clock_here;
// settings.cpp
ServerCheck limits_low, small_items_only, flush_scheduled, flushed, udp_open, detail_on, verbose, no_crawler,
    no_cas, dump_off, stats_off;
PoolCheck drift, proxy_among_servers;
// memory.cpp
ServerCheck class_starves, evicts_young, evicts_unfetched, evicting, refuses_stores, refused_before, full,
    too_large, hash_growing, hash_crowded, allocation_fails;
PoolCheck weights_against_memory;
// traffic.cpp
ServerCheck connections_high, connections_ran_out, yields, idle_connections, logins_fail, handshakes_fail,
    connects_per_request, busy, hit_ratio_falls, nothing_hits;
PoolCheck load_uneven, hit_ratio_differs;
// live_servers.cpp
PoolCheck misplaced, duplicated, divergent, near_size_limit, lost_parts, two_numbers_of_copies, endless_lock,
    evicts_structures, evicted_before, one_page, unlisted, watch_off;
// Reports the finding of `ring check` with the check's name.
PoolCheck ring_finding;

constexpr std::uint64_t hour_s = 3600, day_s = 24 * hour_s;

// Returns 10618 for 1.6.18, or 0 if the version is not in memcached's form.
std::uint32_t release_of(const ServerSnapshot& snapshot);
// Returns the number of items read, stored and touched between the readings.
std::optional<std::uint64_t> requests_grown(const ServerSnapshot& snapshot);
// Return JSON numbers: the count per second between the readings, and a value with three digits.
std::string per_second(std::uint64_t count, const ServerSnapshot& snapshot);
std::string three_digits(double value);

}  // namespace mcds::doctor
