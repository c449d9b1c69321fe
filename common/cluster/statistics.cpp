#include "common/cluster/statistics.hpp"

#include <algorithm>

#include "common/base/text.hpp"

namespace mcds {

std::optional<std::string_view> statistic(std::string_view lines, std::string_view name) {
  while (!lines.empty()) {
    const std::string_view line = take_line(lines);
    if (line.size() > name.size() && line[name.size()] == ' ' && line.starts_with(name))
      return line.substr(name.size() + 1);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> statistic_number(std::string_view lines, std::string_view name) {
  const auto text = statistic(lines, name);
  return text ? parse_u64(*text) : std::nullopt;
}

std::optional<ServerStart> ServerStart::of(std::string_view lines) {
  const auto process = statistic_number(lines, "pid");
  const auto time = statistic_number(lines, "time"), uptime = statistic_number(lines, "uptime");
  if (!process || !time || !uptime || *uptime > *time) return std::nullopt;
  return ServerStart{*process, *time - *uptime};
}

ServerStart ServerStart::of(std::uint64_t process, WallTime started_at) {
  const auto since = std::chrono::duration_cast<std::chrono::seconds>(started_at.time_since_epoch());
  return {process, static_cast<std::uint64_t>(since.count())};
}

bool ServerStart::is(const ServerStart& other) const {
  return process == other.process && std::max(start, other.start) - std::min(start, other.start) <= 1;
}

namespace {

// Returns the host of `tcp:10.0.0.7:41234` or `tcp6:[::1]:41234`. Unix sockets: `unix:` or `<AF 0>`.
std::string client_address(std::string_view text) {
  if (!text.starts_with("tcp") && !text.starts_with("udp")) return "unix";
  text.remove_prefix(std::min(text.find(':') + 1, text.size()));
  const std::string_view host = text.substr(0, text.rfind(':'));
  return visible(host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host);
}

}  // namespace

// Each line is `<descriptor>:<statistic> <value>`; the lines of one descriptor are adjacent.
std::vector<ClientConnections> clients_in(std::string_view lines) {
  constexpr std::uint64_t hour_s = 3600;
  struct Connection {
    std::string address, state;
    std::uint64_t idle_s = 0;
  };
  std::map<std::string_view, Connection> connections;
  for_each_statistic(lines, [&](std::string_view name, std::string_view value) {
    Connection& one = connections[name.substr(0, name.find(':'))];
    if (name.ends_with(":addr")) one.address = client_address(value);
    if (name.ends_with(":state")) one.state = visible(value);
    if (name.ends_with(":secs_since_last_cmd")) one.idle_s = parse_u64(value).value_or(0);
  });
  std::map<std::string, ClientConnections> clients;
  for (const auto& [descriptor, one] : connections) {
    if (one.address.empty() || one.state == "conn_listening") continue;
    ClientConnections& client = clients[one.address];
    client.idle_min_s = client.connections == 0 ? one.idle_s : std::min(client.idle_min_s, one.idle_s);
    client.idle_max_s = std::max(client.idle_max_s, one.idle_s);
    client.idle_for_an_hour += one.idle_s >= hour_s ? 1 : 0;
    client.address = one.address;
    ++client.connections;
    ++client.states[one.state];
  }
  std::vector<ClientConnections> all;
  for (auto& [address, client] : clients) all.push_back(std::move(client));
  std::ranges::stable_sort(all, std::greater{}, &ClientConnections::connections);
  return all;
}

}  // namespace mcds
