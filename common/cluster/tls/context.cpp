#include "common/cluster/tls/context.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "common/base/errors.hpp"

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

void require_readable(const std::string& file, const char* what) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    throw refused_by_system(ErrorCode::cannot_read, std::string("cannot read ") + what + ' ' + file);
  close(descriptor);
}

[[noreturn]] void unusable(const std::string& file, const std::string& what) {
  throw Failure(ErrorCode::configuration, file + ": " + what);
}

// Never asks anybody. Without a password, or with one that does not fit: none.
int give_password(char* into, int size, int, void* from) {
  const std::string& password = static_cast<const TlsOptions*>(from)->key_password;
  if (password.empty() || password.size() > static_cast<std::size_t>(size)) return -1;
  std::copy(password.begin(), password.end(), into);
  return static_cast<int>(password.size());
}

void require(bool done) {
  if (!done) throw Failure(ErrorCode::system, "OpenSSL does not take a setting; check its openssl.cnf");
}

// Whether certificates are found there by hash, one at a time: the whole bundle takes milliseconds to read.
bool is_indexed(const char* directory) {
  DIR* const entries = opendir(directory);
  if (entries == nullptr) return false;
  bool indexed = false;
  while (const dirent* entry = indexed ? nullptr : readdir(entries))
    indexed = std::string_view(entry->d_name).ends_with(".0");
  closedir(entries);
  return indexed;
}

}  // namespace

const Library& library() {
  static const Library table = load();
  return table;
}

Context::Context(TlsOptions options)
    : options_(std::move(options)),
      library_(tls::library()),
      handle_(library_.ctx_new(library_.client_method()), library_.ctx_free) {
  if (handle_ == nullptr)
    throw Failure(ErrorCode::system, "OpenSSL cannot create a context; check its openssl.cnf");
  constexpr long mode = SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER;
  constexpr std::uint64_t flags = SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF;
  require(library_.ctx_ctrl(handle_.get(), SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, nullptr) == 1);
  require((library_.ctx_ctrl(handle_.get(), SSL_CTRL_MODE, mode, nullptr) & mode) == mode);
  static_cast<void>(
      library_.ctx_ctrl(handle_.get(), SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, nullptr));
  require((library_.ctx_set_options(handle_.get(), flags) & flags) == flags);
  library_.ctx_set_verify(handle_.get(), options_.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  if (options_.verify) trust();
  if (!options_.certificate_file.empty()) identify();
}

const Context* Contexts::of(const Server& server) {
  if (!server.tls) return nullptr;
  std::unique_ptr<const Context>& context = made_[server.credentials];
  if (context == nullptr) context = std::make_unique<const Context>(credentials_of(server).tls);
  return context.get();
}

void Context::trust() {
  if (!options_.ca_file.empty()) {
    require_readable(options_.ca_file, "the CA file");
    if (library_.ctx_load_verify_file(handle_.get(), options_.ca_file.c_str()) != 1)
      unusable(options_.ca_file,
               "it has no readable certificate; it must contain the CA's certificate in PEM format");
  } else {
    require(library_.ctx_set_default_verify_dir(handle_.get()) == 1);
    if (std::getenv("SSL_CERT_FILE") != nullptr || !is_indexed(library_.default_cert_dir()))
      require(library_.ctx_set_default_verify_file(handle_.get()) == 1);
  }
  if (!options_.crl_file.empty()) revoke();
}

// Of every certificate of the chain, so the file has a list of each CA.
void Context::revoke() {
  const std::string& file = options_.crl_file;
  require_readable(file, "the revocation list");
  X509_STORE* const store = library_.ctx_get_cert_store(handle_.get());
  X509_LOOKUP* const lookup = library_.store_add_lookup(store, library_.lookup_file());
  require(lookup != nullptr);
  if (library_.load_crl_file(lookup, file.c_str(), X509_FILETYPE_PEM) < 1)
    unusable(file, "it has no readable revocation list; it must be in PEM format");
  require(library_.store_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL) == 1);
}

void Context::identify() {
  const std::string& certificate = options_.certificate_file;
  const std::string& key = options_.key_file.empty() ? certificate : options_.key_file;
  require_readable(certificate, "the certificate");
  require_readable(key, "the key");
  if (library_.ctx_use_certificate_chain_file(handle_.get(), certificate.c_str()) != 1)
    unusable(certificate, "it has no readable certificate; it must be in PEM format");
  library_.ctx_set_default_passwd_cb(handle_.get(), give_password);
  library_.ctx_set_default_passwd_cb_userdata(handle_.get(), &options_);
  library_.clear_error();
  if (library_.ctx_use_private_key_file(handle_.get(), key.c_str(), SSL_FILETYPE_PEM) == 1) return;
  const bool other = ERR_GET_REASON(library_.peek_last_error()) == X509_R_KEY_VALUES_MISMATCH;
  unusable(key,
           other ? "the key does not belong to the certificate " + certificate
           : options_.key_password.empty()
               ? "it has no readable key; it must be in PEM format, or give --tls-key-password-file if it is "
                 "encrypted"
               : "it has no key that the password of --tls-key-password-file opens");
}

}  // namespace mcds::tls
