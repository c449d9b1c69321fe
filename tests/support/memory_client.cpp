#include "tests/support/memory_client.hpp"

namespace mcds {

namespace {

bool compares(const Request& request) {
  return request.op == Op::cas || request.op == Op::remove_if;
}

}  // namespace

bool MemoryConnection::allows(const Request& request) const {
  if (!compares(request)) return true;
  const auto unique = uniques.find(request.key);
  return unique != uniques.end() && unique->second == request.cas;
}

Reply MemoryConnection::execute(MemoryServer& server, std::size_t index, const Request& request) {
  if (!allows(request)) return Reply::of(Outcome::exists, index);
  Reply reply = server.execute(request);
  if (compares(request)) uniques.erase(request.key);
  if (reply.cas.value != 0) uniques[request.key] = reply.cas;
  return reply;
}

}  // namespace mcds
