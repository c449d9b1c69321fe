#include "common/cluster/tls/library.hpp"

namespace mcds::tls {

namespace {

// libcrypto comes with it.
#define MCDS_OPENSSL "libssl.so.3"
MCDS_DLOPEN_NOTE(OpensslNote, "tls", "servers that are reached by TLS", MCDS_OPENSSL);

Failure no_openssl() {
  return {ErrorCode::system, "TLS needs " MCDS_OPENSSL " of OpenSSL 3; install it (Debian: libssl3)"};
}

Library load() {
#ifdef MCDS_STATIC
  throw Failure(ErrorCode::system, "this static build has no TLS; use one without -Dstatic=true");
#endif
  const Library table{{MCDS_OPENSSL, no_openssl()}};
  // Never torn down: that would cost time at exit for nothing.
  if (table.init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr) != 1) throw no_openssl();
  return table;
}

}  // namespace

const Library& library() {
  static const Library table = load();
  return table;
}

}  // namespace mcds::tls
