#include "tools/cli/where_keys.hpp"

#include "tools/cli/session.hpp"

namespace mcds {

JsonObject where_line(const Placement& placement, std::string_view key) {
  const std::size_t index = placement.server_of(key);
  JsonObject line;
  line.bytes("key", key).bytes("server", placement.pool()[index].address()).number("index", index);
  line.bytes("hash", std::to_string(placement.hash_of(key))).bytes("profile", placement.profile());
  return line;
}

ExitStatus print_where(Session& session, std::span<const std::string> keys) {
  const Placement& placement = *session.placement();
  for (const std::string& key : keys) {
    session.output().answer(where_line(placement, key), placement.pool()[placement.server_of(key)].address());
  }
  return ExitStatus::ok;
}

}  // namespace mcds
