// Tests of whether clients can reach a server.
#include <algorithm>

#include "common/cluster/credentials.hpp"
#include "common/operations/doctor/check_functions.hpp"

namespace mcds::doctor {

namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Cause cause_of(const ReplyFailure& failure) {
  const std::string_view message = failure.message;
  if (has(message, "connection limit")) return Cause::full;
  if (has(message, "requires no login")) return Cause::no_login;
  if (has(message, "certificate")) return Cause::certificate;
  if (has(message, "login")) return Cause::login;
  // A server that is stopped does not show what it speaks. The second message means that a unix socket's
  // queue is full: the server accepts no connections. Words in capitals are libmemcached's.
  if (has(message, "no reply within the timeout") || has(message, "Resource temporarily unavailable") ||
      has(message, "TLS handshake did not complete") || has(message, "(A TIMEOUT"))
    return Cause::silent;
  if (has(message, "Connection refused") || has(message, "(SYSTEM ERROR") || has(message, "LOOKUP FAILURE"))
    return Cause::down;
  if (failure.kind == ReplyFailure::Kind::denied || has(message, "check the port") || has(message, "TLS") ||
      has(message, "is this a memcached server") || has(message, "binary protocol"))
    return Cause::foreign;
  return Cause::down;
}

// Returns the failure of the last reading. A server that came up between the readings counts as down.
const ReplyFailure* failure_of(const ServerSnapshot& snapshot) {
  if (!snapshot.after.up && snapshot.after.failure != nullptr) return snapshot.after.failure.get();
  return snapshot.before.up ? nullptr : snapshot.before.failure.get();
}

}  // namespace

template <Cause cause>
void failed(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  const ReplyFailure* failure = failure_of(snapshot);
  if (failure == nullptr || cause_of(*failure) != cause) return;
  JsonObject evidence("error", failure->message);
  if (snapshot.before.up) evidence.bytes("since", "between the looks");
  if (snapshot.after.up) evidence.bytes("until", "between the looks");
  diagnosis.add(evidence, problem);
}
template void failed<Cause::down>(const ServerSnapshot&, Diagnosis&);
template void failed<Cause::foreign>(const ServerSnapshot&, Diagnosis&);
template void failed<Cause::login>(const ServerSnapshot&, Diagnosis&);
template void failed<Cause::certificate>(const ServerSnapshot&, Diagnosis&);

void silent(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  failed<Cause::silent>(snapshot, diagnosis);
  if (snapshot.up() && snapshot.lost_probe)
    diagnosis.add(JsonObject("error", "a request in between got no reply"), problem);
}

void login_unused(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  const StatisticsReply& settings = snapshot.before.settings;
  const bool open = settings.word("auth_enabled_ascii") == "no" && settings.on("auth_enabled_sasl") != true;
  if (open && credentials_of(diagnosis.seen().pool()[diagnosis.server()]).login) diagnosis.add({}, problem);
  failed<Cause::no_login>(snapshot, diagnosis);
}

void connections_full(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  failed<Cause::full>(snapshot, diagnosis);
  const std::uint64_t turned_away = snapshot.counts_rejections() ? snapshot.rise("rejected_connections") : 0;
  const std::uint64_t stops = snapshot.rise("listen_disabled_num");
  const bool stopped = snapshot.reported() && snapshot.number("accepting_conns") == 0;
  if (turned_away + stops == 0 && !stopped) return;
  JsonObject evidence = JsonObject().number("rejected", turned_away).number("listen_disabled", stops);
  if (const auto most = snapshot.number("max_connections")) evidence.number("max_connections", *most);
  diagnosis.add(evidence, problem, static_cast<double>(turned_away + stops));
}

void certificate_ends(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  const auto& end = snapshot.certificate_ends;
  const WallTime now = diagnosis.seen().now;
  if (!end || *end - now >= std::chrono::days(14)) return;
  const double days = std::chrono::duration<double, std::ratio<86400>>(*end - now).count();
  diagnosis.add(JsonObject().time("ends_at", *end), days < 2 ? problem : warning, -days);
}

// Compares medians: a probe that was delayed by other load says nothing about the server.
void slow(const Examination& seen, Diagnosis& diagnosis) {
  constexpr auto least = std::chrono::milliseconds(2);
  constexpr std::size_t few = 5;
  std::vector<std::pair<std::chrono::microseconds, std::size_t>> usual;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    auto times = seen.snapshots[i].probes;
    if (times.size() < few) continue;
    std::ranges::sort(times);
    usual.emplace_back(times[times.size() / 2], i);
  }
  if (usual.size() < 2) return;
  std::ranges::sort(usual);
  const auto middle = usual[(usual.size() - 1) / 2].first;
  for (const auto& [time, server] : usual) {
    if (time <= least || time <= 5 * middle) continue;
    JsonObject evidence = JsonObject().number("rtt_us", static_cast<std::uint64_t>(time.count()));
    evidence.number("rtt_us_of_the_pool", static_cast<std::uint64_t>(middle.count()));
    diagnosis.add(server, evidence, warning, static_cast<double>(time.count()));
  }
}

void same_server(const Examination& seen, Diagnosis& diagnosis) {
  for (const auto& group : seen.same) {
    JsonObject evidence;
    if (const auto pid = seen.snapshots[group.front()].before.stats.number("pid"))
      evidence.number("pid", *pid);
    diagnosis.add_one(group, evidence.number("entries", group.size()), problem);
  }
  if (seen.same.empty()) ring_finding(seen, diagnosis);
}

void balancer(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  if (!snapshot.is_balanced()) return;
  JsonObject evidence;
  for (const auto& [name, look] : {std::pair{"first", &snapshot.before}, {"second", &snapshot.after}})
    evidence.object(name, JsonObject()
                              .number("pid", look->stats.number("pid").value_or(0))
                              .number("uptime_s", look->stats.number("uptime").value_or(0)));
  diagnosis.add(evidence, problem);
}

void several_addresses(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  const auto& addresses = snapshot.addresses;
  if (addresses.size() > 1) diagnosis.add(JsonObject().strings("addresses", addresses), warning);
}

}  // namespace mcds::doctor
