#include "common/primitives/kept.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/errors.hpp"
#include "common/primitives/copies.hpp"
#include "common/primitives/key_names.hpp"

namespace mcds {

Kept::Kept(const Context& context, std::string_view structure, std::string_view name, std::string_view root,
           SameLife same_life)
    : context_(context),
      structure_(structure),
      name_(name),
      root_(root),
      same_life_(std::move(same_life)),
      key_(copied_key(context, structure, name)) {}

std::string Kept::key_for(std::size_t copies) const {
  Context other = context_;
  other.copies = copies;
  return copied_key(other, structure_, name_);
}

bool Kept::elsewhere() {
  if (std::exchange(asked_, true)) return false;
  struct Asked {
    std::size_t copies;
    bool unmarked;
  };
  const Placement& placement = context_.cluster.placement();
  std::vector<Request> batch;
  std::vector<Asked> asked;
  const auto ask = [&](const std::string& key, std::size_t servers, Asked what) {
    for (const std::size_t server : placement.servers_of(key + root_, servers)) {
      batch.push_back(Request::get(key + root_).on(server));
      asked.push_back(what);
    }
  };
  const std::size_t most = std::min(placement.pool().size(), most_copies);
  // The unmarked root first, the owner's before those of copies.
  ask(key_for(1), context_.copies == 1 ? 1 : most, {1, true});
  for (std::size_t copies = 2; copies <= most; ++copies)
    ask(key_for(copies), std::min<std::size_t>(copies, 2), {copies, false});
  const auto replies = context_.cluster.execute(batch);

  std::vector<const std::string*> unmarked;
  std::optional<std::size_t> other;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    const bool hit = replies[i].outcome == Outcome::hit;
    if (asked[i].unmarked) unmarked.push_back(hit ? &replies[i].value : nullptr);
    if (!hit || asked[i].unmarked) continue;
    if (asked[i].copies == context_.copies) return false;
    if (!other) other = asked[i].copies;
  }
  if (const std::size_t copies = unmarked_copies(unmarked); copies > 1) {
    if (copies > context_.copies) refuse(copies);
    key_ = key_for(1);
    return true;
  }
  if (unmarked.front() != nullptr) {
    if (context_.copies == 1) return false;
    refuse(1);
  }
  if (other) refuse(*other);
  return false;
}

// How many there are at least; some may be lost.
std::size_t Kept::unmarked_copies(const std::vector<const std::string*>& roots) const {
  std::size_t copies = 1;
  for (std::size_t i = 1; i < roots.size(); ++i) {
    if (roots[i] != nullptr && (roots.front() == nullptr || same_life_(*roots.front(), *roots[i])))
      copies = i + 1;
  }
  return copies;
}

void Kept::refuse(std::size_t copies) const {
  const std::string number = std::to_string(copies);
  throw Failure(ErrorCode::bad_data, "the " + structure_ + " '" + name_ + "' is kept in " + number +
                                         (copies == 1 ? " copy" : " copies") + "; give --copies " + number);
}

}  // namespace mcds
