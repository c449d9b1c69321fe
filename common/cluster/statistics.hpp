// Parsers for replies to `stats`: lines of a name, a space and a value.
#pragma once

#include <map>

#include "common/base/bytes.hpp"
#include "common/base/clock.hpp"

namespace mcds {

std::optional<std::string_view> statistic(std::string_view lines, std::string_view name);
std::optional<std::uint64_t> statistic_number(std::string_view lines, std::string_view name);
// Calls take(name, value) for each line.
template <typename Take>
void for_each_statistic(std::string_view lines, const Take& take) {
  while (!lines.empty()) {
    std::string_view value = take_line(lines);
    const std::string_view name = take_word(value);
    if (!name.empty()) take(name, value);
  }
}

// One client's connections to a server, as `stats conns` reports them.
struct ClientConnections {
  std::string address;  // without the port; `unix` for a unix socket
  std::uint64_t connections = 0, idle_min_s = 0, idle_max_s = 0;
  std::uint64_t idle_for_an_hour = 0;
  std::map<std::string, std::uint64_t> states;  // connections in each of memcached's states
};
// Returns the clients, those with the most connections first. Listening sockets are left out.
std::vector<ClientConnections> clients_in(std::string_view lines);

// One run of a server process. The start time distinguishes containers, where every server is process 1.
struct ServerStart {
  std::uint64_t process, start;  // start in seconds since 1970, by the server's clock
  // Returns nullopt if the statistics lack the process or its start.
  static std::optional<ServerStart> of(std::string_view lines);
  static ServerStart of(std::uint64_t process, WallTime started_at);
  WallTime started_at() const { return WallTime(std::chrono::seconds(start)); }
  // Returns true for two reports of the same run; their start times may differ by a second.
  bool is(const ServerStart& other) const;
};

}  // namespace mcds
