// Tests of connections and requests.
#include <algorithm>

#include "common/base/units.hpp"
#include "common/operations/doctor/check_functions.hpp"

namespace mcds::doctor {

namespace {

constexpr std::uint64_t min_requests = 1000;

double ratio_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// Returns nullopt if there were too few gets.
std::optional<double> hit_ratio(std::optional<std::uint64_t> gets, std::optional<std::uint64_t> hits) {
  if (!gets || !hits || *gets < min_requests) return std::nullopt;
  return ratio_of(*hits, *gets);
}

// Return the hit ratio between the readings, and before them.
std::optional<double> hit_ratio_now(const ServerSnapshot& snapshot) {
  return hit_ratio(snapshot.grown("cmd_get"), snapshot.grown("get_hits"));
}

std::optional<double> hit_ratio_before(const ServerSnapshot& snapshot) {
  return hit_ratio(snapshot.before.stats.number("cmd_get"), snapshot.before.stats.number("get_hits"));
}

std::optional<double> processor_seconds(const Reading& look) {
  const auto user = look.stats.real("rusage_user"), system = look.stats.real("rusage_system");
  if (!user || !system) return std::nullopt;
  return *user + *system;
}

}  // namespace

std::optional<std::uint64_t> requests_grown(const ServerSnapshot& snapshot) {
  const auto gets = snapshot.grown("cmd_get"), sets = snapshot.grown("cmd_set");
  if (!gets || !sets) return std::nullopt;
  std::uint64_t all = *gets + *sets;
  for (const char* name :
       {"cmd_touch", "incr_hits", "incr_misses", "decr_hits", "decr_misses", "delete_hits", "delete_misses"})
    all += snapshot.grown(name).value_or(0);
  return all;
}

std::string per_second(std::uint64_t count, const ServerSnapshot& snapshot) {
  const double seconds = snapshot.seconds();
  return format_fixed(seconds > 0 ? static_cast<double>(count) / seconds : 0, 1);
}

std::string three_digits(double value) {
  return format_fixed(value, 3);
}

void connections_high(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  if (!snapshot.has_few_connections_left()) return;
  constexpr std::size_t named = 3;
  const std::uint64_t open = snapshot.count("curr_connections"), most = snapshot.count("max_connections");
  JsonObject evidence = JsonObject().number("connections", open).number("max_connections", most), clients;
  for (std::size_t i = 0; snapshot.clients && i < std::min(named, snapshot.clients->size()); ++i)
    clients.number((*snapshot.clients)[i].address, (*snapshot.clients)[i].connections);
  if (snapshot.clients && !snapshot.clients->empty()) evidence.object("most_by_client", clients);
  diagnosis.add(evidence, warning, ratio_of(open, most));
}

void connections_ran_out(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  if (!snapshot.reported()) return;
  const std::uint64_t stops = snapshot.count("listen_disabled_num");
  const bool counts = snapshot.counts_rejections();
  const std::uint64_t rejected = counts ? snapshot.count("rejected_connections") : 0;
  const bool now =
      snapshot.rise("listen_disabled_num") + (counts ? snapshot.rise("rejected_connections") : 0) > 0;
  if (stops + rejected == 0 || now) return;
  const std::uint64_t uptime = snapshot.count("uptime");
  diagnosis.add(
      JsonObject().number("listen_disabled", stops).number("rejected", rejected).number("uptime_s", uptime),
      uptime < day_s ? warning : note);
}

void yields(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  const std::uint64_t yielded = snapshot.rise("conn_yields");
  if (yielded == 0) return;
  JsonObject evidence = JsonObject().raw("yields_per_s", per_second(yielded, snapshot));
  const auto often = snapshot.before.settings.number("reqs_per_event");
  if (often) evidence.number("reqs_per_event", *often);
  diagnosis.add(evidence, often && *often < 10 ? warning : note, static_cast<double>(yielded));
}

void idle_connections(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  constexpr std::uint64_t many_idle = 100;
  std::uint64_t idle = 0;
  for (const ClientConnections& client : snapshot.clients.value_or(std::vector<ClientConnections>()))
    idle += client.idle_for_an_hour;
  if (idle >= many_idle) diagnosis.add(JsonObject().number("idle", idle), warning, static_cast<double>(idle));
}

void logins_fail(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  const std::uint64_t ever = snapshot.count("auth_errors");
  const std::uint64_t now = snapshot.rise("auth_errors");
  if (ever == 0) return;
  diagnosis.add(JsonObject().number("refused", ever).number("refused_meanwhile", now),
                now > 0 ? warning : note);
}

void handshakes_fail(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  const std::uint64_t now = snapshot.rise("ssl_handshake_errors") + snapshot.rise("ssl_proto_errors");
  if (now > 0) diagnosis.add(JsonObject().number("failed_meanwhile", now), warning);
}

void connects_per_request(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  const auto opened = snapshot.grown("total_connections"), requests = requests_grown(snapshot);
  if (!opened || !requests || snapshot.seconds() <= 0) return;
  const double rate = static_cast<double>(*opened) / snapshot.seconds();
  if (rate < 50 || *opened * 4 < *requests) return;
  diagnosis.add(JsonObject()
                    .raw("connections_per_s", per_second(*opened, snapshot))
                    .raw("requests_per_s", per_second(*requests, snapshot)),
                warning, rate);
}

void busy(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  const auto was = processor_seconds(snapshot.before), is = processor_seconds(snapshot.after);
  const auto threads = snapshot.number("threads");
  if (!snapshot.reported() || snapshot.restarted() || !was || !is || !threads || *threads == 0 ||
      snapshot.seconds() < 0.5)
    return;
  const double used = (*is - *was) / snapshot.seconds(), part = used / static_cast<double>(*threads);
  if (part < 0.7) return;
  diagnosis.add(JsonObject().raw("processors", three_digits(used)).number("threads", *threads), warning,
                part);
}

// A hot key brings a server more requests; a client with another server list brings it more or fewer. Chance
// and a few popular keys do not have such large effects. Overloaded servers are left out when the others are
// judged.
void load_uneven(const Examination& seen, Diagnosis& diagnosis) {
  if (seen.placement->replicates() || seen.size() < 2) return;
  std::vector<double> parts;
  double all = 0;
  for (const ServerSnapshot& snapshot : seen.snapshots) {
    const auto requests = requests_grown(snapshot);
    if (!requests || snapshot.is_proxy()) return;
    parts.push_back(static_cast<double>(*requests));
    all += parts.back();
  }
  if (all < min_requests) return;
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

void hit_ratio_falls(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  const auto before = hit_ratio_before(snapshot), now = hit_ratio_now(snapshot);
  if (!before || !now || *before - *now < 0.2) return;
  diagnosis.add(
      JsonObject().raw("hit_ratio", three_digits(*now)).raw("hit_ratio_before", three_digits(*before)),
      warning, *before - *now);
}

// Reports servers that never had hits; hit_ratio_falls reports those that had.
void nothing_hits(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  const std::uint64_t stores = snapshot.rise("cmd_set");
  if (hit_ratio_now(snapshot) != 0.0 || hit_ratio_before(snapshot).value_or(0) > 0.01 || stores < 10) return;
  JsonObject evidence = JsonObject().raw("misses_per_s", per_second(snapshot.rise("get_misses"), snapshot));
  evidence.raw("stores_per_s", per_second(stores, snapshot)).number("items", snapshot.count("curr_items"));
  diagnosis.add(evidence, warning, static_cast<double>(stores));
}

void hit_ratio_differs(const Examination& seen, Diagnosis& diagnosis) {
  std::vector<double> ratios;
  for (const ServerSnapshot& snapshot : seen.snapshots) {
    if (const auto ratio = hit_ratio_now(snapshot)) ratios.push_back(*ratio);
  }
  if (ratios.size() < 2) return;
  std::ranges::sort(ratios);
  const double usual = ratios[ratios.size() / 2];
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const auto now = hit_ratio_now(seen.snapshots[i]);
    if (!now || usual - *now < 0.25) continue;
    diagnosis.add(
        i,
        JsonObject().raw("hit_ratio", three_digits(*now)).raw("hit_ratio_of_the_pool", three_digits(usual)),
        warning, usual - *now);
  }
}

}  // namespace mcds::doctor
