// Implements mcds servers --clients: shows which clients are connected to the servers.
#include "common/cluster/statistics.hpp"
#include "tools/commands/servers/condition.hpp"

namespace mcds {

ExitStatus servers_clients(Session& session) {
  const Pool& pool = session.placement()->pool();
  std::vector<Condition> conditions = ask_servers(session.cluster(), {"conns"});
  ExitStatus status = status_of(conditions);
  struct Row {
    std::size_t server;
    ClientConnections client;
  };
  std::vector<Row> rows;
  for (std::size_t i = 0; i < pool.size(); ++i) {
    std::vector<ClientConnections> clients = clients_in(conditions[i].stats[0]);
    if (clients.empty() && conditions[i].error.empty())  // not even our own
      conditions[i].error = "the server lists no connections", conditions[i].refused = true;
    for (ClientConnections& client : clients) rows.push_back({i, std::move(client)});
  }
  std::ranges::stable_sort(rows, std::greater{}, [](const Row& row) { return row.client.connections; });
  session.output().keep_column("connections");
  for (const auto& [server, client] : rows) {
    JsonObject line("server", pool[server].address()), states;
    line.bytes("client", client.address).number("connections", client.connections);
    line.number("idle_min_s", client.idle_min_s).number("idle_max_s", client.idle_max_s);
    for (const auto& [state, count] : client.states) states.number(state, count);
    session.output().answer(line.object("states", states), client.address);
  }
  for (std::size_t i = 0; i < pool.size(); ++i) {
    if (conditions[i].error.empty()) continue;
    if (conditions[i].refused) status = worse(status, ExitStatus::refused);
    session.output().answer(server_line(pool[i], i, conditions[i]).bytes("error", conditions[i].error), {});
  }
  return status;
}

}  // namespace mcds
