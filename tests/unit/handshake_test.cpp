// The handshake of a connection: what precedes the first request, and what the server's answers mean.
#include "common/cluster/wire/handshake.hpp"

#include <doctest/doctest.h>

#include <memory>

using namespace mcds;
using meta::Decision;
using meta::Handshake;
using Kind = ReplyFailure::Kind;
using State = Handshake::State;
using Action = meta::Decision::Action;
using Protocol = ConnectOptions::Protocol;

namespace {

constexpr const char* classic_get = "get mcds:what-server-is-this\r\n";

// A handshake with a server that has, or requires, this login.
struct Peer {
  explicit Peer(Protocol protocol, std::optional<Login> login = {}) : options{.protocol = protocol} {
    auto credentials = std::make_shared<Credentials>();
    credentials->login = std::move(login);
    server.credentials = credentials;
  }
  // Returns the decision on these bytes, which must be the same at once and byte by byte.
  Decision after(const std::string& said, bool closed = false) {
    Handshake slow = handshake;
    Decision dripped;
    for (std::size_t size = 0, used = 0; size < said.size() && dripped.action == Action::wait; ++size)
      dripped = slow.read(said.substr(0, size + 1), used, false);
    std::size_t position = 0;
    auto decision = handshake.read(said, position, closed);
    if (!closed) CHECK(decision.action == dripped.action);
    return decision;
  }
  Action closes(const std::string& said = "") { return after(said, true).action; }
  std::string greets(std::string request) {
    handshake.greet(request, 0);
    return request;
  }

  Server server;
  ConnectOptions options;
  Handshake handshake{server, options};
};

Login login(Login::Form form) {
  return {form, "app", "pass"};
}

constexpr ReplyFailure::Kind late_kind = Kind::unreachable;
const ReplyFailure late{.kind = late_kind, .message = "no reply", .late = true};

}  // namespace

TEST_CASE("handshake: the greeting goes out with the first request, and its answer precedes all replies") {
  Peer peer(Protocol::automatic);
  CHECK(peer.handshake.state() == State::closed);
  CHECK_FALSE(peer.handshake.allows_requests());
  CHECK(peer.handshake.begin().empty());
  CHECK(peer.handshake.state() == State::greeting_due);
  CHECK(peer.handshake.allows_requests());
  CHECK_FALSE(peer.handshake.awaits_answer());
  CHECK(peer.greets("get a-key\r\n") == "mn\r\nversion\r\nget a-key\r\n");
  CHECK(peer.handshake.awaits_answer());
  CHECK(peer.after("MN\r\nVERSION 1.6.18\r\n").action == Action::proceed);
  CHECK(peer.handshake.state() == State::ready);
  CHECK(peer.handshake.protocol().release == 10618);
  CHECK(peer.handshake.format().meta);
  peer.handshake.on_reply();
  CHECK(peer.closes() == Action::abandon);
}

TEST_CASE("handshake: every connection is greeted, except to servers that are known to be classic") {
  Peer peer(Protocol::automatic);
  peer.handshake.begin();
  peer.greets("get a-key\r\n");
  peer.after("MN\r\nVERSION 1.6.18\r\n");
  peer.handshake.close();
  CHECK_FALSE(peer.handshake.allows_requests());
  peer.handshake.begin();
  CHECK(peer.handshake.state() == State::greeting_due);
  peer.greets("get a-key\r\n");
  CHECK(peer.after("ERROR\r\nVERSION 1.4.15\r\n").action == Action::proceed);
  CHECK_FALSE(peer.handshake.format().meta);
  peer.handshake.close();
  peer.handshake.begin();
  CHECK(peer.handshake.state() == State::unconfirmed);
}

TEST_CASE("handshake: a step out of order is an internal error") {
  Peer greeted(Protocol::automatic);
  CHECK_THROWS_AS(greeted.greets("get k\r\n"), std::logic_error);  // no connection
  greeted.handshake.begin();
  CHECK_THROWS_AS(greeted.handshake.begin(), std::logic_error);
  CHECK_THROWS_AS(greeted.handshake.on_reply(), std::logic_error);  // the greeting is skipped
  greeted.greets("get k\r\n");
  CHECK_THROWS_AS(greeted.greets("get k\r\n"), std::logic_error);
  CHECK_THROWS_AS(greeted.handshake.on_reply(), std::logic_error);  // its answer is skipped
  Peer logs_in(Protocol::automatic, login(Login::Form::ascii));
  logs_in.handshake.begin();
  CHECK_THROWS_AS(logs_in.greets("get k\r\n"), std::logic_error);
  CHECK_THROWS_AS(logs_in.handshake.on_reply(), std::logic_error);
  Peer classic(Protocol::classic);
  classic.handshake.begin();
  CHECK_THROWS_AS(classic.greets("get k\r\n"), std::logic_error);
}

