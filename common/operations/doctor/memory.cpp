// What happens to items for lack of memory.
#include <algorithm>

#include "common/operations/doctor/tests.hpp"

namespace mcds::doctor {

namespace {

constexpr std::uint64_t page_bytes = 1 << 20;
constexpr std::uint64_t young_s = 600;

std::uint64_t refused_in(const Patient& patient, std::uint64_t number) {
  return patient.class_grown(number, "outofmemory");
}

// Of all classes of the second look, the sum of what `count` says of each, by its number and figures.
template <typename Count>
std::uint64_t sum_of(const Patient& patient, const Count& count) {
  std::uint64_t sum = 0;
  for (const auto& [number, one] : patient.second.classes) sum += count(number, one);
  return sum;
}

std::uint64_t pages_of(const Patient& patient) {
  return sum_of(patient, [](std::uint64_t, const SlabClass& one) { return figure_of(one, "total_pages"); });
}

bool is_idle(const Patient& patient, std::uint64_t number) {
  return patient.class_grown(number, "cmd_set") + patient.class_grown(number, "get_hits") == 0 &&
         patient.class_grown(number, "evicted") + refused_in(patient, number) == 0;
}

// Pages in classes that nobody used meanwhile. The first page of a class is never taken away.
std::uint64_t idle_pages(const Patient& patient) {
  return sum_of(patient, [&](std::uint64_t number, const SlabClass& one) -> std::uint64_t {
    const std::uint64_t own = figure_of(one, "total_pages");
    return own > 1 && is_idle(patient, number) ? own : 0;
  });
}

// The class that lost or refused most.
std::optional<std::uint64_t> hungriest(const Patient& patient) {
  std::optional<std::uint64_t> worst;
  std::uint64_t most = 0;
  for (const auto& [number, one] : patient.second.classes) {
    const std::uint64_t hunger = patient.class_grown(number, "evicted") + refused_in(patient, number);
    if (hunger > most) most = hunger, worst = number;
  }
  return worst;
}

std::uint64_t refused_now(const Patient& patient) {
  const auto refused = [&](std::uint64_t number, const SlabClass&) { return refused_in(patient, number); };
  return std::max(sum_of(patient, refused), patient.rise("store_no_memory"));
}

bool evicts(const Patient& patient) {
  return patient.first.settings.on("evictions") != false;
}

}  // namespace

void weights_against_memory(const Examination& seen, Diagnosis& diagnosis) {
  if (seen.placement->replicates()) return;
  const bool ignored = std::ranges::any_of(
      seen.ring, [](const Finding& finding) { return std::string_view(finding.check) == "weights_ignored"; });
  struct Share {
    std::size_t server;
    double memory, weight;
  };
  std::vector<Share> all;
  double memory = 0, weights = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const auto limit = seen.patients[i].first.stats.number("limit_maxbytes");
    const double weight = ignored ? 1 : seen.pool()[i].weight;
    if (!limit || *limit == 0 || weight <= 0 || seen.patients[i].is_proxy()) continue;
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

void class_starves(const Patient& patient, Diagnosis& diagnosis) {
  const auto hungry = hungriest(patient);
  const std::uint64_t pages = pages_of(patient), idle = idle_pages(patient);
  if (!hungry || pages == 0 || idle * 10 < pages) return;
  const auto automove = patient.first.settings.number("slab_automove");
  const bool moves = automove && *automove > 0 && patient.first.settings.on("slab_reassign") != false;
  const SlabClass& one = patient.second.classes.at(*hungry);
  JsonObject evidence =
      JsonObject().number("class", *hungry).number("chunk_bytes", figure_of(one, "chunk_size"));
  evidence.number("pages", figure_of(one, "total_pages"))
      .number("idle_pages", idle)
      .number("all_pages", pages);
  evidence.raw("evicted_per_s", per_second(patient.class_grown(*hungry, "evicted"), patient));
  evidence.raw("refused_per_s", per_second(refused_in(patient, *hungry), patient));
  if (automove) evidence.number("slab_automove", *automove);
  const Severity severity = moves ? note : idle * 4 >= pages ? problem : warning;
  diagnosis.add(evidence, severity, static_cast<double>(idle) / static_cast<double>(pages));
}

// evicted_time is of the last item that was evicted; it stays, so only classes that evict now say something.
void evicts_young(const Patient& patient, Diagnosis& diagnosis) {
  std::optional<std::uint64_t> least;
  std::uint64_t evicted = 0;
  for (const auto& [number, one] : patient.second.classes) {
    const std::uint64_t here = patient.class_grown(number, "evicted");
    if (here == 0) continue;
    evicted += here;
    least = std::min(least.value_or(UINT64_MAX), figure_of(one, "evicted_time"));
  }
  if (!least || *least >= young_s) return;
  diagnosis.add(JsonObject().number("idle_s", *least).raw("evicted_per_s", per_second(evicted, patient)),
                warning, static_cast<double>(evicted));
}

void evicts_unfetched(const Patient& patient, Diagnosis& diagnosis) {
  constexpr std::uint64_t few = 100;
  const std::uint64_t evicted = patient.rise("evictions");
  const std::uint64_t unfetched = patient.rise("evicted_unfetched");
  if (evicted < few || unfetched * 2 < evicted) return;
  JsonObject evidence = JsonObject().raw("evicted_per_s", per_second(evicted, patient));
  evidence.raw("unfetched", three_digits(static_cast<double>(unfetched) / static_cast<double>(evicted)));
  diagnosis.add(evidence, warning, static_cast<double>(unfetched));
}

void evicting(const Patient& patient, Diagnosis& diagnosis) {
  const std::uint64_t evicted = patient.rise("evictions");
  if (evicted == 0) return;
  JsonObject evidence;
  diagnosis.add(evidence.raw("evicted_per_s", per_second(evicted, patient)), note,
                static_cast<double>(evicted));
}

void refuses_stores(const Patient& patient, Diagnosis& diagnosis) {
  const std::uint64_t refused = refused_now(patient);
  if (refused == 0) return;
  diagnosis.add(
      JsonObject().raw("refused_per_s", per_second(refused, patient)).boolean("evicts", evicts(patient)),
      problem, static_cast<double>(refused));
}

// A server that evicts refuses a few stores while it fills.
void refused_before(const Patient& patient, Diagnosis& diagnosis) {
  if (!patient.comparable()) return;
  const auto ever = [](std::uint64_t, const SlabClass& one) { return figure_of(one, "outofmemory"); };
  const std::uint64_t refused = std::max(sum_of(patient, ever), patient.count("store_no_memory"));
  if (refused == 0 || refused_now(patient) > 0) return;
  const bool lately = patient.count("uptime") < day_s;
  diagnosis.add(JsonObject().number("refused", refused).number("uptime_s", patient.count("uptime")),
                lately && !evicts(patient) ? warning : note, static_cast<double>(refused));
}

void full(const Patient& patient, Diagnosis& diagnosis) {
  if (!patient.comparable()) return;
  const auto limit = patient.number("limit_maxbytes");
  if (evicts(patient) || !limit || !patient.second.knows_slabs) return;
  std::uint64_t free = patient.count("slab_global_page_pool") * page_bytes;
  for (const auto& [number, one] : patient.second.classes)
    free += figure_of(one, "free_chunks") * figure_of(one, "chunk_size");
  const std::uint64_t taken = pages_of(patient) * page_bytes;
  free += taken < *limit ? *limit - taken : 0;
  if (free * 10 > *limit) return;
  diagnosis.add(JsonObject()
                    .number("limit_bytes", *limit)
                    .number("used_bytes", patient.count("bytes"))
                    .number("free_bytes", free),
                warning);
}

void too_large(const Patient& patient, Diagnosis& diagnosis) {
  if (!patient.comparable()) return;
  const std::uint64_t ever = patient.count("store_too_large");
  const std::uint64_t now = patient.rise("store_too_large");
  if (ever == 0) return;
  JsonObject evidence = JsonObject().number("refused", ever).number("refused_meanwhile", now);
  if (const auto largest = patient.first.settings.number("item_size_max"))
    evidence.number("item_size_max", *largest);
  const bool often = ever * 100 >= patient.count("cmd_set");
  diagnosis.add(evidence, now > 0 || often ? warning : note, static_cast<double>(now));
}

void hash_growing(const Patient& patient, Diagnosis& diagnosis) {
  if (!patient.comparable()) return;
  if (patient.second.stats.on("hash_is_expanding") != true) return;
  diagnosis.add(JsonObject().number("items", patient.count("curr_items")), note);
}

void hash_crowded(const Patient& patient, Diagnosis& diagnosis) {
  if (!patient.comparable()) return;
  const auto power = patient.number("hash_power_level"), items = patient.number("curr_items");
  if (!power || !items || *power > 40 || patient.second.stats.on("hash_is_expanding") == true) return;
  if (*items < std::uint64_t{3} << *power) return;
  diagnosis.add(JsonObject().number("items", *items).number("hash_power_level", *power), warning);
}

void allocation_fails(const Patient& patient, Diagnosis& diagnosis) {
  if (!patient.comparable()) return;
  JsonObject evidence;
  std::uint64_t now = 0, ever = 0;
  for (const char* name : {"malloc_fails", "response_obj_oom", "read_buf_oom"}) {
    const std::uint64_t count = patient.number(name).value_or(0);
    if (count == 0) continue;
    evidence.number(name, count);
    ever += count, now += patient.grown(name).value_or(0);
  }
  if (ever > 0) diagnosis.add(evidence.number("meanwhile", now), now > 0 ? problem : warning);
}

}  // namespace mcds::doctor
