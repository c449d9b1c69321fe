#include "common/cluster/login.hpp"

#include <algorithm>

#include "common/base/errors.hpp"

namespace mcds {

namespace {

// A server that wants no login takes the request for what it says: the value must expire at once, under a key that
// nobody uses.
constexpr std::string_view ascii_key = "mcds:login";

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

bool has_space(std::string_view text) {
  return text.find(' ') != std::string_view::npos;
}

}  // namespace

void check(const Login& login) {
  if (login.user.empty() || login.password.empty()) throw InvalidInput("the user or the password is empty");
  if (has_control(login.user) || has_control(login.password))
    throw InvalidInput("the user or the password has a control character");
  if (has_space(login.user)) throw InvalidInput("the user has a space, which a login cannot contain");
  if (login.form == Login::Form::ascii && has_space(login.password))
    throw InvalidInput("the password has a space, which a login of the form ascii cannot contain");
  if (login.form == Login::Form::user_key && login.user.size() > 250)
    throw InvalidInput("the user is longer than 250 bytes, the limit of a login of the form user-key");
}

std::string login_request(const Login& login) {
  const bool as_key = login.form == Login::Form::user_key;
  const std::string value = as_key ? login.password : login.user + ' ' + login.password;
  std::string key = as_key ? login.user : std::string(ascii_key);
  key += as_key ? " 0 0 " : " 0 -1 ";
  return "set " + key + std::to_string(value.size()) + "\r\n" + value + "\r\n";
}

bool wants_login(std::string_view line) {
  return line.starts_with("CLIENT_ERROR unauth");
}

LoginAnswer read_login_answer(std::string_view line) {
  if (line == "STORED") return {true};
  const bool rejected = wants_login(line) || line.starts_with("CLIENT_ERROR auth") ||
                        line.starts_with("CLIENT_ERROR bad authentication");
  if (rejected) {
    return {false, ReplyFailure::Kind::denied,
            "the server rejects the login; check --user, --password-file and --auth (ascii for memcached -Y, "
            "user-key for MemCachier)"};
  }
  return {false, ReplyFailure::Kind::refused,
          "the server sent an invalid reply to the login; omit --user if it requires no login"};
}

}  // namespace mcds
