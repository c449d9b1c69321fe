// Tests of items that are lost or refused for lack of memory.
#include <algorithm>

#include "common/operations/doctor/check_functions.hpp"

namespace mcds::doctor {

namespace {

constexpr std::uint64_t page_bytes = 1 << 20;
constexpr std::uint64_t young_s = 600;

std::uint64_t refused_in(const ServerSnapshot& snapshot, std::uint64_t number) {
  return snapshot.class_grown(number, "outofmemory");
}

// Returns the sum of count(number, class) over all slab classes of the second reading.
template <typename Count>
std::uint64_t sum_of(const ServerSnapshot& snapshot, const Count& count) {
  std::uint64_t sum = 0;
  for (const auto& [number, one] : snapshot.after.classes) sum += count(number, one);
  return sum;
}

std::uint64_t pages_of(const ServerSnapshot& snapshot) {
  return sum_of(snapshot, [](std::uint64_t, const SlabClass& one) { return metric_of(one, "total_pages"); });
}

bool is_idle(const ServerSnapshot& snapshot, std::uint64_t number) {
  return snapshot.class_grown(number, "cmd_set") + snapshot.class_grown(number, "get_hits") == 0 &&
         snapshot.class_grown(number, "evicted") + refused_in(snapshot, number) == 0;
}

// Returns the pages of classes without use between the readings; the first page is never reassigned.
std::uint64_t idle_pages(const ServerSnapshot& snapshot) {
  return sum_of(snapshot, [&](std::uint64_t number, const SlabClass& one) -> std::uint64_t {
    const std::uint64_t own = metric_of(one, "total_pages");
    return own > 1 && is_idle(snapshot, number) ? own : 0;
  });
}

// Returns the class with the most evicted or refused items.
std::optional<std::uint64_t> hungriest(const ServerSnapshot& snapshot) {
  std::optional<std::uint64_t> worst;
  std::uint64_t most = 0;
  for (const auto& [number, one] : snapshot.after.classes) {
    const std::uint64_t hunger = snapshot.class_grown(number, "evicted") + refused_in(snapshot, number);
    if (hunger > most) most = hunger, worst = number;
  }
  return worst;
}

std::uint64_t refused_now(const ServerSnapshot& snapshot) {
  const auto refused = [&](std::uint64_t number, const SlabClass&) { return refused_in(snapshot, number); };
  return std::max(sum_of(snapshot, refused), snapshot.rise("store_no_memory"));
}

bool evicts(const ServerSnapshot& snapshot) {
  return snapshot.before.settings.on("evictions") != false;
}

}  // namespace

void weights_against_memory(const Examination& seen, Diagnosis& diagnosis) {
  if (seen.placement->replicates()) return;
  struct Share {
    std::size_t server;
    double memory, weight;
  };
  std::vector<Share> all;
  double memory = 0, weights = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const auto limit = seen.snapshots[i].before.stats.number("limit_maxbytes");
    const double weight = seen.ignores_weights ? 1 : seen.pool()[i].weight;
    if (!limit || *limit == 0 || weight <= 0 || seen.snapshots[i].is_proxy()) continue;
    all.push_back({i, static_cast<double>(*limit), weight});
    memory += all.back().memory, weights += weight;
  }
  const auto ratio = [&](const Share& one) { return (one.memory / memory) / (one.weight / weights); };
  std::ranges::sort(all, [&](const Share& one, const Share& other) { return ratio(one) < ratio(other); });
  if (all.size() < 2 || ratio(all.back()) < 1.25 * ratio(all.front())) return;
  std::vector<std::size_t> off;
  for (const Share& one : all) {
    if (ratio(one) < 0.9 || ratio(one) > 1.1) off.push_back(one.server);
  }
  JsonObject evidence = JsonObject().number("limit_bytes", static_cast<std::uint64_t>(all.front().memory));
  evidence.raw("memory_share", three_digits(all.front().memory / memory));
  evidence.raw("weight_share", three_digits(all.front().weight / weights));
  diagnosis.add_one(off, evidence, warning);
}

void class_starves(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  const auto hungry = hungriest(snapshot);
  const std::uint64_t pages = pages_of(snapshot), idle = idle_pages(snapshot);
  if (!hungry || pages == 0 || idle * 10 < pages) return;
  const auto automove = snapshot.before.settings.number("slab_automove");
  const bool moves = automove && *automove > 0 && snapshot.before.settings.on("slab_reassign") != false;
  const SlabClass& one = snapshot.after.classes.at(*hungry);
  JsonObject evidence =
      JsonObject().number("class", *hungry).number("chunk_bytes", metric_of(one, "chunk_size"));
  evidence.number("pages", metric_of(one, "total_pages"))
      .number("idle_pages", idle)
      .number("all_pages", pages);
  evidence.raw("evicted_per_s", per_second(snapshot.class_grown(*hungry, "evicted"), snapshot));
  evidence.raw("refused_per_s", per_second(refused_in(snapshot, *hungry), snapshot));
  if (automove) evidence.number("slab_automove", *automove);
  const Severity severity = moves ? note : idle * 4 >= pages ? problem : warning;
  diagnosis.add(evidence, severity, static_cast<double>(idle) / static_cast<double>(pages));
}

