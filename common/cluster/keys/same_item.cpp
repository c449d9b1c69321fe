#include "common/cluster/keys/same_item.hpp"

namespace mcds {

std::vector<Sameness> are_same(Cluster& cluster, Cluster& other, std::span<const TwoPlaces> places) {
  std::vector<Sameness> result(places.size());
  if (places.empty()) return result;
  std::vector<Request> appends, gets, others;
  for (const TwoPlaces& place : places) {
    appends.push_back(Request::gets(place.key).on(place.server));
    appends.push_back(Request::append(place.key, "").on(place.server));
    gets.push_back(Request::gets(place.key).on(place.server));
    others.push_back(Request::gets(place.other_key).on(place.other_server));
  }
  const std::vector<Reply> appended = cluster.execute(appends);
  // The second last: if there is a write in between, the first's cas unique is outdated and removes nothing.
  const std::vector<Reply> ones = cluster.execute(gets);
  const std::vector<Reply> seen = other.execute(others);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Reply& before = appended[2 * i];
    if (before.failed() || ones[i].failed()) continue;
    const bool stayed = before.outcome == Outcome::hit && places[i].as_seen(before) &&
                        ones[i].outcome == Outcome::hit && before.value == ones[i].value &&
                        before.flags == ones[i].flags;
    if (!stayed) result[i].answer = Sameness::Answer::written;
    if (!stayed) continue;
    if (appended[2 * i + 1].outcome != Outcome::stored || seen[i].outcome != Outcome::hit) continue;
    const bool same = may_be_same(ones[i].cas, seen[i].cas);
    result[i] = {same ? Sameness::Answer::same : Sameness::Answer::different, ones[i].cas};
  }
  return result;
}

}  // namespace mcds
