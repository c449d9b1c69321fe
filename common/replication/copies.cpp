#include "common/replication/copies.hpp"

#include "common/base/bytes.hpp"

namespace mcds {

std::vector<std::size_t> copy_servers(const Placement& placement, std::size_t copies, std::string_view key) {
  auto servers = placement.servers_of(key, copies);
  if (servers.size() == copies) return servers;
  throw InvalidInput("--copies " + std::to_string(copies) +
                     " needs as many servers that hold keys; there are " + std::to_string(servers.size()));
}

std::vector<std::size_t> copy_servers(const Context& context, std::string_view key) {
  return copy_servers(context.cluster.placement(), context.copies, key);
}

std::vector<Request> to_copies(const Context& context, std::span<const Request> requests) {
  std::vector<Request> batch;
  batch.reserve(requests.size() * context.copies);
  for (const Request& request : requests) {
    for (const std::size_t server : copy_servers(context, request.placed_by()))
      batch.push_back(Request(request).on(server));
  }
  return batch;
}

CopyReplies execute_copies(const Context& context, std::span<const Request> requests) {
  return {context.cluster.execute(to_copies(context, requests)), context.copies};
}

std::vector<Reply> execute_copies(const Context& context, const Request& request) {
  return execute_copies(context, std::span(&request, 1)).take_all();
}

Request read_of_copy(const Context& context, std::string key, bool with_age) {
  if (is_only(context.copies)) return Request::get(std::move(key));
  return with_age ? Request::probe(std::move(key), 0) : Request::gets(std::move(key));
}

CopyOutcome copy_outcome(const Context& context, const Reply& reply) {
  return {.server = reply.server, .failure = attempt([&] { expect(context.cluster, reply); }).failure()};
}

std::vector<CopyOutcome> copy_outcomes(const Context& context, std::span<const Reply> replies) {
  std::vector<CopyOutcome> outcomes;
  for (const Reply& reply : replies) {
    CopyOutcome& outcome = outcomes.emplace_back(copy_outcome(context, reply));
    if (reply.outcome == Outcome::stored) outcome.number = reply.number;
    if (reply.outcome == Outcome::hit)
      outcome.number = parse_u64(reply.value.substr(0, reply.value.find(' ')));
  }
  return outcomes;
}

std::vector<CopyOutcome> copy_outcomes(const Context& context, std::string_view key,
                                       std::span<const std::optional<Failure>> failures) {
  std::vector<CopyOutcome> outcomes;
  const auto servers = copy_servers(context, key);
  for (std::size_t i = 0; i < servers.size(); ++i)
    outcomes.push_back({.server = servers[i], .failure = failures[i]});
  return outcomes;
}

const Reply& telling(std::span<const Reply> replies) {
  for (const auto matches : {+[](const Reply& reply) { return reply.unknown(); },
                             +[](const Reply& reply) { return reply.failed(); }}) {
    const auto found = std::ranges::find_if(replies, matches);
    if (found != replies.end()) return *found;
  }
  return replies.front();
}

std::optional<Failure> failure_of_all(std::span<const std::optional<Failure>> copies) {
  const std::optional<Failure>* told = nullptr;
  for (const auto& failure : copies) {
    if (!failure) return std::nullopt;
    if (told == nullptr || failure->code() == ErrorCode::unknown_outcome) told = &failure;
  }
  return told == nullptr ? std::nullopt : *told;
}

void expect_all(std::span<const std::optional<Failure>> copies) {
  for (const auto& failure : copies) {
    if (failure) raise(*failure);
  }
}

}  // namespace mcds
