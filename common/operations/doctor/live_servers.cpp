// Tests of the keys that servers hold. Checks that need live keys run only if these were listed.
#include <algorithm>
#include <iterator>

#include "common/operations/doctor/check_functions.hpp"

namespace mcds::doctor {

namespace {

constexpr double many = 0.1, some = 0.01;
constexpr std::size_t shown_names = 5;

// Adds one finding for all structures for which `bad` is true.
template <typename Bad>
void add_structures(const Examination& seen, Diagnosis& diagnosis, Severity severity, const Bad& bad) {
  std::vector<std::string> names;
  std::string last;
  std::set<std::size_t> servers;
  std::uint64_t count = 0;
  for (const StructureSeen& one : seen.live->structures) {
    if (!bad(one)) continue;
    servers.insert(one.servers.begin(), one.servers.end());
    std::string name = one.structure + ' ' + one.name;
    if (name == last) continue;  // listed under another copy count
    ++count;
    if (names.size() < shown_names) names.push_back(name);
    last = std::move(name);
  }
  if (count > 0)
    diagnosis.add_one({servers.begin(), servers.end()},
                      JsonObject().strings("names", names).number("count", count), severity);
}

// Returns true if `is` holds for a slab class of the server that has items of this structure.
template <typename Is>
bool any_class(const Examination& seen, const StructureSeen& one, std::size_t server, const Is& is) {
  const auto sizes = one.sizes.find(server);
  if (sizes == one.sizes.end()) return false;
  std::map<std::uint64_t, const SlabClass*> by_chunk;
  for (const auto& [number, metrics] : seen.snapshots[server].after.classes)
    by_chunk.emplace(metric_of(metrics, "chunk_size"), &metrics);
  if (by_chunk.empty()) return false;
  return std::ranges::any_of(sizes->second, [&](std::uint64_t size) {
    const auto holds = by_chunk.lower_bound(size);
    return is(*(holds == by_chunk.end() ? std::prev(holds) : holds)->second);
  });
}

double share_in(const LiveKeysSeen& live, std::uint64_t keys) {
  return static_cast<double>(keys) / static_cast<double>(live.keys);
}

JsonObject share_of_keys(const LiveKeysSeen& live, const char* name, std::uint64_t keys) {
  JsonObject evidence;
  return evidence.number("keys", live.keys)
      .number(name, keys)
      .raw("share", three_digits(share_in(live, keys)));
}

Severity by_share(const LiveKeysSeen& live, std::uint64_t keys) {
  const double part = share_in(live, keys);
  if (part >= many) return problem;
  return part >= some ? warning : note;
}

std::vector<std::size_t> max_first(const std::map<std::size_t, std::uint64_t>& counts) {
  std::vector<std::size_t> servers;
  for (const auto& [server, count] : counts) servers.push_back(server);
  std::ranges::stable_sort(
      servers, [&](std::size_t one, std::size_t other) { return counts.at(one) > counts.at(other); });
  return servers;
}

}  // namespace

void misplaced(const Examination& seen, Diagnosis& diagnosis) {
  if (seen.live->misplaced == 0) return;
  JsonObject evidence = share_of_keys(*seen.live, "misplaced", seen.live->misplaced);
  if (!seen.live->guess.empty()) evidence.bytes("placed_by", seen.live->guess);
  diagnosis.add_one(max_first(seen.live->misplaced_on), evidence, by_share(*seen.live, seen.live->misplaced));
}

void duplicated(const Examination& seen, Diagnosis& diagnosis) {
  if (seen.live->duplicated == 0) return;
  diagnosis.add_one(max_first(seen.live->duplicated_on),
                    share_of_keys(*seen.live, "duplicated", seen.live->duplicated),
                    by_share(*seen.live, seen.live->duplicated));
}

void divergent(const Examination& seen, Diagnosis& diagnosis) {
  if (seen.live->divergent == 0) return;
  JsonObject evidence = share_of_keys(*seen.live, "divergent", seen.live->divergent);
  diagnosis.add_one(max_first(seen.live->divergent_on), evidence.bytes("prefix", seen.live->divergent_prefix),
                    problem);
}

// Only an array with the JSON encoding is one item: journals and event logs that fill theirs go on in others.
void near_size_limit(const Examination& seen, Diagnosis& diagnosis) {
  add_structures(seen, diagnosis, warning, [&](const StructureSeen& one) {
    const auto largest = seen.snapshots[one.largest_on].before.settings.number("item_size_max");
    return one.structure == "array" && one.name.ends_with(":json") && largest &&
           one.largest_bytes * 10 > *largest * 9;
  });
}

void lost_parts(const Examination& seen, Diagnosis& diagnosis) {
  add_structures(seen, diagnosis, problem,
                 [](const StructureSeen& one) { return one.lost_parts && one.in_namespace; });
}

void two_numbers_of_copies(const Examination& seen, Diagnosis& diagnosis) {
  std::map<std::pair<std::string, std::string>, std::set<std::size_t>> copies;
  for (const StructureSeen& one : seen.live->structures) copies[{one.structure, one.name}].insert(one.copies);
  add_structures(seen, diagnosis, warning, [&](const StructureSeen& one) {
    return copies[{one.structure, one.name}].size() > 1;
  });
}

void endless_lock(const Examination& seen, Diagnosis& diagnosis) {
  add_structures(seen, diagnosis, warning, [](const StructureSeen& one) { return one.is_endless_lock(); });
}

// Reports structures on servers that evict items sooner than the structures expire.
void evicts_structures(const Examination& seen, Diagnosis& diagnosis) {
  std::vector<std::optional<std::uint64_t>> idle(seen.size());
  for (std::size_t i = 0; i < seen.size(); ++i) {
    for (const auto& [number, one] : seen.snapshots[i].after.classes) {
      if (seen.snapshots[i].class_grown(number, "evicted") > 0)
        idle[i] = std::min(idle[i].value_or(UINT64_MAX), metric_of(one, "evicted_time"));
    }
  }
  add_structures(seen, diagnosis, problem, [&](const StructureSeen& one) {
    return std::ranges::any_of(one.servers, [&](std::size_t server) {
      return one.ends_in && idle[server] &&
             (*one.ends_in < 0 || static_cast<std::uint64_t>(*one.ends_in) > *idle[server]);
    });
  });
}

// Reports servers that have evicted since their start, or deleted what was in use while they moved a page,
// with our structures in the slab classes concerned.
void evicted_before(const Examination& seen, Diagnosis& diagnosis) {
  const auto was_hit = [](const SlabClass& one) { return metric_of(one, "evicted") > 0; };
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const ServerSnapshot& snapshot = seen.snapshots[i];
    const std::uint64_t evicted = snapshot.count("evictions") + snapshot.count("slab_reassign_busy_deletes");
    if (!snapshot.comparable() || evicted == 0) continue;
    std::set<std::string> names;
    for (const StructureSeen& one : seen.live.value_or(LiveKeysSeen()).structures) {
      if (names.size() < shown_names && any_class(seen, one, i, was_hit))
        names.insert(one.structure + ' ' + one.name);
    }
    JsonObject evidence =
        JsonObject().number("evicted", evicted).number("uptime_s", snapshot.count("uptime"));
    if (!names.empty()) evidence.strings("structures", {names.begin(), names.end()});
    diagnosis.add(i, evidence, names.empty() ? note : warning, static_cast<double>(evicted));
  }
}

// On a full server a new slab class gets a single page, so its items share about a megabyte.
void one_page(const Examination& seen, Diagnosis& diagnosis) {
  const auto is_small = [](const SlabClass& one) { return metric_of(one, "total_pages") == 1; };
  add_structures(seen, diagnosis, warning, [&](const StructureSeen& one) {
    return std::ranges::any_of(one.servers, [&](std::size_t server) {
      return seen.snapshots[server].count("evictions") > 0 && any_class(seen, one, server, is_small);
    });
  });
}

void watch_off(const Examination& seen, Diagnosis& diagnosis) {
  for (const std::size_t server : seen.live->unwatched) {
    const ServerSnapshot& snapshot = seen.snapshots[server];
    if (snapshot.reported() && !snapshot.is_proxy() && release_of(snapshot) >= 10426)
      diagnosis.add(server, {}, warning);
  }
}

void unlisted(const Examination& seen, Diagnosis& diagnosis) {
  for (const auto& [server, why] : seen.live->unlisted) {
    if (seen.snapshots[server].up() && seen.snapshots[server].before.settings.on("dump_enabled") != false)
      diagnosis.add(server, JsonObject("error", why), note);
  }
}

}  // namespace mcds::doctor
