// How the certificates of tls:// servers are checked, and which one is shown to them.
#pragma once

#include <string>

namespace mcds {

struct TlsOptions {
  bool verify = true;
  std::string ca_file = {};           // PEM; empty: the system's
  std::string crl_file = {};          // PEM: certificates that were revoked; empty: none is known
  std::string name = {};              // what every server's certificate is for; empty: each server's own host
  std::string certificate_file = {};  // PEM, with the chain; empty: none is shown
  std::string key_file = {};          // PEM; empty: in certificate_file
  std::string key_password = {};      // of an encrypted key; empty: none
};

}  // namespace mcds
