// What one server may be shown, and how it is recognized. Each Server carries its own (Server::credentials),
// which it is given where its list is chosen (tools/cli/access.hpp). Whoever connects takes them from the
// server alone, so that a login cannot reach a server of another list.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "common/cluster/login.hpp"
#include "common/placement/pools/pool.hpp"

namespace mcds {

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
