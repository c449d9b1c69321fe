#include "common/replication/copies.hpp"

#include "common/base/bytes.hpp"

namespace mcds {

std::vector<std::size_t> copy_servers(const Placement& placement, std::size_t copies, std::string_view key) {
  auto servers = placement.servers_of(key, copies);
  if (servers.size() == copies) return servers;
  throw InvalidInput("--copies " + std::to_string(copies) + " exceeds the " + std::to_string(servers.size()) +
                     " servers that hold keys; use fewer copies");
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
  if (has_single_copy(context.copies)) return Request::get(std::move(key));
  return with_age ? Request::probe(std::move(key), 0) : Request::gets(std::move(key));
}

CopyOutcome copy_outcome(const Context& context, const Reply& reply) {
  return {.server = reply.server, .failure = attempt([&] { expect(context.cluster, reply); }).failure()};
}

std::optional<Failure> failure_of_all(std::span<const std::optional<Failure>> copies) {
  const std::optional<Failure>* reported = nullptr;
  for (const auto& failure : copies) {
    if (!failure) return std::nullopt;
    if (reported == nullptr || failure->code() == ErrorCode::unknown_outcome) reported = &failure;
  }
  return reported == nullptr ? std::nullopt : *reported;
}

}  // namespace mcds
