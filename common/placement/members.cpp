// A pool as one client sees it: named, weighed and ordered.
#include <algorithm>
#include <tuple>

#include "common/placement/profile.hpp"

namespace mcds {

namespace {

bool by_host_and_port(const Server& a, const Server& b) {
  return std::tie(a.host, a.socket_path, a.port) < std::tie(b.host, b.socket_path, b.port);
}

bool shorter_name_first(const Member& a, const Member& b) {
  return std::tuple(a.name.size(), std::string_view(a.name)) <
         std::tuple(b.name.size(), std::string_view(b.name));
}

}  // namespace

std::vector<Member> members_of(const Rule& rule, const Pool& pool, const Resolver& resolver) {
  std::vector<Member> members;
  for (const auto& server : pool) {
    const auto index = static_cast<std::uint32_t>(members.size());
    const std::uint32_t weight = server.weight == 0 && rule.zero_weight_is_one ? 1 : server.weight;
    members.push_back(
        {rule.identity == nullptr ? "" : rule.identity(server, index, resolver), weight, index});
  }
  switch (rule.order) {
    case Order::as_given:
    case Order::natural:
      break;
    case Order::by_host_and_port:
      std::stable_sort(members.begin(), members.end(), [&](const Member& a, const Member& b) {
        return by_host_and_port(pool[a.index], pool[b.index]);
      });
      break;
    case Order::shorter_name_first:
      std::stable_sort(members.begin(), members.end(), shorter_name_first);
      break;
  }
  return members;
}

}  // namespace mcds