// evicted_time belongs to the last evicted item and keeps its value, so only classes that evict now count.
void evicts_young(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  std::optional<std::uint64_t> least;
  std::uint64_t evicted = 0;
  for (const auto& [number, one] : snapshot.after.classes) {
    const std::uint64_t here = snapshot.class_grown(number, "evicted");
    if (here == 0) continue;
    evicted += here;
    least = std::min(least.value_or(UINT64_MAX), metric_of(one, "evicted_time"));
  }
  if (!least || *least >= young_s) return;
  diagnosis.add(JsonObject().number("idle_s", *least).raw("evicted_per_s", per_second(evicted, snapshot)),
                warning, static_cast<double>(evicted));
}

void evicts_unfetched(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  constexpr std::uint64_t few = 100;
  const std::uint64_t evicted = snapshot.rise("evictions");
  const std::uint64_t unfetched = snapshot.rise("evicted_unfetched");
  if (evicted < few || unfetched * 2 < evicted) return;
  JsonObject evidence = JsonObject().raw("evicted_per_s", per_second(evicted, snapshot));
  evidence.raw("unfetched", three_digits(static_cast<double>(unfetched) / static_cast<double>(evicted)));
  diagnosis.add(evidence, warning, static_cast<double>(unfetched));
}

void evicting(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  const std::uint64_t evicted = snapshot.rise("evictions");
  if (evicted == 0) return;
  JsonObject evidence;
  diagnosis.add(evidence.raw("evicted_per_s", per_second(evicted, snapshot)), note,
                static_cast<double>(evicted));
}

void refuses_stores(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  const std::uint64_t refused = refused_now(snapshot);
  if (refused == 0) return;
  diagnosis.add(
      JsonObject().raw("refused_per_s", per_second(refused, snapshot)).boolean("evicts", evicts(snapshot)),
      problem, static_cast<double>(refused));
}

// A server that evicts also refuses a few stores while it fills.
void refused_before(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  if (!snapshot.comparable()) return;
  const auto ever = [](std::uint64_t, const SlabClass& one) { return metric_of(one, "outofmemory"); };
  const std::uint64_t refused = std::max(sum_of(snapshot, ever), snapshot.count("store_no_memory"));
  if (refused == 0 || refused_now(snapshot) > 0) return;
  const bool lately = snapshot.count("uptime") < day_s;
  diagnosis.add(JsonObject().number("refused", refused).number("uptime_s", snapshot.count("uptime")),
                lately && !evicts(snapshot) ? warning : note, static_cast<double>(refused));
}

void full(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  if (!snapshot.comparable()) return;
  const auto limit = snapshot.number("limit_maxbytes");
  if (evicts(snapshot) || !limit || !snapshot.after.knows_slabs) return;
  std::uint64_t free = snapshot.count("slab_global_page_pool") * page_bytes;
  for (const auto& [number, one] : snapshot.after.classes)
    free += metric_of(one, "free_chunks") * metric_of(one, "chunk_size");
  const std::uint64_t taken = pages_of(snapshot) * page_bytes;
  free += taken < *limit ? *limit - taken : 0;
  if (free * 10 > *limit) return;
  diagnosis.add(JsonObject()
                    .number("limit_bytes", *limit)
                    .number("used_bytes", snapshot.count("bytes"))
                    .number("free_bytes", free),
                warning);
}

void too_large(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  if (!snapshot.comparable()) return;
  const std::uint64_t ever = snapshot.count("store_too_large");
  const std::uint64_t now = snapshot.rise("store_too_large");
  if (ever == 0) return;
  JsonObject evidence = JsonObject().number("refused", ever).number("refused_meanwhile", now);
  if (const auto largest = snapshot.before.settings.number("item_size_max"))
    evidence.number("item_size_max", *largest);
  const bool often = ever * 100 >= snapshot.count("cmd_set");
  diagnosis.add(evidence, now > 0 || often ? warning : note, static_cast<double>(now));
}

void hash_growing(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  if (!snapshot.comparable()) return;
  if (snapshot.after.stats.on("hash_is_expanding") != true) return;
  diagnosis.add(JsonObject().number("items", snapshot.count("curr_items")), note);
}

void hash_crowded(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  if (!snapshot.comparable()) return;
  const auto power = snapshot.number("hash_power_level"), items = snapshot.number("curr_items");
  if (!power || !items || *power > 40 || snapshot.after.stats.on("hash_is_expanding") == true) return;
  if (*items < std::uint64_t{3} << *power) return;
  diagnosis.add(JsonObject().number("items", *items).number("hash_power_level", *power), warning);
}

void allocation_fails(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  if (!snapshot.comparable()) return;
  JsonObject evidence;
  std::uint64_t now = 0, ever = 0;
  for (const char* name : {"malloc_fails", "response_obj_oom", "read_buf_oom"}) {
    const std::uint64_t count = snapshot.number(name).value_or(0);
    if (count == 0) continue;
    evidence.number(name, count);
    ever += count, now += snapshot.grown(name).value_or(0);
  }
  if (ever > 0) diagnosis.add(evidence.number("meanwhile", now), now > 0 ? problem : warning);
}

}  // namespace mcds::doctor
