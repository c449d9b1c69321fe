// TLS over a connected, non-blocking socket. The caller keeps ownership of the socket.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

#include <map>

#include "common/base/clock.hpp"
#include "common/base/shared_library.hpp"
#include "common/cluster/credentials.hpp"
#include "common/placement/pools/pool.hpp"

namespace mcds::tls {

// OpenSSL, loaded when the first tls:// server is used, so that programs without TLS do not pay for it. A
// static program contains it.

#ifdef MCDS_STATIC
#define MCDS_OPENSSL_FUNCTION(member, function) decltype(&::function) member = ::function
#else
#define MCDS_OPENSSL_FUNCTION(member, function) MCDS_LOADED(member, function)
#endif

struct Library {
#ifndef MCDS_STATIC
  SharedLibrary file;
#endif
  MCDS_OPENSSL_FUNCTION(init_crypto, OPENSSL_init_crypto);
  MCDS_OPENSSL_FUNCTION(client_method, TLS_client_method);
  MCDS_OPENSSL_FUNCTION(ctx_new, SSL_CTX_new);
  MCDS_OPENSSL_FUNCTION(ctx_free, SSL_CTX_free);
  MCDS_OPENSSL_FUNCTION(ctx_ctrl, SSL_CTX_ctrl);
  MCDS_OPENSSL_FUNCTION(ctx_set_options, SSL_CTX_set_options);
  MCDS_OPENSSL_FUNCTION(ctx_set_verify, SSL_CTX_set_verify);
  MCDS_OPENSSL_FUNCTION(ctx_set_default_verify_dir, SSL_CTX_set_default_verify_dir);
  MCDS_OPENSSL_FUNCTION(ctx_set_default_verify_file, SSL_CTX_set_default_verify_file);
  MCDS_OPENSSL_FUNCTION(ctx_load_verify_file, SSL_CTX_load_verify_file);
  MCDS_OPENSSL_FUNCTION(ctx_get_cert_store, SSL_CTX_get_cert_store);
  MCDS_OPENSSL_FUNCTION(store_add_cert, X509_STORE_add_cert);
  MCDS_OPENSSL_FUNCTION(store_add_crl, X509_STORE_add_crl);
  MCDS_OPENSSL_FUNCTION(store_set_flags, X509_STORE_set_flags);
  MCDS_OPENSSL_FUNCTION(ctx_use_certificate, SSL_CTX_use_certificate);
  MCDS_OPENSSL_FUNCTION(ctx_use_key, SSL_CTX_use_PrivateKey);
  MCDS_OPENSSL_FUNCTION(bio_new_mem_buf, BIO_new_mem_buf);
  MCDS_OPENSSL_FUNCTION(bio_free, BIO_free);
  MCDS_OPENSSL_FUNCTION(read_infos, PEM_X509_INFO_read_bio);
  MCDS_OPENSSL_FUNCTION(info_free, X509_INFO_free);
  MCDS_OPENSSL_FUNCTION(read_key, PEM_read_bio_PrivateKey);
  MCDS_OPENSSL_FUNCTION(key_free, EVP_PKEY_free);
  MCDS_OPENSSL_FUNCTION(stack_size, OPENSSL_sk_num);
  MCDS_OPENSSL_FUNCTION(stack_at, OPENSSL_sk_value);
  MCDS_OPENSSL_FUNCTION(stack_free, OPENSSL_sk_pop_free);
  MCDS_OPENSSL_FUNCTION(create, SSL_new);
  MCDS_OPENSSL_FUNCTION(free, SSL_free);
  MCDS_OPENSSL_FUNCTION(ctrl, SSL_ctrl);
  MCDS_OPENSSL_FUNCTION(set_bio, SSL_set_bio);
  MCDS_OPENSSL_FUNCTION(set_connect_state, SSL_set_connect_state);
  MCDS_OPENSSL_FUNCTION(set_hostflags, SSL_set_hostflags);
  MCDS_OPENSSL_FUNCTION(set1_host, SSL_set1_host);
  MCDS_OPENSSL_FUNCTION(do_handshake, SSL_do_handshake);
  MCDS_OPENSSL_FUNCTION(read, SSL_read);
  MCDS_OPENSSL_FUNCTION(peek, SSL_peek);
  MCDS_OPENSSL_FUNCTION(write, SSL_write);
  MCDS_OPENSSL_FUNCTION(get_error, SSL_get_error);
  MCDS_OPENSSL_FUNCTION(get_verify_result, SSL_get_verify_result);
  MCDS_OPENSSL_FUNCTION(get1_peer_certificate, SSL_get1_peer_certificate);
  MCDS_OPENSSL_FUNCTION(certificate_free, X509_free);
  MCDS_OPENSSL_FUNCTION(certificate_end, X509_get0_notAfter);
  MCDS_OPENSSL_FUNCTION(time_to_tm, ASN1_TIME_to_tm);
  MCDS_OPENSSL_FUNCTION(bio_meth_new, BIO_meth_new);
  MCDS_OPENSSL_FUNCTION(bio_meth_set_read, BIO_meth_set_read);
  MCDS_OPENSSL_FUNCTION(bio_meth_set_write, BIO_meth_set_write);
  MCDS_OPENSSL_FUNCTION(bio_meth_set_ctrl, BIO_meth_set_ctrl);
  MCDS_OPENSSL_FUNCTION(bio_new, BIO_new);
  MCDS_OPENSSL_FUNCTION(bio_set_data, BIO_set_data);
  MCDS_OPENSSL_FUNCTION(bio_get_data, BIO_get_data);
  MCDS_OPENSSL_FUNCTION(bio_set_init, BIO_set_init);
  MCDS_OPENSSL_FUNCTION(bio_set_flags, BIO_set_flags);
  MCDS_OPENSSL_FUNCTION(bio_clear_flags, BIO_clear_flags);
  MCDS_OPENSSL_FUNCTION(peek_last_error, ERR_peek_last_error);
  MCDS_OPENSSL_FUNCTION(clear_error, ERR_clear_error);
  MCDS_OPENSSL_FUNCTION(reason_error_string, ERR_reason_error_string);
  MCDS_OPENSSL_FUNCTION(default_cert_dir, X509_get_default_cert_dir);
  MCDS_OPENSSL_FUNCTION(default_cert_file, X509_get_default_cert_file);
  MCDS_OPENSSL_FUNCTION(verify_cert_error_string, X509_verify_cert_error_string);
};

// Returns the loaded library. Throws Failure(system) if it is not installed or has another version.
const Library& library();

// The certificates and settings that TLS connections share. The files are read once.
class Context {
 public:
  // Throws Failure: cannot_read or configuration for the files, system if OpenSSL is missing.
  explicit Context(TlsOptions options);

