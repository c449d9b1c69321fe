// mcds item set and touch.
#include "common/cluster/statistics.hpp"
#include "common/operations/store.hpp"
#include "tools/commands/item/places.hpp"

namespace mcds {

namespace {

// `now` for --ttl; without a ttl the item does not expire.
Exptime exptime_of(Session& session, const std::optional<Duration>& ttl) {
  if (!ttl) return Exptime::never();
  if (*ttl <= Duration::zero())
    throw InvalidInput("--ttl must be longer than 0; omit it for an item that does not expire");
  return Exptime::after(*ttl, session.clock().wall());
}

// What is larger than the server takes is not sent.
void check_size(Session& session, const Request& request) {
  const std::size_t size = request.key.size() + request.value.size() + item_overhead;
  if (request.value.size() <= max_value_size) return;
  const Reply reply = session.cluster().execute(Request::stats(*request.server, "settings"));
  const auto most = statistic_number(reply.value, "item_size_max");
  if (most && size <= *most) return;
  throw NotApplied(ErrorCode::refused,
                   "a value of " + std::to_string(request.value.size()) +
                       " bytes is larger than the server accepts; raise its -I, or store less",
                   session.server_address(*request.server));
}

Op op_of(const ItemOptions& options) {
  if (options.if_cas) return Op::cas;
  return options.if_absent ? Op::add : options.if_present ? Op::replace : Op::set;
}

const char* reason_of(Outcome outcome, Op op) {
  if (outcome == Outcome::exists) return "changed";
  return op == Op::add ? "exists" : "missing";
}

void check_set(const ItemOptions& options) {
  const int conditions =
      (options.if_absent ? 1 : 0) + (options.if_present ? 1 : 0) + (options.if_cas ? 1 : 0);
  if (conditions > 1) throw InvalidInput("give one of --if-absent, --if-present and --if-cas, not several");
  if (options.if_cas == 0) throw InvalidInput("--if-cas: 0 is not a cas unique; item show prints the item's");
  if (options.flags && *options.flags > UINT32_MAX) throw InvalidInput("--flags must be at most 4294967295");
}

ExitStatus print_set(Session& session, const ItemOptions& options, const Request& request,
                     const Reply& reply) {
  const bool stored = reply.outcome == Outcome::stored;
  JsonObject line = JsonObject("key", options.key).boolean("stored", stored);
  if (stored) {
    line.number("flags", request.flags).number("size_bytes", request.value.size());
  } else {
    line.bytes("reason", reason_of(reply.outcome, request.op));
  }
  return answer_yes_from(session, line, {reply.server}, stored);
}

}  // namespace

ExitStatus item_set(Session& session, const ItemOptions& options) {
  check_set(options);
  const std::vector<Item> items = items_of(session, std::span(&options.key, 1));
  const Exptime exptime = exptime_of(session, options.ttl);
  Request request = Request::set("", value_of(options.value), exptime);
  request.flags = static_cast<std::uint32_t>(options.flags.value_or(0));
  request.op = op_of(options);
  request.cas = {options.if_cas.value_or(0)};
  std::vector<Request> requests;
  for (const ItemPlace& place : items.front().places) {
    if (!place.must) continue;
    request.key = place.wire_key;
    request.server = place.server;
    check_size(session, request);
    requests.push_back(request);
  }
  // The first place decides on a condition, and the others follow it.
  Cluster& cluster = session.cluster();
  const bool conditional = request.op != Op::set;
  std::optional<Reply> decided;
  if (conditional) decided = expect(cluster, cluster.execute(requests.front()));
  std::vector<Reply> replies;
  if (!decided || decided->outcome == Outcome::stored)
    replies = store(cluster, std::span(requests).subspan(conditional ? 1 : 0), Op::replace);
  for (const Reply& reply : replies) static_cast<void>(expect(cluster, reply));
  return print_set(session, options, requests.front(), decided ? *decided : replies.front());
}

ExitStatus item_touch(Session& session, const ItemOptions& options) {
  if (!options.ttl) throw InvalidInput("--ttl: give the ttl from now");
  return for_items(session, options, [&](const Window<std::string>& names) {
    const std::vector<Item> items = items_of(session, names.items);
    const Exptime exptime = exptime_of(session, options.ttl);
    const auto touch = [&](const ItemPlace& place) {
      return Request::touch(place.wire_key, exptime).on(place.server);
    };
    ask_items(session, items, touch, [&](std::size_t i, ItemReplies replies) {
      if (const Reply* reply = first_failed(replies))
        return names.fail(i, failure_of(session.cluster(), *reply));
      const Reply* touched = first_with(Outcome::stored, replies);
      JsonObject line("key", items[i].key);
      line.boolean("touched", touched != nullptr);
      const std::size_t server = touched != nullptr ? touched->server : items[i].places.front().server;
      names.note(answer_yes_from(session, line, {server}, touched != nullptr));
    });
  });
}

}  // namespace mcds
