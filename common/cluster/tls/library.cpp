#include "common/cluster/tls/library.hpp"

#include "common/base/shared_library.hpp"

namespace mcds::tls {

namespace {

// libcrypto comes with it.
#define MCDS_OPENSSL "libssl.so.3"
MCDS_DLOPEN_NOTE(OpensslNote, "tls", "servers that are reached by TLS", MCDS_OPENSSL);

Failure no_openssl() {
  return {ErrorCode::system, "TLS needs " MCDS_OPENSSL " of OpenSSL 3; install it (Debian: libssl3)"};
}

void find_contexts(const SharedLibrary& file, Library& table) {
  file.find("OPENSSL_init_crypto", table.init_crypto);
  file.find("TLS_client_method", table.client_method);
  file.find("SSL_CTX_new", table.ctx_new);
  file.find("SSL_CTX_free", table.ctx_free);
  file.find("SSL_CTX_ctrl", table.ctx_ctrl);
  file.find("SSL_CTX_set_options", table.ctx_set_options);
  file.find("SSL_CTX_set_verify", table.ctx_set_verify);
  file.find("SSL_CTX_set_default_verify_dir", table.ctx_set_default_verify_dir);
  file.find("SSL_CTX_set_default_verify_file", table.ctx_set_default_verify_file);
  file.find("SSL_CTX_load_verify_file", table.ctx_load_verify_file);
  file.find("SSL_CTX_set_default_passwd_cb", table.ctx_set_default_passwd_cb);
  file.find("SSL_CTX_set_default_passwd_cb_userdata", table.ctx_set_default_passwd_cb_userdata);
  file.find("SSL_CTX_get_cert_store", table.ctx_get_cert_store);
  file.find("X509_STORE_add_lookup", table.store_add_lookup);
  file.find("X509_LOOKUP_file", table.lookup_file);
  file.find("X509_load_crl_file", table.load_crl_file);
  file.find("X509_STORE_set_flags", table.store_set_flags);
  file.find("SSL_CTX_use_certificate_chain_file", table.ctx_use_certificate_chain_file);
  file.find("SSL_CTX_use_PrivateKey_file", table.ctx_use_private_key_file);
}

Library load() {
#ifdef MCDS_STATIC
  throw Failure(ErrorCode::system, "this static build has no TLS; use one without -Dstatic=true");
#endif
  const SharedLibrary file(MCDS_OPENSSL, no_openssl());
  Library table{};
  find_contexts(file, table);
  file.find("SSL_new", table.create);
  file.find("SSL_free", table.free);
  file.find("SSL_ctrl", table.ctrl);
  file.find("SSL_set_bio", table.set_bio);
  file.find("SSL_set_connect_state", table.set_connect_state);
  file.find("SSL_set_hostflags", table.set_hostflags);
  file.find("SSL_set1_host", table.set1_host);
  file.find("SSL_do_handshake", table.do_handshake);
  file.find("SSL_read", table.read);
  file.find("SSL_peek", table.peek);
  file.find("SSL_write", table.write);
  file.find("SSL_get_error", table.get_error);
  file.find("SSL_get_verify_result", table.get_verify_result);
  file.find("SSL_get1_peer_certificate", table.get1_peer_certificate);
  file.find("X509_free", table.certificate_free);
  file.find("X509_get0_notAfter", table.certificate_end);
  file.find("ASN1_TIME_to_tm", table.time_to_tm);
  file.find("BIO_meth_new", table.bio_meth_new);
  file.find("BIO_meth_set_read", table.bio_meth_set_read);
  file.find("BIO_meth_set_write", table.bio_meth_set_write);
  file.find("BIO_meth_set_ctrl", table.bio_meth_set_ctrl);
  file.find("BIO_new", table.bio_new);
  file.find("BIO_set_data", table.bio_set_data);
  file.find("BIO_get_data", table.bio_get_data);
  file.find("BIO_set_init", table.bio_set_init);
  file.find("BIO_set_flags", table.bio_set_flags);
  file.find("BIO_clear_flags", table.bio_clear_flags);
  file.find("ERR_peek_last_error", table.peek_last_error);
  file.find("ERR_clear_error", table.clear_error);
  file.find("ERR_reason_error_string", table.reason_error_string);
  file.find("X509_get_default_cert_dir", table.default_cert_dir);
  file.find("X509_verify_cert_error_string", table.verify_cert_error_string);
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
