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

Request read_of_copy(const Context& context, std::string key, bool with_age) {
  if (has_single_copy(context.copies)) return Request::get(std::move(key));
  return with_age ? Request::probe(std::move(key), 0) : Request::gets(std::move(key));
}

CopyOutcome copy_outcome(const Context& context, const Reply& reply) {
  return {.server = reply.server, .failure = attempt([&] { expect(context.cluster, reply); }).failure()};
}

}  // namespace mcds
