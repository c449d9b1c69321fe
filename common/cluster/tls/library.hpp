// OpenSSL, loaded when the first tls:// server is used, so that programs without TLS do not pay for it.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

namespace mcds::tls {

struct Library {
  decltype(&::OPENSSL_init_crypto) init_crypto;
  decltype(&::TLS_client_method) client_method;
  decltype(&::SSL_CTX_new) ctx_new;
  decltype(&::SSL_CTX_free) ctx_free;
  decltype(&::SSL_CTX_ctrl) ctx_ctrl;
  decltype(&::SSL_CTX_set_options) ctx_set_options;
  decltype(&::SSL_CTX_set_verify) ctx_set_verify;
  decltype(&::SSL_CTX_set_default_verify_dir) ctx_set_default_verify_dir;
  decltype(&::SSL_CTX_set_default_verify_file) ctx_set_default_verify_file;
  decltype(&::SSL_CTX_load_verify_file) ctx_load_verify_file;
  decltype(&::SSL_CTX_set_default_passwd_cb) ctx_set_default_passwd_cb;
  decltype(&::SSL_CTX_set_default_passwd_cb_userdata) ctx_set_default_passwd_cb_userdata;
  decltype(&::SSL_CTX_get_cert_store) ctx_get_cert_store;
  decltype(&::X509_STORE_add_lookup) store_add_lookup;
  decltype(&::X509_LOOKUP_file) lookup_file;
  decltype(&::X509_load_crl_file) load_crl_file;
  decltype(&::X509_STORE_set_flags) store_set_flags;
  decltype(&::SSL_CTX_use_certificate_chain_file) ctx_use_certificate_chain_file;
  decltype(&::SSL_CTX_use_PrivateKey_file) ctx_use_private_key_file;
  decltype(&::SSL_new) create;
  decltype(&::SSL_free) free;
  decltype(&::SSL_ctrl) ctrl;
  decltype(&::SSL_set_bio) set_bio;
  decltype(&::SSL_set_connect_state) set_connect_state;
  decltype(&::SSL_set_hostflags) set_hostflags;
  decltype(&::SSL_set1_host) set1_host;
  decltype(&::SSL_do_handshake) do_handshake;
  decltype(&::SSL_read) read;
  decltype(&::SSL_peek) peek;
  decltype(&::SSL_write) write;
  decltype(&::SSL_get_error) get_error;
  decltype(&::SSL_get_verify_result) get_verify_result;
  decltype(&::SSL_get1_peer_certificate) get1_peer_certificate;
  decltype(&::X509_free) certificate_free;
  decltype(&::X509_get0_notAfter) certificate_end;
  decltype(&::ASN1_TIME_to_tm) time_to_tm;
  decltype(&::BIO_meth_new) bio_meth_new;
  decltype(&::BIO_meth_set_read) bio_meth_set_read;
  decltype(&::BIO_meth_set_write) bio_meth_set_write;
  decltype(&::BIO_meth_set_ctrl) bio_meth_set_ctrl;
  decltype(&::BIO_new) bio_new;
  decltype(&::BIO_set_data) bio_set_data;
  decltype(&::BIO_get_data) bio_get_data;
  decltype(&::BIO_set_init) bio_set_init;
  decltype(&::BIO_set_flags) bio_set_flags;
  decltype(&::BIO_clear_flags) bio_clear_flags;
  decltype(&::ERR_peek_last_error) peek_last_error;
  decltype(&::ERR_clear_error) clear_error;
  decltype(&::ERR_reason_error_string) reason_error_string;
  decltype(&::X509_get_default_cert_dir) default_cert_dir;
  decltype(&::X509_verify_cert_error_string) verify_cert_error_string;
};

// Throws Failure(system) when it is not installed or another version.
const Library& library();

}  // namespace mcds::tls
