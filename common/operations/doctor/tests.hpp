// The tests of the table in checks.cpp, by what they are about, and what several of them use.
#pragma once

#include "common/operations/doctor/checks.hpp"

namespace mcds::doctor {

using enum Severity;

// reach.cpp
// Why a server does not answer: one test for each cause.
enum class Cause { none, down, silent, full, login, no_login, certificate, foreign };
template <Cause cause>
void failed(const Patient& patient, Diagnosis& diagnosis);
TestServer silent, login_unused, connections_full, certificate_ends, several_addresses, balancer;
TestPool slow, same_server;
// releases.cpp
TestServer known_fault, restarted, restarted_lately, clock_stands;
TestPool mixed_abilities, mixed_versions, clock_off, clock_here;
// settings.cpp
TestServer limits_low, small_items_only, flush_scheduled, flushed, udp_open, detail_on, verbose, no_crawler,
    no_cas;
TestPool drift, dump_off, stats_off, proxy_among_servers;
// memory.cpp
TestServer class_starves, evicts_young, evicts_unfetched, evicting, refuses_stores, refused_before, full,
    too_large, hash_growing, hash_crowded, allocation_fails;
TestPool weights_against_memory;
// traffic.cpp
TestServer connections_high, connections_ran_out, yields, idle_connections, logins_fail, handshakes_fail,
    connects_per_request, busy, hit_ratio_falls, nothing_hits;
TestPool load_uneven, hit_ratio_differs;
// live_servers.cpp
TestPool misplaced, duplicated, divergent, near_size_limit, lost_parts, two_numbers_of_copies, endless_lock,
    evicts_structures, evicted_before, one_page, unlisted, watch_off;
// Of the check's own name: what `ring check` found.
TestPool ring_finding;

constexpr std::uint64_t hour_s = 3600, day_s = 24 * hour_s;

// 10618 for 1.6.18; 0: not in memcached's form, or not memcached.
std::uint32_t release_of(const Patient& patient);
// Items that were asked for, stored and touched.
std::optional<std::uint64_t> requests_grown(const Patient& patient);
// The count per second between the looks, and a share: numbers of JSON.
std::string per_second(std::uint64_t count, const Patient& patient);
std::string three_digits(double value);

}  // namespace mcds::doctor
