// Credentials: the login and TLS settings of one server. Each Server carries its own in Server::credentials,
// set where its server list is chosen (tools/cli/access.hpp). Connections use only these, so that a login
// cannot reach a server of another list.
#pragma once

#include <cstring>
#include <functional>

#include "common/cluster/request.hpp"
#include "common/placement/pools/pool.hpp"

namespace mcds {

// LoginExchange: the first exchange on a connection to a server that requires a login. It does no I/O.
//
// Both forms are a `set` that such a server treats as a login: memcached -Y reads `USER PASSWORD` from its
// value; MemCachier reads the user from its key and the password from its value. A server that requires no
// login would store the item. The ascii form expires at once. The user-key form would stay, so a read on a
// separate connection first checks that the server refuses reads without a login. After the login a `get`, in
// the same write, shows whether it was stored anyway; if so, it is removed. Requests are sent only after the
// exchange, so nothing was applied if it fails.

struct Login {
  enum class Form { ascii, user_key, sasl };  // sasl: for the binary protocol only, not used by LoginExchange
  Form form = Form::ascii;
  std::string user = {};
  std::string password = {};

  // Wipes the password, which is kept while a connection may have to be reopened.
  ~Login() { explicit_bzero(password.data(), password.size()); }
};

// Throws InvalidInput, which does not show the password, if this form cannot carry the login: because of line
// breaks, or spaces where they separate.
void check(const Login& login);

class LoginExchange {
 public:
  // Sends the login at once if `asked` is set: the server has already refused a read without one.
  LoginExchange(const Login& login, bool asked);

  // Returns the bytes to send at the start of the exchange and after Step::send.
  std::string words() const;
  enum class Step {
    need_more,
    send,       // send words() on this connection
    reconnect,  // a login is required: start an exchange with `asked` on a new connection
    done,       // accepted
    failed,     // kind() and complaint() say why; nothing was applied
  };
  Step read(std::string_view input, std::size_t& position);
  // Handles a connection that the server has closed. Returns reconnect or failed.
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
  std::size_t size_ = 0;  // of the value being read
  ReplyFailure::Kind kind_ = ReplyFailure::Kind::denied;
  std::string complaint_;
};

// Returns true if the line reports a missing login; then nothing was applied.
bool wants_login(std::string_view line);
constexpr const char* login_wanted =
    "the server requires a login; give --user NAME and --password-file FILE (or MCDS_USER and MCDS_PASSWORD)";

// How the certificates of tls:// servers are checked, and which client certificate is shown to them.
struct TlsOptions {
  bool verify = true;
  std::string ca_file = {};           // PEM; empty: the system's CAs
  std::string crl_file = {};          // PEM: revoked certificates; empty: none are known
  std::string name = {};              // the name on every server's certificate; empty: each server's host
  std::string certificate_file = {};  // PEM, with the chain; empty: no client certificate
  std::string key_file = {};          // PEM; empty: the key is in certificate_file
  std::string key_password = {};      // empty if the key is not encrypted
  // Returns the bytes of one of these files; throws Failure. OpenSSL does not open the files itself, because
  // it would wait forever for a pipe without a writer.
  std::function<std::string(const std::string& file)> read = {};
};

struct Credentials {
  TlsOptions tls = {};
  std::optional<Login> login = {};
  // Why this server must not be contacted, and what to do; empty if it may. It is set if a login is
  // configured that must not be sent to this server.
  std::string withheld = {};
};

// The credentials of a server without its own: no login, and a certificate for its host that the system's CAs
// have signed.
inline const Credentials no_credentials{};

inline const Credentials& credentials_of(const Server& server) {
  return server.credentials == nullptr ? no_credentials : *server.credentials;
}

// Returns true if the server's login would be sent unencrypted over a network.
inline bool login_in_clear(const Server& server) {
  return credentials_of(server).login && !server.tls && !server.is_unix();
}

}  // namespace mcds
