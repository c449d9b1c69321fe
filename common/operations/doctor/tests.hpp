// The tests of the table in checks.cpp, by what they are about, and what several of them use.
#pragma once

#include "common/operations/doctor/checks.hpp"

namespace mcds::doctor {

using Test = void(const Examination& seen, Diagnosis& diagnosis);

// reach.cpp
Test down, silent, login_refused, login_unused, certificate_refused, certificate_ends, wrong_service, slow,
    same_server, several_addresses, balancer;
// versions.cpp
Test known_fault, mixed_abilities, mixed_versions, restarted, restarted_lately, clock_off, clock_here,
    clock_stands;
// settings.cpp
Test drift, limits_low, small_items_only, dump_off, stats_off, flush_scheduled, flushed, udp_open, detail_on,
    verbose, no_crawler, proxy_among_servers, no_cas;
// memory.cpp
Test weights_against_memory, class_starves, evicts_young, evicts_unfetched, evicting, refuses_stores,
    refused_before, full, too_large, hash_growing, hash_crowded, allocation_fails;
// load.cpp
Test connections_full, connections_high, connections_ran_out, yields, idle_connections, logins_fail,
    handshakes_fail, connects_per_request, busy, load_uneven, hit_ratio_falls, hit_ratio_differs,
    nothing_hits;
// live.cpp
Test misplaced, duplicated, near_size_limit, lost_parts, recopy_left, two_numbers_of_copies, endless_lock,
    evicts_structures, unlisted, watch_off;
// Of the check's own name: what `ring check` found.
Test ring_finding;

constexpr std::uint64_t hour_s = 3600, day_s = 24 * hour_s;

// 10618 for 1.6.18; 0: not in memcached's form, or not memcached.
std::uint32_t release_of(const Patient& patient);
// Items that were asked for, stored and touched.
std::optional<std::uint64_t> requests_grown(const Patient& patient);
JsonObject& per_second(JsonObject& evidence, std::string_view name, std::uint64_t count,
                       const Patient& patient);
JsonObject& share(JsonObject& evidence, std::string_view name, double value);

}  // namespace mcds::doctor
