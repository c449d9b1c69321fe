#include "common/cluster/tls/library.hpp"

#include <dlfcn.h>

#include <cstdint>
#include <string>

#include "common/base/errors.hpp"

namespace mcds::tls {

namespace {

// libcrypto comes with it.
#define MCDS_OPENSSL "libssl.so.3"
constexpr const char* file_name = MCDS_OPENSSL;

#ifndef MCDS_STATIC
// Tells packagers of the library that the loader does not see (systemd.io/ELF_DLOPEN_METADATA).
#define MCDS_DLOPEN                                                                                         \
  "[{\"feature\":\"tls\",\"description\":\"servers that are reached by TLS\",\"priority\":\"recommended\"," \
  "\"soname\":[\"" MCDS_OPENSSL "\"]}]"
struct Note {
  std::uint32_t name_size, size, type;
  char name[4];
  char text[(sizeof MCDS_DLOPEN + 3) / 4 * 4];
};
[[gnu::used, gnu::section(".note.dlopen"), gnu::aligned(4)]] const Note note{4, sizeof MCDS_DLOPEN,
                                                                             0x407c0c0a, "FDO", MCDS_DLOPEN};
#endif

[[noreturn]] void missing() {
  throw Failure(ErrorCode::system,
                std::string("TLS needs ") + file_name + " of OpenSSL 3; install it (Debian: libssl3)");
}

template <typename Function>
void find(void* file, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(file, name));
  if (function == nullptr) missing();
}

Library load() {
#ifdef MCDS_STATIC
  throw Failure(ErrorCode::system, "this static build has no TLS; use one without -Dstatic=true");
#endif
  void* file = dlopen(file_name, RTLD_NOW | RTLD_LOCAL);
  if (file == nullptr) missing();
  Library table{};
  find(file, "OPENSSL_init_crypto", table.init_crypto);
  find(file, "TLS_client_method", table.client_method);
  find(file, "SSL_CTX_new", table.ctx_new);
  find(file, "SSL_CTX_free", table.ctx_free);
  find(file, "SSL_CTX_ctrl", table.ctx_ctrl);
  find(file, "SSL_CTX_set_options", table.ctx_set_options);
  find(file, "SSL_CTX_set_verify", table.ctx_set_verify);
  find(file, "SSL_CTX_set_default_verify_dir", table.ctx_set_default_verify_dir);
  find(file, "SSL_CTX_set_default_verify_file", table.ctx_set_default_verify_file);
  find(file, "SSL_CTX_load_verify_file", table.ctx_load_verify_file);
  find(file, "SSL_CTX_set_default_passwd_cb", table.ctx_set_default_passwd_cb);
  find(file, "SSL_CTX_set_default_passwd_cb_userdata", table.ctx_set_default_passwd_cb_userdata);
  find(file, "SSL_CTX_get_cert_store", table.ctx_get_cert_store);
  find(file, "X509_STORE_add_lookup", table.store_add_lookup);
  find(file, "X509_LOOKUP_file", table.lookup_file);
  find(file, "X509_load_crl_file", table.load_crl_file);
  find(file, "X509_STORE_set_flags", table.store_set_flags);
  find(file, "SSL_CTX_use_certificate_chain_file", table.ctx_use_certificate_chain_file);
  find(file, "SSL_CTX_use_PrivateKey_file", table.ctx_use_private_key_file);
  find(file, "SSL_new", table.create);
  find(file, "SSL_free", table.free);
  find(file, "SSL_ctrl", table.ctrl);
  find(file, "SSL_set_bio", table.set_bio);
  find(file, "SSL_set_connect_state", table.set_connect_state);
  find(file, "SSL_set_hostflags", table.set_hostflags);
  find(file, "SSL_set1_host", table.set1_host);
  find(file, "SSL_do_handshake", table.do_handshake);
  find(file, "SSL_read", table.read);
  find(file, "SSL_peek", table.peek);
  find(file, "SSL_write", table.write);
  find(file, "SSL_get_error", table.get_error);
  find(file, "SSL_get_verify_result", table.get_verify_result);
  find(file, "SSL_get1_peer_certificate", table.get1_peer_certificate);
  find(file, "X509_free", table.certificate_free);
  find(file, "X509_get0_notAfter", table.certificate_end);
  find(file, "ASN1_TIME_to_tm", table.time_to_tm);
  find(file, "BIO_meth_new", table.bio_meth_new);
  find(file, "BIO_meth_set_read", table.bio_meth_set_read);
  find(file, "BIO_meth_set_write", table.bio_meth_set_write);
  find(file, "BIO_meth_set_ctrl", table.bio_meth_set_ctrl);
  find(file, "BIO_new", table.bio_new);
  find(file, "BIO_set_data", table.bio_set_data);
  find(file, "BIO_get_data", table.bio_get_data);
  find(file, "BIO_set_init", table.bio_set_init);
  find(file, "BIO_set_flags", table.bio_set_flags);
  find(file, "BIO_clear_flags", table.bio_clear_flags);
  find(file, "ERR_peek_last_error", table.peek_last_error);
  find(file, "ERR_clear_error", table.clear_error);
  find(file, "ERR_reason_error_string", table.reason_error_string);
  find(file, "X509_get_default_cert_dir", table.default_cert_dir);
  find(file, "X509_verify_cert_error_string", table.verify_cert_error_string);
  // Never torn down: that would cost time at exit for nothing.
  if (table.init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr) != 1) missing();
  return table;
}

}  // namespace

const Library& library() {
  static const Library table = load();
  return table;
}

}  // namespace mcds::tls
