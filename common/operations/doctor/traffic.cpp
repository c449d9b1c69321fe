// Connections, requests, and who sends them.
#include <algorithm>

#include "common/base/units.hpp"
#include "common/operations/doctor/tests.hpp"

namespace mcds::doctor {

namespace {

constexpr std::uint64_t enough_requests = 1000;

double ratio_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// If it was enough to speak of.
std::optional<double> hit_ratio(std::optional<std::uint64_t> gets, std::optional<std::uint64_t> hits) {
  if (!gets || !hits || *gets < enough_requests) return std::nullopt;
  return ratio_of(*hits, *gets);
}

// Of what was asked for between the looks, and before.
std::optional<double> hit_ratio_now(const Patient& patient) {
  return hit_ratio(patient.grown("cmd_get"), patient.grown("get_hits"));
}

std::optional<double> hit_ratio_before(const Patient& patient) {
  return hit_ratio(patient.first.stats.number("cmd_get"), patient.first.stats.number("get_hits"));
}

std::optional<double> processor_seconds(const Look& look) {
  const auto user = look.stats.real("rusage_user"), system = look.stats.real("rusage_system");
  if (!user || !system) return std::nullopt;
  return *user + *system;
}

}  // namespace

std::optional<std::uint64_t> requests_grown(const Patient& patient) {
  const auto gets = patient.grown("cmd_get"), sets = patient.grown("cmd_set");
  if (!gets || !sets) return std::nullopt;
  std::uint64_t all = *gets + *sets;
  for (const char* name :
       {"cmd_touch", "incr_hits", "incr_misses", "decr_hits", "decr_misses", "delete_hits", "delete_misses"})
    all += patient.grown(name).value_or(0);
  return all;
}

std::string per_second(std::uint64_t count, const Patient& patient) {
  const double seconds = patient.seconds();
  return format_fixed(seconds > 0 ? static_cast<double>(count) / seconds : 0, 1);
}

std::string three_digits(double value) {
  return format_fixed(value, 3);
}

void connections_high(const Patient& patient, Diagnosis& diagnosis) {
  if (!patient.has_few_connections_left()) return;
  constexpr std::size_t named = 3;
  const std::uint64_t open = patient.count("curr_connections"), most = patient.count("max_connections");
  JsonObject evidence = JsonObject().number("connections", open).number("max_connections", most), clients;
  for (std::size_t i = 0; patient.clients && i < std::min(named, patient.clients->size()); ++i)
    clients.number((*patient.clients)[i].address, (*patient.clients)[i].connections);
  if (patient.clients && !patient.clients->empty()) evidence.object("most_by_client", clients);
  diagnosis.add(evidence, warning, ratio_of(open, most));
}

void connections_ran_out(const Patient& patient, Diagnosis& diagnosis) {
  if (!patient.told()) return;
  const std::uint64_t stops = patient.count("listen_disabled_num");
  const bool counts = patient.counts_rejections();
  const std::uint64_t rejected = counts ? patient.count("rejected_connections") : 0;
  const bool now =
      patient.rise("listen_disabled_num") + (counts ? patient.rise("rejected_connections") : 0) > 0;
  if (stops + rejected == 0 || now) return;
  const std::uint64_t uptime = patient.count("uptime");
  diagnosis.add(
      JsonObject().number("listen_disabled", stops).number("rejected", rejected).number("uptime_s", uptime),
      uptime < day_s ? warning : note);
}

void yields(const Patient& patient, Diagnosis& diagnosis) {
  const std::uint64_t yielded = patient.rise("conn_yields");
  if (yielded == 0) return;
  JsonObject evidence = JsonObject().raw("yields_per_s", per_second(yielded, patient));
  const auto often = patient.first.settings.number("reqs_per_event");
  if (often) evidence.number("reqs_per_event", *often);
  diagnosis.add(evidence, often && *often < 10 ? warning : note, static_cast<double>(yielded));
}

void idle_connections(const Patient& patient, Diagnosis& diagnosis) {
  constexpr std::uint64_t many_idle = 100;
  std::uint64_t idle = 0;
  for (const ClientConnections& client : patient.clients.value_or(std::vector<ClientConnections>()))
    idle += client.idle_for_an_hour;
  if (idle >= many_idle) diagnosis.add(JsonObject().number("idle", idle), warning, static_cast<double>(idle));
}

void logins_fail(const Patient& patient, Diagnosis& diagnosis) {
  const std::uint64_t ever = patient.count("auth_errors");
  const std::uint64_t now = patient.rise("auth_errors");
  if (ever == 0) return;
  diagnosis.add(JsonObject().number("refused", ever).number("refused_meanwhile", now),
                now > 0 ? warning : note);
}

void handshakes_fail(const Patient& patient, Diagnosis& diagnosis) {
  const std::uint64_t now = patient.rise("ssl_handshake_errors") + patient.rise("ssl_proto_errors");
  if (now > 0) diagnosis.add(JsonObject().number("failed_meanwhile", now), warning);
}

void connects_per_request(const Patient& patient, Diagnosis& diagnosis) {
  const auto opened = patient.grown("total_connections"), requests = requests_grown(patient);
  if (!opened || !requests || patient.seconds() <= 0) return;
  const double rate = static_cast<double>(*opened) / patient.seconds();
  if (rate < 50 || *opened * 4 < *requests) return;
  diagnosis.add(JsonObject()
                    .raw("connections_per_s", per_second(*opened, patient))
                    .raw("requests_per_s", per_second(*requests, patient)),
                warning, rate);
}

void busy(const Patient& patient, Diagnosis& diagnosis) {
  const auto was = processor_seconds(patient.first), is = processor_seconds(patient.second);
  const auto threads = patient.number("threads");
  if (!patient.told() || patient.restarted() || !was || !is || !threads || *threads == 0 ||
      patient.seconds() < 0.5)
    return;
  const double used = (*is - *was) / patient.seconds(), part = used / static_cast<double>(*threads);
  if (part < 0.7) return;
  diagnosis.add(JsonObject().raw("processors", three_digits(used)).number("threads", *threads), warning,
                part);
}

// A hot key brings a server more, a client with another list brings it less, or more. Chance, and a few keys
// that are read more often than others, do not go so far. Who has less is seen without those that have more.
void load_uneven(const Examination& seen, Diagnosis& diagnosis) {
  if (seen.placement->replicates() || seen.size() < 2) return;
  std::vector<double> parts;
  double all = 0;
  for (const Patient& patient : seen.patients) {
    const auto requests = requests_grown(patient);
    if (!requests || patient.is_proxy()) return;
    parts.push_back(static_cast<double>(*requests));
    all += parts.back();
  }
  if (all < enough_requests) return;
  const auto add = [&](std::size_t server) {
    diagnosis.add(server,
                  JsonObject()
                      .raw("share_of_requests", three_digits(parts[server] / all))
                      .raw("share_of_keys", three_digits(seen.shares[server])),
                  warning, parts[server] / all / seen.shares[server]);
  };
  double others = all, due_to_others = 1;
  std::vector<bool> has_more(seen.size());
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const double part = parts[i] / all, due = seen.shares[i];
    has_more[i] = due > 0 && (part > 2 * due || part - due > 0.25);
    if (!has_more[i]) continue;
    others -= parts[i], due_to_others -= due;
    add(i);
  }
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const double due = seen.shares[i] / std::max(due_to_others, 1e-9) * others;
    if (!has_more[i] && due > 100 && parts[i] < 0.3 * due) add(i);
  }
}