TEST_CASE("handshake: requests wait for the login, which precedes the greeting") {
  for (const Protocol protocol : {Protocol::automatic, Protocol::classic}) {
    Peer peer(protocol, login(Login::Form::ascii));
    CHECK(peer.handshake.begin() == "set mcds:login 0 -1 8\r\napp pass\r\nget mcds:login\r\n");
    CHECK(peer.handshake.state() == State::logging_in);
    CHECK(peer.handshake.is_logging_in());
    CHECK_FALSE(peer.handshake.allows_requests());
    CHECK(peer.after("STORED\r\nEND\r\n").action == Action::proceed);
    CHECK(peer.handshake.state() ==
          (protocol == Protocol::automatic ? State::greeting_due : State::unconfirmed));
    CHECK_FALSE(peer.handshake.is_logging_in());
  }
}

TEST_CASE(
    "handshake: a server that refuses a read gets the login on a new connection, and first from then on") {
  Peer peer(Protocol::automatic, login(Login::Form::user_key));
  CHECK(peer.handshake.begin() == classic_get);
  CHECK(peer.after("ERROR unauthenticated\r\n").action == Action::reconnect);
  CHECK(peer.handshake.state() == State::closed);
  for (int connection = 0; connection < 2; ++connection) {
    CHECK(peer.handshake.begin() == "set app 0 0 4\r\npass\r\nget app\r\n");
    CHECK(peer.after("STORED\r\nEND\r\n").action == Action::proceed);
    CHECK(peer.handshake.state() == State::greeting_due);
    peer.handshake.close();
  }
  Peer closed(Protocol::automatic, login(Login::Form::user_key));
  closed.handshake.begin();
  CHECK(closed.closes() == Action::reconnect);
}

TEST_CASE("handshake: a login that was stored is removed, and one that is rejected is denied") {
  Peer stored(Protocol::automatic, login(Login::Form::ascii));
  stored.handshake.begin();
  const auto removal = stored.after("STORED\r\nVALUE mcds:login 0 8\r\napp pass\r\nEND\r\n");
  CHECK(removal.action == Action::send);
  CHECK(removal.bytes == "delete mcds:login\r\n");
  CHECK(stored.handshake.state() == State::logging_in);
  CHECK(stored.after("DELETED\r\n").action == Action::refuse);
  Peer rejected(Protocol::automatic, login(Login::Form::ascii));
  rejected.handshake.begin();
  const auto refusal = rejected.after("CLIENT_ERROR authentication failure\r\n");
  CHECK(refusal.action == Action::refuse);
  CHECK(refusal.failure.kind == Kind::denied);
}

TEST_CASE("handshake: a server that closes on the login is asked for other protocols, or else denies it") {
  Peer peer(Protocol::automatic, login(Login::Form::ascii));
  peer.handshake.begin();
  CHECK(peer.closes() == Action::reconnect);
  CHECK(peer.handshake.is_probing());
  CHECK(peer.handshake.begin().starts_with('\x80'));  // without the login
  CHECK(peer.handshake.state() == State::probing);
  CHECK_FALSE(peer.handshake.allows_requests());
  CHECK(peer.closes() == Action::reconnect);
  CHECK(peer.handshake.begin().starts_with('\x16'));
  const auto denied = peer.after("", true);
  CHECK(denied.action == Action::refuse);
  CHECK(denied.failure.kind == Kind::denied);
  CHECK(denied.failure.message.find("closed the connection on the login") != std::string::npos);

  Peer binary(Protocol::automatic, login(Login::Form::ascii));
  binary.handshake.begin();
  binary.closes();
  binary.handshake.begin();
  const auto found = binary.after(std::string("\x81\x20\0\0\0\0\0\x81", 8));
  CHECK(found.action == Action::refuse);
  CHECK(found.failure.message.find("binary protocol") != std::string::npos);
}

TEST_CASE("handshake: a server that closes on `mn` alone is classic, and all requests are sent again") {
  for (const char* error : {"", "ERROR\r\n", "CLIENT_ERROR unknown command\r\n"}) {
    CAPTURE(error);
    Peer peer(Protocol::automatic);
    peer.handshake.begin();
    peer.greets("set k 0 0 1\r\nv\r\n");
    CHECK(peer.closes(error) == Action::reconnect);
    CHECK(peer.handshake.begin().starts_with("mn\r\n"));
    CHECK(peer.closes(error) == Action::reconnect);
    CHECK(peer.handshake.begin() == classic_get);
    CHECK(peer.after("END\r\n").action == Action::resend);
    CHECK(peer.handshake.state() == State::closed);
    CHECK(peer.handshake.protocol().proxy);
    CHECK(peer.handshake.begin().empty());
    CHECK(peer.handshake.state() == State::unconfirmed);
  }
}

