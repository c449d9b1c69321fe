#include "common/cluster/tls/context.hpp"

#include <dirent.h>
#include <string.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

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

std::unique_ptr<BIO, int (*)(BIO*)> Context::pem(const std::string& bytes) const {
  std::unique_ptr<BIO, int (*)(BIO*)> bio(
      library_.bio_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())), library_.bio_free);
  if (bio == nullptr) throw Failure(ErrorCode::system, "no memory for a certificate");
  return bio;
}

std::size_t Context::each_in(const std::string& bytes,
                             const std::function<bool(const X509_INFO&)>& take) const {
  STACK_OF(X509_INFO)* const all = library_.read_infos(pem(bytes).get(), nullptr, nullptr, nullptr);
  auto* const stack = reinterpret_cast<OPENSSL_STACK*>(all);
  std::size_t taken = 0;
  for (int i = 0; all != nullptr && i < library_.stack_size(stack); ++i)
    taken += take(*static_cast<const X509_INFO*>(library_.stack_at(stack, i))) ? 1 : 0;
  library_.stack_free(stack, reinterpret_cast<OPENSSL_sk_freefunc>(library_.info_free));
  return taken;
}

void Context::trust() {
  X509_STORE* const store = library_.ctx_get_cert_store(handle_.get());
  if (!options_.ca_file.empty()) {
    const std::size_t certificates = each_in(options_.read(options_.ca_file), [&](const X509_INFO& info) {
      return info.x509 != nullptr && library_.store_add_cert(store, info.x509) == 1;
    });
    if (certificates == 0)
      unusable(options_.ca_file,
               "it has no readable certificate; it must contain the CA's certificate in PEM format");
  } else {
    require(library_.ctx_set_default_verify_dir(handle_.get()) == 1);
    if (std::getenv("SSL_CERT_FILE") != nullptr || !is_indexed(library_.default_cert_dir()))
      require(library_.ctx_set_default_verify_file(handle_.get()) == 1);
  }
  if (options_.crl_file.empty()) return;
  // Of every certificate of the chain, so the file has a list of each CA.
  const std::size_t lists = each_in(options_.read(options_.crl_file), [&](const X509_INFO& info) {
    return info.crl != nullptr && library_.store_add_crl(store, info.crl) == 1;
  });
  if (lists == 0) unusable(options_.crl_file, "it has no readable revocation list; it must be in PEM format");
  require(library_.store_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL) == 1);
}

void Context::identify() {
  const std::string& certificate = options_.certificate_file;
  const std::string certificate_pem = options_.read(certificate);
  // The first is ours, the others are its chain.
  bool is_first = true;
  const std::size_t certificates = each_in(certificate_pem, [&](const X509_INFO& info) {
    if (info.x509 == nullptr) return false;
    if (std::exchange(is_first, false)) return library_.ctx_use_certificate(handle_.get(), info.x509) == 1;
    return library_.ctx_ctrl(handle_.get(), SSL_CTRL_CHAIN_CERT, 1, info.x509) == 1;
  });
  if (certificates == 0) unusable(certificate, "it has no readable certificate; it must be in PEM format");
  const std::string& key = options_.key_file.empty() ? certificate : options_.key_file;
  std::string key_pem = key == certificate ? certificate_pem : options_.read(key);
  library_.clear_error();
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> read_key(
      library_.read_key(pem(key_pem).get(), nullptr, give_password, &options_), library_.key_free);
  explicit_bzero(key_pem.data(), key_pem.size());
  if (read_key == nullptr)
    unusable(key,
             options_.key_password.empty()
                 ? "it has no readable key; it must be in PEM format, or give --tls-key-password-file if "
                   "it is encrypted"
                 : "it has no key that the password of --tls-key-password-file opens");
  if (library_.ctx_use_key(handle_.get(), read_key.get()) != 1)
    unusable(key, "the key does not belong to the certificate " + certificate);
}

}  // namespace mcds::tls
