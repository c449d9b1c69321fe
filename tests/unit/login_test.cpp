#include "common/cluster/login.hpp"

#include <doctest/doctest.h>

#include "common/base/errors.hpp"

using namespace mcds;
using Kind = ReplyFailure::Kind;

TEST_CASE("a login is a set: of the user and the password, or under the user's name") {
  CHECK(login_request({Login::Form::ascii, "app", "pass"}) == "set mcds:login 0 -1 8\r\napp pass\r\n");
  CHECK(login_request({Login::Form::user_key, "app", "pass word"}) == "set app 0 0 9\r\npass word\r\n");
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

TEST_CASE("what servers answer to a login") {
  CHECK(read_login_answer("STORED").accepted);
  for (const char* line :
       {"CLIENT_ERROR authentication failure", "CLIENT_ERROR bad authentication token format",
        "CLIENT_ERROR unauthenticated", "CLIENT_ERROR unauthorized"}) {
    CAPTURE(line);
    CHECK_FALSE(read_login_answer(line).accepted);
    CHECK(read_login_answer(line).kind == Kind::denied);
  }
  for (const char* line :
       {"ERROR", "SERVER_ERROR out of memory storing object", "NOT_STORED", "", "HTTP/1.1 400 Bad Request"}) {
    CAPTURE(line);
    CHECK_FALSE(read_login_answer(line).accepted);
    CHECK(read_login_answer(line).kind == Kind::refused);
  }
  CHECK(wants_login("CLIENT_ERROR unauthenticated"));
  CHECK_FALSE(wants_login("CLIENT_ERROR bad data chunk"));
}