  const Library& library() const { return library_; }
  const TlsOptions& options() const { return options_; }
  SSL_CTX* handle() const { return handle_.get(); }

 private:
  void trust();
  void trust_system();
  void identify();
  // Returns a BIO from which OpenSSL reads the PEM text.
  std::unique_ptr<BIO, int (*)(BIO*)> pem(const std::string& bytes) const;
  // Calls `take` with each certificate and revocation list of the PEM text. Returns how many it accepted.
  std::size_t each_in(const std::string& bytes, const std::function<bool(const X509_INFO&)>& take) const;

  TlsOptions options_;
  const Library& library_;
  std::unique_ptr<SSL_CTX, decltype(&::SSL_CTX_free)> handle_;
};

// Creates one Context for each set of credentials, on first use.
class Contexts {
 public:
  // Returns nullptr for a server that is reached without TLS. Throws as Context() does.
  const Context* of(const Server& server);

 private:
  std::map<std::shared_ptr<const Credentials>, std::unique_ptr<const Context>> made_;
};

constexpr std::size_t max_record_size = 16 * 1024;

class Connection {
 public:
  // Requests (by SNI, except for addresses) and checks the name TlsOptions::name or else the server's host.
  Connection(const Context& context, const Server& server, int descriptor);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  enum class Step { done, wants_to_read, wants_to_write, failed };
  Step handshake();
  // Sends or receives. Returns the number of bytes, 0 if it would block, -1 if the connection is gone.
  std::ptrdiff_t send(const char* bytes, std::size_t size);
  // Appends all data that one read from the socket returned, so that poll() reports whatever is left.
  std::ptrdiff_t receive(std::string& into);
  // Returns true if the connection is neither closed nor has anything to read.
  bool quiet();

  // Returns when the server's certificate expires. Call it after the handshake.
  std::optional<WallTime> certificate_end() const;

  // Returns why it failed and what to do, in one sentence; empty if the server closed without a reason.
  const std::string& error() const { return error_; }
  // Returns true if a certificate was missing or not accepted; then nothing that was sent was applied.
  bool denied() const { return denied_; }

 private:
  static int read_socket(BIO* bio, char* into, int size);
  static int write_socket(BIO* bio, const char* bytes, int size);
  static BIO_METHOD* method(const Library& library);
  bool expect_name();
  void note_failure();
  void note_certificate(long code);
  void note_alert(int reason);

  const Context& context_;
  const Library& library_;
  std::string name_;
  int descriptor_;
  std::unique_ptr<SSL, decltype(&::SSL_free)> handle_;
  // Bytes read ahead of OpenSSL, which would make two system calls for each record.
  std::unique_ptr<char[]> raw_;
  std::size_t raw_begin_ = 0, raw_end_ = 0;
  bool may_refill_ = true;
  bool shaken_ = false;     // the handshake is done on our side
  bool got_reply_ = false;  // data from the server was received
  bool denied_ = false;
  std::string error_;
};

}  // namespace mcds::tls
