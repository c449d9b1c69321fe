#include "common/cluster/reply.hpp"

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

Reply Reply::failed_with(ReplyFailure::Kind kind, std::string message, std::size_t server) {
  Reply reply = of(Outcome::failed, server);
  reply.failure = std::make_shared<const ReplyFailure>(ReplyFailure{kind, std::move(message)});
  return reply;
}

}  // namespace mcds
