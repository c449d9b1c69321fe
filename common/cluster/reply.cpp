#include "common/cluster/reply.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace mcds {

const char* name_of(Outcome outcome) {
  constexpr std::array words{"hit",    "miss",      "stored",  "not_stored",
                             "exists", "not_found", "deleted", "failed"};
  static_assert(words.size() == static_cast<std::size_t>(Outcome::failed) + 1);
  return words[static_cast<std::size_t>(outcome)];
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
