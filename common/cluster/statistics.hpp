// What a server answers to `stats`: lines of a name, a space and a value.
#pragma once

#include <map>

#include "common/base/bytes.hpp"
#include "common/base/clock.hpp"

namespace mcds {

std::optional<std::string_view> statistic(std::string_view lines, std::string_view name);
std::optional<std::uint64_t> statistic_number(std::string_view lines, std::string_view name);
// Each name and its value.
template <typename Take>
void for_each_statistic(std::string_view lines, const Take& take) {
  while (!lines.empty()) {
    std::string_view value = take_line(lines);
    const std::string_view name = take_word(value);
    if (!name.empty()) take(name, value);
  }
}

// The connections of one client to a server, as `stats conns` reports them.
struct ClientConnections {
  std::string address;  // without the port; `unix` for a unix socket
  std::uint64_t connections = 0, idle_min_s = 0, idle_max_s = 0;
  std::uint64_t idle_for_an_hour = 0;
  std::map<std::string, std::uint64_t> states;  // how many are in each state of memcached's own
};
// Returns them, those with the most connections first; where the server listens is left out.
std::vector<ClientConnections> clients_in(std::string_view lines);

// A server from its start to its end. In a container each is process 1: their starts differ.
struct ServerLife {
  std::uint64_t process, start;  // in seconds since 1970 by its own clock
  // nullopt: it does not say.
  static std::optional<ServerLife> of(std::string_view lines);
  static ServerLife of(std::uint64_t process, WallTime started_at);
  WallTime started_at() const { return WallTime(std::chrono::seconds(start)); }
  // Two reports of one may differ by a second about its start.
  bool is(const ServerLife& other) const;
};

}  // namespace mcds
