// What one server may be shown, and how it is recognized. Each Server carries its own (Server::credentials),
// which it is given where its list is chosen (tools/cli/access.hpp). Whoever connects takes them from the
// server alone, so that a login cannot reach a server of another list.
#pragma once

#include <cstring>
#include <functional>

#include "common/cluster/request.hpp"
#include "common/placement/pools/pool.hpp"

namespace mcds {

// The first exchange of a connection to a server that requires a login. Pure, no I/O.
//
// Both forms are a `set` that such a server treats as a login: memcached -Y reads `USER PASSWORD` from its
// value;
// MemCachier reads the user from its key and the password from its value. A server that requires no login
// stores what it is sent: the first form expires at once, the second would stay, so the server is asked
// first, by a read on a connection of its own, whether it answers anybody. After the login a `get`, in the
// same write, shows whether it was stored after all; then it is removed. No request is sent before the
// exchange is done: as long as it is not, nothing was applied.

struct Login {
  enum class Form { ascii, user_key, sasl };  // sasl: of the binary protocol, not of this exchange
  Form form = Form::ascii;
  std::string user = {};
  std::string password = {};

  // Wipes the password, which is kept as long as a connection may have to be made again.
  ~Login() { explicit_bzero(password.data(), password.size()); }
};

// Throws InvalidInput, without showing the password, for what this form cannot carry: line breaks, and spaces
// where they separate.
void check(const Login& login);

class LoginExchange {
 public:
  // `asked`: this server is known to refuse reads without a login.
  LoginExchange(const Login& login, bool asked);

  // Returns the bytes to send next: when the exchange begins, and after Step::send.
  std::string words() const;
  enum class Step {
    need_more,
    send,       // words() on this connection
    reconnect,  // the server requires a login: begin an exchange that was `asked`, on a new connection
    done,       // accepted
    failed,     // kind() and complaint() say why; nothing was applied
  };
  Step read(std::string_view input, std::size_t& position);
  // The server has closed the connection: reconnect or failed.
  Step closed();
  ReplyFailure::Kind kind() const { return kind_; }
  const std::string& complaint() const { return complaint_; }

 private:
  enum class Stage { ask, log_in, look, value, remove };
  std::string_view key() const;
  std::string value() const;
  Step read_line(std::string_view line);
  Step read_error(std::string_view line);
  Step read_value(std::string_view input, std::size_t& position);
  Step fail(ReplyFailure::Kind kind, std::string complaint);

  const Login& login_;
  Stage stage_;
  std::size_t size_ = 0;  // of the value that is coming
  ReplyFailure::Kind kind_ = ReplyFailure::Kind::denied;
  std::string complaint_;
};

// Returns whether the line says that a login is missing; then nothing was applied.
bool wants_login(std::string_view line);
constexpr const char* login_wanted =
    "the server requires a login; give --user NAME and --password-file FILE (or MCDS_USER and MCDS_PASSWORD)";

// How the certificates of tls:// servers are checked, and which one is shown to them.
struct TlsOptions {
  bool verify = true;
  std::string ca_file = {};           // PEM; empty: the system's
  std::string crl_file = {};          // PEM: certificates that were revoked; empty: none is known
  std::string name = {};              // what every server's certificate is for; empty: each server's own host
  std::string certificate_file = {};  // PEM, with the chain; empty: none is shown
  std::string key_file = {};          // PEM; empty: in certificate_file
  std::string key_password = {};      // of an encrypted key; empty: none
  // Returns the bytes of one of these files; throws Failure. OpenSSL opens none of them itself: a pipe that
  // nobody writes would be waited for without end.
  std::function<std::string(const std::string& file)> read = {};
};

struct Credentials {
  TlsOptions tls = {};
  std::optional<Login> login = {};
  // Why this server is not contacted, and what to do: a login is meant for it that may not be sent to it. Or
  // empty.
  std::string withheld = {};
};

// Those of a server that has none: no login, and a certificate that the system's CAs must have signed for its
// host.
inline const Credentials no_credentials{};

inline const Credentials& credentials_of(const Server& server) {
  return server.credentials == nullptr ? no_credentials : *server.credentials;
}

// Whether a login is sent to it that anybody on the way can read.
inline bool login_in_clear(const Server& server) {
  return credentials_of(server).login && !server.tls && !server.is_unix();
}

}  // namespace mcds
