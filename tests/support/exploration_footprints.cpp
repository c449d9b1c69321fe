// Determines what steps touch and which of them may be exchanged, and formats requests for the story.
#include <algorithm>

#include "tests/support/exploration_inside.hpp"

namespace mcds {

bool asks_server(const Request& request) {
  return request.op == Op::version || request.op == Op::stats;
}

bool reads(const Request& request) {
  return request.op == Op::get || request.op == Op::gets || request.op == Op::probe || asks_server(request);
}

std::uint64_t digest_of(std::string_view text, std::uint64_t seed) {
  for (const char c : text) seed = (seed ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return seed;
}

bool dependent(const Footprint& a, const Footprint& b) {
  using Scope = Footprint::Scope;
  if ((a.begins && b.ends) || (a.ends && b.begins)) return true;
  if ((a.kills || b.kills) && a.client == b.client) return true;
  // A client that continues reads the clock, even if its request went nowhere.
  if (a.scope == Scope::everything || b.scope == Scope::everything) return true;
  if (a.scope <= Scope::clock || b.scope <= Scope::clock) return false;
  if (a.server != b.server) return false;
  if (a.scope == Scope::item && b.scope == Scope::item) return a.item == b.item && (a.writes || b.writes);
  // A restart conflicts with any step at the server, because other server requests read its uptime.
  return (a.scope == Scope::server && a.writes) || (b.scope == Scope::server && b.writes);
}

std::string shortened(std::string_view text) {
  std::string some(text.substr(0, 60));
  if (text.size() > 60) some.replace(57, 3, "...");
  std::replace(some.begin(), some.end(), '\n', '|');
  return some;
}

std::string reported_request(const Request& request) {
  std::string text = std::string(name_of(request.op)) + ' ' + (asks_server(request) ? "" : request.key);
  if (!request.value.empty()) text += " \"" + shortened(request.value) + '"';
  return text;
}

std::string told_reply(const Reply& reply) {
  std::string text = name_of(reply.outcome);
  if (reply.failure) text += ": " + reply.failure->message;
  if (reply.outcome == Outcome::hit && !reply.value.empty()) text += " \"" + shortened(reply.value) + '"';
  if (reply.number != 0) text += ' ' + std::to_string(reply.number);
  return text;
}

}  // namespace mcds
