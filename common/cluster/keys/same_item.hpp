// Whether two copies are one item: a server may be listed under two names, or also be behind a proxy. To
// remove the one would then remove the other.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/cluster/cluster.hpp"

namespace mcds {

struct TwoPlaces {
  std::string key;  // on `server` of the first cluster
  std::size_t server;
  std::string other_key;  // on `other_server` of the second
  std::size_t other_server;
  std::function<bool(const Reply& now)> as_seen;  // whether the first is what the caller has seen
};

struct Sameness {
  // written: the first is not what was seen any more.
  enum class Answer { different, same, written, unknown } answer = Answer::unknown;
  CasUnique cas = {};  // different: of the first, for remove_if
};

// Worth asking about: the first of them may be the second. Two servers' cas uniques are seldom equal by
// chance. Those of servers without cas say nothing.
inline bool may_be_same(CasUnique one, CasUnique other) {
  return one.value != 0 && one == other;
}

// Appends nothing to the first, which gives it a new cas unique, and the second as well if it is the same
// item. Values and ttls stay as they are.
std::vector<Sameness> are_same(Cluster& cluster, Cluster& other, std::span<const TwoPlaces> places);

// What to say of one that is not removed for it.
inline const char* why_kept(Sameness::Answer answer) {
  return answer == Sameness::Answer::same
             ? "it is the same item as the one that would stay: one server is listed under two names, or is "
               "also behind a proxy"
             : "it may be the same item as the one that would stay, and the servers did not tell";
}

}  // namespace mcds
