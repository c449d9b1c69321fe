#include "common/replication/copy_count_guard.hpp"

#include <map>

#include "common/base/errors.hpp"
#include "common/primitives/key_names.hpp"

namespace mcds {

namespace {

constexpr auto max_check_age = std::chrono::seconds(1);
constexpr int max_surveys = 3;  // before a server counts as silent

}  // namespace

CopyCountGuard::CopyCountGuard(const Context& context, std::string_view structure, std::string_view name,
                               std::string_view root_suffix, RootsExist roots_exist)
    : context_(context),
      structure_(structure),
      name_(name),
      root_suffix_(root_suffix),
      key_(copied_key(context, structure, name)),
      roots_exist_(std::move(roots_exist)) {}

std::string CopyCountGuard::key_for(std::size_t copies) const {
  return copied_key(context_.in_copies(copies), structure_, name_);
}

struct CopyCountGuard::Survey {
  SteadyTime at{};
  std::vector<std::size_t> counts;          // copy counts under which the structure exists
  std::map<std::size_t, Failure> failures;  // by server that did not answer

  std::optional<std::size_t> other_than(std::size_t count) const {
    const auto other = std::ranges::find_if(counts, [&](std::size_t one) { return one != count; });
    return other == counts.end() ? std::nullopt : std::optional(*other);
  }
  bool has(std::size_t count) const { return std::ranges::find(counts, count) != counts.end(); }
};

// One batch reads the root of a single copy on its server, and those of several on each count's first two
// servers.
CopyCountGuard::Survey CopyCountGuard::survey() const {
  const Placement& placement = context_.cluster.placement();
  Survey survey;
  survey.at = context_.clock.steady();
  const std::size_t max_count = std::min(placement.pool().size(), max_copies);
  if (max_count == 1) return survey;
  std::vector<Request> batch;
  std::vector<std::size_t> count_of;  // for each request
  for (std::size_t copies = 1; copies <= max_count; ++copies) {
    const std::string root = key_for(copies) + root_suffix_;
    for (const std::size_t server : placement.servers_of(root, has_single_copy(copies) ? 1 : 2)) {
      batch.push_back(Request::get(root).on(server));
      count_of.push_back(copies);
    }
  }
  std::vector<std::vector<std::string>> roots(max_count + 1);
  std::vector<Reply> replies = context_.cluster.execute(batch);
  for (std::size_t i = 0; i < replies.size(); ++i) {
    Reply& reply = replies[i];
    if (reply.failed()) survey.failures.emplace(reply.server, failure_of_read(context_.cluster, reply));
    if (reply.outcome == Outcome::hit) roots[count_of[i]].push_back(std::move(reply.value));
  }
  for (std::size_t copies = 1; copies <= max_count; ++copies) {
    const bool exists = !roots[copies].empty() && (!roots_exist_ || roots_exist_(roots[copies], copies));
    if (exists) survey.counts.push_back(copies);
  }
  return survey;
}

bool CopyCountGuard::check() {
  if (checked_at_ && context_.clock.steady() - *checked_at_ < max_check_age) return false;
  checked_at_.reset();
  const Survey now = survey();
  if (const auto other = now.other_than(context_.copies); other && !now.has(context_.copies)) refuse(*other);
  checked_at_ = now.at;
  silent_servers_.clear();
  for (const auto& [server, failure] : now.failures) silent_servers_.insert(server);
  return context_.cluster.placement().pool().size() > 1 && now.counts.empty();
}

void CopyCountGuard::confirm_creation(const Undo& undo) {
  const auto newly_silent = [&](const Survey& survey) {
    return std::ranges::find_if(survey.failures,
                                [&](const auto& one) { return !silent_servers_.contains(one.first); });
  };
  Survey now = survey();
  for (int surveys = 1; surveys < max_surveys && newly_silent(now) != now.failures.end(); ++surveys)
    now = survey();
  if (const auto other = now.other_than(context_.copies)) refuse_creation(*other, undo);
  const auto silent = newly_silent(now);
  if (silent == now.failures.end()) return;
  throw UnknownOutcome(created() +
                           ", but a server that may hold it with another count did not answer; read it with "
                           "other values of --copies when that server is back",
                       silent->second.server());
}

std::optional<std::size_t> CopyCountGuard::find_other_count() const {
  return survey().other_than(context_.copies);
}

std::string CopyCountGuard::created() const {
  return "the " + structure_ + " '" + name_ + "' was created with " + copy_count_text(context_.copies);
}

void CopyCountGuard::refuse_creation(std::size_t other, const Undo& undo) const {
  const auto undone = attempt(undo);
  if (!undone.failure() && undone.value()) refuse(other);
  throw UnknownOutcome("the " + structure_ + " '" + name_ + "' now exists twice, with " +
                       std::to_string(context_.copies) + " and with " + copy_count_text(other) +
                       "; fetch each with --copies, then drop one" +
                       (undone.failure() ? std::string(": ") + undone.failure()->what() : std::string()));
}

void CopyCountGuard::refuse(std::size_t other) const {
  // The windows of a limit expire.
  throw Failure(ErrorCode::bad_data,
                "the " + structure_ + " '" + name_ + "' has " + copy_count_text(other) + "; use --copies " +
                    std::to_string(other) +
                    (root_suffix_.starts_with(":limit:") ? ", or wait until its window ends" : ""));
}

bool remove_created(Cluster& cluster, std::span<const Request> gets, const IsOurs& is_ours, bool in_order) {
  const auto there = cluster.execute(gets);
  std::vector<Request> removals;
  for (std::size_t i = 0; i < gets.size(); ++i) {
    if (expect_read(cluster, there[i]).outcome == Outcome::miss) continue;
    if (there[i].cas.value == 0 || !is_ours(i, there[i])) return false;
    removals.push_back(Request::remove_if(gets[i].key, there[i].cas).on(there[i].server));
  }
  const std::size_t at_once = in_order ? 1 : removals.size();
  for (std::size_t from = 0; from < removals.size(); from += at_once) {
    for (const Reply& gone : cluster.execute(std::span(removals).subspan(from, at_once))) {
      if (expect(cluster, gone).outcome == Outcome::exists) return false;
    }
  }
  return true;
}

}  // namespace mcds
