// The first exchange of a connection to a server that requires a login. Pure, no I/O.
//
// Both forms are a `set` that such a server treats as a login: memcached -Y reads `USER PASSWORD` from its
// value; MemCachier reads the user from its key and the password from its value. It is sent in front of the
// first requests, in the same write, and so costs no round trip. Until it is accepted the server executes
// nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/cluster/reply.hpp"

namespace mcds {

struct Login {
  enum class Form { ascii, user_key };
  Form form = Form::ascii;
  std::string user = {};
  std::string password = {};
};

// Throws InvalidInput, without showing the password, for what this form cannot carry: line breaks, and spaces where they
// separate.
void check(const Login& login);

std::string login_request(const Login& login);

struct LoginAnswer {
  bool accepted = false;
  ReplyFailure::Kind kind = ReplyFailure::Kind::denied;  // refused: the reply is not one to a login
  std::string complaint = {};
};
// A line, without its line break.
LoginAnswer read_login_answer(std::string_view line);

// Whether the line says that a login is missing; then nothing was applied.
bool wants_login(std::string_view line);
constexpr const char* login_wanted =
    "the server requires a login; give --user NAME and --password-file FILE (or MCDS_USER and MCDS_PASSWORD)";

}  // namespace mcds
