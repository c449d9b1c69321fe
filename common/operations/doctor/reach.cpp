// What keeps clients from a server.
#include <algorithm>

#include "common/cluster/credentials.hpp"
#include "common/operations/doctor/tests.hpp"

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
  if (failure.kind == ReplyFailure::Kind::denied || has(message, "check the port") || has(message, "TLS") ||
      has(message, "is this a memcached server") || has(message, "binary protocol"))
    return Cause::foreign;
  // A unix socket's queue of connections is full: nobody takes them.
  if (has(message, "no reply within the timeout") || has(message, "Resource temporarily unavailable"))
    return Cause::silent;
  return Cause::down;
}

// The last look decides; a server that came up between the looks was down.
const ReplyFailure* failure_of(const Patient& patient) {
  if (!patient.second.up && patient.second.failure != nullptr) return patient.second.failure.get();
  return patient.first.up ? nullptr : patient.first.failure.get();
}

}  // namespace

template <Cause cause>
void failed(const Patient& patient, Diagnosis& diagnosis) {
  const ReplyFailure* failure = failure_of(patient);
  if (failure == nullptr || cause_of(*failure) != cause) return;
  JsonObject evidence("error", failure->message);
  if (patient.first.up) evidence.bytes("since", "between the looks");
  if (patient.second.up) evidence.bytes("until", "between the looks");
  diagnosis.add(evidence, problem);
}
template void failed<Cause::down>(const Patient&, Diagnosis&);
template void failed<Cause::foreign>(const Patient&, Diagnosis&);
template void failed<Cause::login>(const Patient&, Diagnosis&);
template void failed<Cause::certificate>(const Patient&, Diagnosis&);

void silent(const Patient& patient, Diagnosis& diagnosis) {
  failed<Cause::silent>(patient, diagnosis);
  if (patient.up() && patient.lost_probe)
    diagnosis.add(JsonObject("error", "a request in between got no reply"), problem);
}

void login_unused(const Patient& patient, Diagnosis& diagnosis) {
  const Figures& settings = patient.first.settings;
  const bool open = settings.word("auth_enabled_ascii") == "no" && settings.on("auth_enabled_sasl") != true;
  if (open && credentials_of(diagnosis.seen().pool()[diagnosis.server()]).login) diagnosis.add({}, problem);
  failed<Cause::no_login>(patient, diagnosis);
}

void connections_full(const Patient& patient, Diagnosis& diagnosis) {
  failed<Cause::full>(patient, diagnosis);
  const std::uint64_t turned_away = patient.counts_rejections() ? patient.rise("rejected_connections") : 0;
  const std::uint64_t stops = patient.rise("listen_disabled_num");
  const bool stopped = patient.told() && patient.number("accepting_conns") == 0;
  if (turned_away + stops == 0 && !stopped) return;
  JsonObject evidence = JsonObject().number("rejected", turned_away).number("listen_disabled", stops);
  if (const auto most = patient.number("max_connections")) evidence.number("max_connections", *most);
  diagnosis.add(evidence, problem, static_cast<double>(turned_away + stops));
}

void certificate_ends(const Patient& patient, Diagnosis& diagnosis) {
  const auto& end = patient.certificate_ends;
  const WallTime now = diagnosis.seen().now;
  if (!end || *end - now >= std::chrono::days(14)) return;
  const double days = std::chrono::duration<double, std::ratio<86400>>(*end - now).count();
  diagnosis.add(JsonObject().time("ends_at", *end), days < 2 ? problem : warning, -days);
}

// The median of the probes: one that met another load on the way says nothing of the server.
void slow(const Examination& seen, Diagnosis& diagnosis) {
  constexpr auto least = std::chrono::milliseconds(2);
  constexpr std::size_t few = 5;
  std::vector<std::pair<std::chrono::microseconds, std::size_t>> usual;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    auto times = seen.patients[i].probes;
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
    if (const auto pid = seen.patients[group.front()].first.stats.number("pid")) evidence.number("pid", *pid);
    diagnosis.add_one(group, evidence.number("entries", group.size()), problem);
  }
  if (seen.same.empty()) ring_finding(seen, diagnosis);
}

void balancer(const Patient& patient, Diagnosis& diagnosis) {
  if (!patient.is_balanced()) return;
  JsonObject evidence;
  for (const auto& [name, look] : {std::pair{"first", &patient.first}, {"second", &patient.second}})
    evidence.object(name, JsonObject()
                              .number("pid", look->stats.number("pid").value_or(0))
                              .number("uptime_s", look->stats.number("uptime").value_or(0)));
  diagnosis.add(evidence, problem);
}

void several_addresses(const Patient& patient, Diagnosis& diagnosis) {
  const auto& addresses = patient.addresses;
  if (addresses.size() > 1) diagnosis.add(JsonObject().strings("addresses", addresses), warning);
}

}  // namespace mcds::doctor
