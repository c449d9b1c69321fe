#include "common/cluster/reply.hpp"

#include <string_view>
#include <utility>

namespace mcds {

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::hit:
      return "hit";
    case Outcome::miss:
      return "miss";
    case Outcome::stored:
      return "stored";
    case Outcome::not_stored:
      return "not_stored";
    case Outcome::exists:
      return "exists";
    case Outcome::not_found:
      return "not_found";
    case Outcome::deleted:
      return "deleted";
    case Outcome::failed:
      return "failed";
  }
  return "";
}

Reply Reply::failed_with(ReplyFailure::Kind kind, std::string message, std::size_t server, bool late) {
  Reply reply = of(Outcome::failed, server);
  reply.failure = std::make_shared<const ReplyFailure>(ReplyFailure{kind, std::move(message), late});
  return reply;
}

Reply Reply::of_text(std::string value, std::size_t server) {
  constexpr std::size_t most_shown = 40;
  std::string shown = "'";
  for (const char c : std::string_view(value).substr(0, most_shown)) shown += c >= 0x20 && c < 0x7f ? c : '?';
  shown += value.size() > most_shown ? "…'" : "'";
  Reply reply = failed_with(
      ReplyFailure::Kind::not_a_number,
      "the value " + shown + " is not a number, so it was not changed; does another program use this key?",
      server);
  reply.value = std::move(value);
  return reply;
}

}  // namespace mcds
