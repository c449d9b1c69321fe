#include <doctest/doctest.h>

#include "common/base/errors.hpp"
#include "common/cluster/credentials.hpp"

using namespace mcds;
using Kind = ReplyFailure::Kind;

namespace {

using LoginStep = LoginExchange::Step;

const Login ascii{Login::Form::ascii, "app", "pass"};
const Login user_key{Login::Form::user_key, "app", "pass word"};

// Returns the step after these bytes, which must be the same at once and byte by byte.
LoginStep after(LoginExchange& exchange, const std::string& said) {
  LoginExchange slow = exchange;
  std::string input;
  std::size_t position = 0;
  LoginStep step = LoginStep::need_more;
  for (const char byte : said) {
    input += byte;
    if (step == LoginStep::need_more) step = slow.read(input, position);
  }
  position = 0;
  const LoginStep at_once = exchange.read(said, position);
  CHECK(at_once == step);
  return at_once;
}

}  // namespace

TEST_CASE(
    "a login is a set: of the user and the password, or under the user's name; a get shows whether it "
    "stays") {
  CHECK(LoginExchange(ascii, false).words() == "set mcds:login 0 -1 8\r\napp pass\r\nget mcds:login\r\n");
  CHECK(LoginExchange(user_key, true).words() == "set app 0 0 9\r\npass word\r\nget app\r\n");
}

TEST_CASE("a password is not sent as a value before the server has refused a read") {
  LoginExchange asks(user_key, false);
  CHECK(asks.words().find("pass word") == std::string::npos);
  CHECK(asks.words().starts_with("get "));
  CHECK(asks.words().size() >= 24);
  for (const char* open : {"END\r\n", "VALUE mcds:what-server-is-this 0 1\r\nx\r\nEND\r\n"}) {
    LoginExchange exchange(user_key, false);
    CHECK(after(exchange, open) == LoginStep::failed);
    CHECK(exchange.kind() == Kind::denied);
    CHECK(exchange.complaint().find("not sent") != std::string::npos);
  }
  for (const char* closed :
       {"ERROR unauthenticated\r\n", "CLIENT_ERROR who are you\r\n", "SERVER_ERROR auth\r\n"}) {
    LoginExchange exchange(user_key, false);
    CHECK(after(exchange, closed) == LoginStep::reconnect);
  }
  CHECK(asks.closed() == LoginStep::reconnect);
}

TEST_CASE("a login that was stored is removed") {
  for (const auto& [login, stored] : {std::pair(ascii, "app pass"), {user_key, "pass word"}}) {
    const std::string size = std::to_string(std::string(stored).size());
    const std::string key = login.form == Login::Form::ascii ? "mcds:login" : "app";
    LoginExchange exchange(login, true);
    CHECK(after(exchange, "STORED\r\nVALUE " + key + " 0 " + size + "\r\n" + stored + "\r\nEND\r\n") ==
          LoginStep::send);
    CHECK(exchange.words() == "delete " + key + "\r\n");
    CHECK(after(exchange, "DELETED\r\n") == LoginStep::failed);
    CHECK(exchange.kind() == Kind::denied);
    CHECK(exchange.complaint().find(stored) == std::string::npos);
  }
  LoginExchange of_an_application(user_key, true);
  CHECK(after(of_an_application, "STORED\r\nVALUE app 0 3\r\nEND\r\nEND\r\n") == LoginStep::done);
}

TEST_CASE("what a login cannot carry is refused without showing it") {
  for (const Login& login :
       {Login{Login::Form::ascii, "app", "two words"}, Login{Login::Form::ascii, "a b", "secret"},
        Login{Login::Form::user_key, "app", "secret\r\nflush_all"},
        Login{Login::Form::user_key, "app\r\nflush_all", "secret"}, Login{Login::Form::ascii, "", "secret"},
        Login{Login::Form::ascii, "app", ""},
        Login{Login::Form::user_key, std::string(251, 'u'), "secret"}}) {
    try {
      check(login);
      FAIL("accepted");
    } catch (const InvalidInput& refusal) {
      CHECK(std::string(refusal.what()).find("secret") == std::string::npos);
    }
  }
  check({Login::Form::user_key, "app", "two words"});
}

TEST_CASE("a rejected login is denied in whatever words") {
  for (const char* line :
       {"CLIENT_ERROR authentication failure", "CLIENT_ERROR bad authentication token format",
        "CLIENT_ERROR unauthenticated", "CLIENT_ERROR unauthorized", "ERROR",
        "ERROR: Authentication required", "SERVER_ERROR access denied", "CLIENT_ERROR Invalid credentials"}) {
    CAPTURE(line);
    LoginExchange exchange(ascii, false);
    CHECK(after(exchange, std::string(line) + "\r\n") == LoginStep::failed);
    CHECK(exchange.kind() == Kind::denied);
  }
  LoginExchange closed(ascii, false);
  CHECK(closed.closed() == LoginStep::failed);
  CHECK(closed.kind() == Kind::denied);
}

TEST_CASE("what is no answer to a login is not taken for one") {
  for (const char* line : {"NOT_STORED", "", "HTTP/1.1 400 Bad Request", "-ERR unknown command", "MN"}) {
    CAPTURE(line);
    LoginExchange exchange(ascii, false);
    CHECK(after(exchange, std::string(line) + "\r\n") == LoginStep::failed);
    CHECK(exchange.kind() == Kind::refused);
  }
  LoginExchange busy(ascii, false);
  CHECK(after(busy, "ERROR Too many open connections\r\n") == LoginStep::failed);
  CHECK(busy.kind() == Kind::unreachable);
  LoginExchange accepted(ascii, false);
  CHECK(after(accepted, "STORED\r\nEND\r\n") == LoginStep::done);
  CHECK(wants_login("CLIENT_ERROR unauthenticated"));
  CHECK_FALSE(wants_login("CLIENT_ERROR bad data chunk"));
}