void hit_ratio_falls(const Patient& patient, Diagnosis& diagnosis) {
  const auto before = hit_ratio_before(patient), now = hit_ratio_now(patient);
  if (!before || !now || *before - *now < 0.2) return;
  diagnosis.add(
      JsonObject().raw("hit_ratio", three_digits(*now)).raw("hit_ratio_before", three_digits(*before)),
      warning, *before - *now);
}

// From the start, unlike what hit_ratio_falls tells.
void nothing_hits(const Patient& patient, Diagnosis& diagnosis) {
  const std::uint64_t stores = patient.rise("cmd_set");
  if (hit_ratio_now(patient) != 0.0 || hit_ratio_before(patient).value_or(0) > 0.01 || stores < 10) return;
  JsonObject evidence = JsonObject().raw("misses_per_s", per_second(patient.rise("get_misses"), patient));
  evidence.raw("stores_per_s", per_second(stores, patient)).number("items", patient.count("curr_items"));
  diagnosis.add(evidence, warning, static_cast<double>(stores));
}

void hit_ratio_differs(const Examination& seen, Diagnosis& diagnosis) {
  std::vector<double> ratios;
  for (const Patient& patient : seen.patients) {
    if (const auto ratio = hit_ratio_now(patient)) ratios.push_back(*ratio);
  }
  if (ratios.size() < 2) return;
  std::ranges::sort(ratios);
  const double usual = ratios[ratios.size() / 2];
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const auto now = hit_ratio_now(seen.patients[i]);
    if (!now || usual - *now < 0.25) continue;
    diagnosis.add(
        i,
        JsonObject().raw("hit_ratio", three_digits(*now)).raw("hit_ratio_of_the_pool", three_digits(usual)),
        warning, usual - *now);
  }
}

}  // namespace mcds::doctor
