// A pool as one client sees it: named, weighed and ordered.
#include <algorithm>
#include <tuple>

#include "common/placement/profiles/profile.hpp"

namespace mcds {

namespace {

// As numbers where both have digits, as bytes elsewhere: node-9 comes before node-10.
bool natural(std::string_view a, std::string_view b) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto run = [&](std::string_view text) {
    std::size_t size = 1;
    while (size < text.size() && is_digit(text[size]) == is_digit(text[0])) ++size;
    return text.substr(0, size);
  };
  while (!a.empty() && !b.empty()) {
    auto left = run(a), right = run(b);
    a.remove_prefix(left.size());
    b.remove_prefix(right.size());
    if (is_digit(left[0]) && is_digit(right[0])) {
      left.remove_prefix(std::min(left.find_first_not_of('0'), left.size()));
      right.remove_prefix(std::min(right.find_first_not_of('0'), right.size()));
      if (left.size() != right.size()) return left.size() < right.size();
    }
    if (left != right) return left < right;
  }
  return a.empty() && !b.empty();
}

std::uint32_t weight_of(const Rule& rule, const Server& server) {
  const bool is_one = rule.no_weights || (server.weight == 0 && rule.zero_weight_is_one);
  return is_one ? 1 : server.weight;
}

}  // namespace

std::vector<Member> members_of(const Rule& rule, const Pool& pool, const Resolver& resolver) {
  std::vector<Member> members;
  for (const auto& server : pool) {
    const auto index = static_cast<std::uint32_t>(members.size());
    members.push_back({rule.identity == nullptr ? "" : rule.identity(server, index, resolver),
                       weight_of(rule, server), index});
  }
  switch (rule.order) {
    case Order::as_given: break;
    case Order::natural: std::ranges::stable_sort(members, natural, &Member::name); break;
    case Order::by_host_and_port:
      std::ranges::stable_sort(members, {}, [&](const Member& member) {
        const Server& server = pool[member.index];
        return std::tie(server.host, server.socket_path, server.port);
      });
      break;
    case Order::shorter_name_first:
      std::ranges::stable_sort(members, {}, [](const Member& member) {
        return std::pair(member.name.size(), std::string_view(member.name));
      });
      break;
  }
  return members;
}

}  // namespace mcds
