// OpenSSL, loaded when the first tls:// server is used, so that programs without TLS do not pay for it.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

#include "common/base/shared_library.hpp"

namespace mcds::tls {

struct Library {
  SharedLibrary file;
  MCDS_LOADED(init_crypto, OPENSSL_init_crypto);
  MCDS_LOADED(client_method, TLS_client_method);
  MCDS_LOADED(ctx_new, SSL_CTX_new);
  MCDS_LOADED(ctx_free, SSL_CTX_free);
  MCDS_LOADED(ctx_ctrl, SSL_CTX_ctrl);
  MCDS_LOADED(ctx_set_options, SSL_CTX_set_options);
  MCDS_LOADED(ctx_set_verify, SSL_CTX_set_verify);
  MCDS_LOADED(ctx_set_default_verify_dir, SSL_CTX_set_default_verify_dir);
  MCDS_LOADED(ctx_set_default_verify_file, SSL_CTX_set_default_verify_file);
  MCDS_LOADED(ctx_get_cert_store, SSL_CTX_get_cert_store);
  MCDS_LOADED(store_add_cert, X509_STORE_add_cert);
  MCDS_LOADED(store_add_crl, X509_STORE_add_crl);
  MCDS_LOADED(store_set_flags, X509_STORE_set_flags);
  MCDS_LOADED(ctx_use_certificate, SSL_CTX_use_certificate);
  MCDS_LOADED(ctx_use_key, SSL_CTX_use_PrivateKey);
  MCDS_LOADED(bio_new_mem_buf, BIO_new_mem_buf);
  MCDS_LOADED(bio_free, BIO_free);
  MCDS_LOADED(read_infos, PEM_X509_INFO_read_bio);
  MCDS_LOADED(info_free, X509_INFO_free);
  MCDS_LOADED(read_key, PEM_read_bio_PrivateKey);
  MCDS_LOADED(key_free, EVP_PKEY_free);
  MCDS_LOADED(stack_size, OPENSSL_sk_num);
  MCDS_LOADED(stack_at, OPENSSL_sk_value);
  MCDS_LOADED(stack_free, OPENSSL_sk_pop_free);
  MCDS_LOADED(create, SSL_new);
  MCDS_LOADED(free, SSL_free);
  MCDS_LOADED(ctrl, SSL_ctrl);
  MCDS_LOADED(set_bio, SSL_set_bio);
  MCDS_LOADED(set_connect_state, SSL_set_connect_state);
  MCDS_LOADED(set_hostflags, SSL_set_hostflags);
  MCDS_LOADED(set1_host, SSL_set1_host);
  MCDS_LOADED(do_handshake, SSL_do_handshake);
  MCDS_LOADED(read, SSL_read);
  MCDS_LOADED(peek, SSL_peek);
  MCDS_LOADED(write, SSL_write);
  MCDS_LOADED(get_error, SSL_get_error);
  MCDS_LOADED(get_verify_result, SSL_get_verify_result);
  MCDS_LOADED(get1_peer_certificate, SSL_get1_peer_certificate);
  MCDS_LOADED(certificate_free, X509_free);
  MCDS_LOADED(certificate_end, X509_get0_notAfter);
  MCDS_LOADED(time_to_tm, ASN1_TIME_to_tm);
  MCDS_LOADED(bio_meth_new, BIO_meth_new);
  MCDS_LOADED(bio_meth_set_read, BIO_meth_set_read);
  MCDS_LOADED(bio_meth_set_write, BIO_meth_set_write);
  MCDS_LOADED(bio_meth_set_ctrl, BIO_meth_set_ctrl);
  MCDS_LOADED(bio_new, BIO_new);
  MCDS_LOADED(bio_set_data, BIO_set_data);
  MCDS_LOADED(bio_get_data, BIO_get_data);
  MCDS_LOADED(bio_set_init, BIO_set_init);
  MCDS_LOADED(bio_set_flags, BIO_set_flags);
  MCDS_LOADED(bio_clear_flags, BIO_clear_flags);
  MCDS_LOADED(peek_last_error, ERR_peek_last_error);
  MCDS_LOADED(clear_error, ERR_clear_error);
  MCDS_LOADED(reason_error_string, ERR_reason_error_string);
  MCDS_LOADED(default_cert_dir, X509_get_default_cert_dir);
  MCDS_LOADED(verify_cert_error_string, X509_verify_cert_error_string);
};

// Throws Failure(system) when it is not installed or another version.
const Library& library();

}  // namespace mcds::tls
