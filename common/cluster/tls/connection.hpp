// TLS on one connected, non-blocking socket, which stays its owner's.
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

// OpenSSL, loaded when the first tls:// server is used, so that programs without TLS do not pay for it.

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

// What all TLS connections share: the certificates, read once.
class Context {
 public:
  // Throws Failure: cannot_read or configuration for the files named, system without OpenSSL.
  explicit Context(TlsOptions options);

  const Library& library() const { return library_; }
  const TlsOptions& options() const { return options_; }
  SSL_CTX* handle() const { return handle_.get(); }

 private:
  void trust();
  void identify();
  // Returns PEM text as OpenSSL reads it from memory.
  std::unique_ptr<BIO, int (*)(BIO*)> pem(const std::string& bytes) const;
  // Calls `take` with each certificate and revocation list of the PEM text; returns how many it took.
  std::size_t each_in(const std::string& bytes, const std::function<bool(const X509_INFO&)>& take) const;

  TlsOptions options_;
  const Library& library_;
  std::unique_ptr<SSL_CTX, decltype(&::SSL_CTX_free)> handle_;
};

// One for each set of credentials, made when it is first needed.
class Contexts {
 public:
  // nullptr: the server is reached without TLS. Throws as Context does.
  const Context* of(const Server& server);

 private:
  std::map<std::shared_ptr<const Credentials>, std::unique_ptr<const Context>> made_;
};

constexpr std::size_t largest_record = 16 * 1024;

class Connection {
 public:
  // The name that is asked for (SNI, except for addresses, which have none) and checked: TlsOptions::name, or
  // the server's host.
  Connection(const Context& context, const Server& server, int descriptor);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  enum class Step { done, wants_to_read, wants_to_write, failed };
  Step handshake();
  // As those of a socket: bytes taken, 0 when it would block, -1 when the connection is gone.
  std::ptrdiff_t send(const char* bytes, std::size_t size);
  // Everything that one read from the socket returned: nothing is left that poll would not report.
  std::ptrdiff_t receive(std::string& into);
  // Neither closed nor anything to read.
  bool quiet();

  // When the server's certificate ends; after the handshake.
  std::optional<WallTime> certificate_end() const;

  // Why it failed, and what to do: one sentence. Empty for a connection that was closed without a word.
  const std::string& error() const { return error_; }
  // It failed because a certificate was missing or was not accepted: nothing that was sent was applied.
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
  // Read ahead of OpenSSL, which would ask the socket twice for each record.
  std::unique_ptr<char[]> raw_;
  std::size_t raw_begin_ = 0, raw_end_ = 0;
  bool may_refill_ = true;
  bool shaken_ = false;  // hands: the handshake is done, on our side
  bool heard_ = false;   // data from the server
  bool denied_ = false;
  std::string error_;
};

}  // namespace mcds::tls