TEST_CASE("handshake: after a valid answer, or where `mn` is accepted, a close leaves the outcome open") {
  Peer answered(Protocol::automatic);
  answered.handshake.begin();
  answered.greets("get k\r\n");
  CHECK(answered.closes("MN\r\n") == Action::abandon);
  Peer accepts(Protocol::automatic);
  accepts.handshake.begin();
  accepts.greets("get k\r\n");
  CHECK(accepts.closes() == Action::reconnect);
  accepts.handshake.begin();
  const auto decision = accepts.after("MN\r\n");
  CHECK(decision.action == Action::abandon);
  CHECK(decision.failure.message.empty());  // the socket's, which has closed
  Peer meta(Protocol::meta);
  meta.handshake.begin();
  meta.greets("get k\r\n");
  meta.closes();
  meta.handshake.begin();
  meta.closes();
  meta.handshake.begin();
  CHECK(meta.after("END\r\n").failure.message.find("--protocol auto") != std::string::npos);
}

TEST_CASE("handshake: each question of the probe follows a login of its own, as far as it is text") {
  Peer peer(Protocol::automatic, login(Login::Form::ascii));
  peer.handshake.begin();
  peer.after("STORED\r\nEND\r\n");
  peer.greets("get k\r\n");
  CHECK(peer.closes() == Action::reconnect);
  for (const std::string question : {"mn\r\n", classic_get}) {
    const std::string bytes = peer.handshake.begin();
    CHECK(bytes.starts_with("set mcds:login "));
    CHECK(bytes.find("get mcds:login\r\n" + question) != std::string::npos);
    CHECK(peer.handshake.state() == State::probing_login);
    CHECK(peer.handshake.is_probing());
    CHECK(peer.handshake.is_logging_in());
    CHECK(peer.closes("STORED\r\nEND\r\n") == Action::reconnect);
    CHECK(peer.handshake.state() == State::probing);
  }
  CHECK(peer.handshake.begin().starts_with('\x80'));
  CHECK(peer.handshake.state() == State::probing);
  CHECK(peer.closes() == Action::reconnect);
  peer.handshake.begin();
  CHECK(peer.after("", true).failure.message.starts_with("the server closes every connection"));
}

TEST_CASE("handshake: a timeout asks only a server that was never heard and may wait for a whole header") {
  Peer peer(Protocol::classic);
  peer.handshake.begin();
  CHECK(peer.handshake.on_timeout(false, late).action == Action::abandon);
  CHECK(peer.handshake.on_timeout(true, late).action == Action::reconnect);
  CHECK(peer.handshake.begin() == classic_get);
  CHECK(peer.handshake.on_timeout(true, late).action == Action::abandon);  // one probe is enough
  const ReplyFailure reported = peer.handshake.close({Kind::unreachable, "no connection"});
  CHECK(reported.late);
  CHECK(reported.message == "no reply");
  CHECK_FALSE(peer.handshake.close({Kind::unreachable, "no connection"}).late);

  Peer classic(Protocol::classic);
  classic.handshake.begin();
  classic.handshake.on_timeout(true, late);
  classic.handshake.begin();
  CHECK(classic.after("END\r\n").action == Action::abandon);  // it answers, so it was late
  CHECK(classic.handshake.close().message == "no reply");

  Peer answered(Protocol::classic);
  answered.handshake.begin();
  answered.handshake.on_reply();
  answered.handshake.close();
  answered.handshake.begin();
  CHECK(answered.handshake.on_timeout(true, late).action == Action::abandon);
  CHECK(answered.closes() == Action::abandon);
  Peer greeted(Protocol::automatic);
  greeted.handshake.begin();
  greeted.greets("get k\r\n");
  CHECK(greeted.handshake.on_timeout(true, late).action == Action::abandon);
}

TEST_CASE("handshake: the connection limit is believed before the first reply only") {
  Peer peer(Protocol::classic);
  peer.handshake.begin();
  CHECK(peer.handshake.on_invalid_reply(true).failure.kind == Kind::unreachable);
  CHECK(peer.handshake.on_invalid_reply(false).action == Action::abandon);
  peer.handshake.on_reply();
  CHECK(peer.handshake.on_invalid_reply(true).action == Action::abandon);
  peer.handshake.close();
  peer.handshake.begin();
  CHECK(peer.handshake.on_invalid_reply(true).action == Action::refuse);
  Peer greeted(Protocol::automatic);
  greeted.handshake.begin();
  greeted.greets("get k\r\n");
  CHECK(greeted.after("ERROR Too many open connections\r\n").action == Action::refuse);
}
