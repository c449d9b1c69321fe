#include "common/cluster/tls/connection.hpp"

#include <dirent.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/text.hpp"

namespace mcds::tls {

namespace {

constexpr std::size_t raw_size = 64 * 1024;

bool would_block() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

std::string checked_name(const Context& context, const Server& server) {
  std::string name = context.options().name.empty() ? server.host : context.options().name;
  // The name excludes the zone of an IPv6 address and the dot at the end of a host name.
  if (const auto scope = name.find('%'); scope != std::string::npos && is_address(name.substr(0, scope)))
    name.resize(scope);
  if (name.ends_with('.')) name.pop_back();
  return name;
}

}  // namespace

// The method is shared by all connections and never freed.
BIO_METHOD* Connection::method(const Library& library) {
  static BIO_METHOD* const socket_method = [&library] {
    BIO_METHOD* const made = library.bio_meth_new(BIO_TYPE_SOURCE_SINK, "mcds socket");
    const bool set = made != nullptr && library.bio_meth_set_read(made, read_socket) == 1 &&
                     library.bio_meth_set_write(made, write_socket) == 1 &&
                     library.bio_meth_set_ctrl(made, [](BIO*, int command, long, void*) -> long {
                       return command == BIO_CTRL_FLUSH ? 1 : 0;
                     }) == 1;
    return set ? made : nullptr;
  }();
  return socket_method;
}

Connection::Connection(const Context& context, const Server& server, int descriptor)
    : context_(context),
      library_(context.library()),
      name_(checked_name(context, server)),
      descriptor_(descriptor),
      handle_(library_.create(context.handle()), library_.free),
      raw_(new char[raw_size]) {
  const BIO_METHOD* const ours = method(library_);
  BIO* const bio = ours == nullptr ? nullptr : library_.bio_new(ours);
  if (handle_ == nullptr || bio == nullptr)
    throw Failure(ErrorCode::system, "no memory for a TLS connection");
  library_.bio_set_data(bio, this);
  library_.bio_set_init(bio, 1);
  library_.set_bio(handle_.get(), bio, bio);
  library_.set_connect_state(handle_.get());
  if (!expect_name()) {
    denied_ = true;
    error_ = "no certificate can be checked against the name " + in_quotes(name_) +
             "; write the server's name as in the certificate, or give --tls-name NAME";
  }
}

// Sets the name to request and to check. Returns false if it is not a valid name; then nothing must be sent,
// because OpenSSL checks no name if it is empty, and accepts any subdomain if it starts with a dot.
bool Connection::expect_name() {
  const bool address = is_address(name_);
  const bool named = address || is_host_name(name_);
  if (!named) return !context_.options().verify;
  if (!address && library_.ctrl(handle_.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                                name_.data()) != 1)
    return false;
  library_.set_hostflags(handle_.get(), X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return library_.set1_host(handle_.get(), name_.c_str()) == 1;
}

std::optional<WallTime> Connection::certificate_end() const {
  const std::unique_ptr<X509, decltype(&::X509_free)> certificate(
      library_.get1_peer_certificate(handle_.get()), library_.certificate_free);
  std::tm time{};
  if (certificate == nullptr || library_.time_to_tm(library_.certificate_end(certificate.get()), &time) != 1)
    return std::nullopt;
  return WallTime(std::chrono::seconds(timegm(&time)));
}

Connection::~Connection() = default;

int Connection::write_socket(BIO* bio, const char* bytes, int size) {
  const Library& library = tls::library();
  const auto& self = *static_cast<Connection*>(library.bio_get_data(bio));
  library.bio_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
  const ssize_t sent = ::send(self.descriptor_, bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  if (sent < 0 && would_block()) library.bio_set_flags(bio, BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY);
  return static_cast<int>(sent);
}

int Connection::read_socket(BIO* bio, char* into, int size) {
  const Library& library = tls::library();
  auto& self = *static_cast<Connection*>(library.bio_get_data(bio));
  library.bio_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
  if (self.raw_begin_ == self.raw_end_) {
    errno = EAGAIN;
    const ssize_t got = self.may_refill_ ? recv(self.descriptor_, self.raw_.get(), raw_size, 0) : ssize_t{-1};
    if (got < 0 && would_block()) library.bio_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
    if (got <= 0) return static_cast<int>(got);
    self.raw_begin_ = 0;
    self.raw_end_ = static_cast<std::size_t>(got);
    self.may_refill_ = !self.shaken_;
  }
  const std::size_t taken = std::min(static_cast<std::size_t>(size), self.raw_end_ - self.raw_begin_);
  std::copy_n(self.raw_.get() + self.raw_begin_, taken, into);
  self.raw_begin_ += taken;
  return static_cast<int>(taken);
}

Connection::Step Connection::handshake() {
  if (denied_) return Step::failed;
  library_.clear_error();
  const int result = library_.do_handshake(handle_.get());
  if (result == 1) {
    shaken_ = true;
    return Step::done;
  }
  switch (library_.get_error(handle_.get(), result)) {
    case SSL_ERROR_WANT_READ: return Step::wants_to_read;
    case SSL_ERROR_WANT_WRITE: return Step::wants_to_write;
    default: note_failure(); return Step::failed;
  }
}

std::ptrdiff_t Connection::send(const char* bytes, std::size_t size) {
  library_.clear_error();
  const int sent = library_.write(handle_.get(), bytes, static_cast<int>(std::min(size, max_record_size)));
  if (sent > 0) return sent;
  const int code = library_.get_error(handle_.get(), sent);
  return code == SSL_ERROR_WANT_WRITE || code == SSL_ERROR_WANT_READ ? 0 : -1;
}

std::ptrdiff_t Connection::receive(std::string& into) {
  std::array<char, max_record_size> record;
  std::ptrdiff_t total = 0;
  may_refill_ = true;
  for (;;) {
    library_.clear_error();
    const int got = library_.read(handle_.get(), record.data(), static_cast<int>(record.size()));
    if (got <= 0) {
      const int code = library_.get_error(handle_.get(), got);
      if (code == SSL_ERROR_WANT_READ || code == SSL_ERROR_WANT_WRITE) return total;
      note_failure();
      return total > 0 ? total : -1;
    }
    got_reply_ = true;
    into.append(record.data(), static_cast<std::size_t>(got));
    total += got;
  }
}

bool Connection::quiet() {
  char byte = 0;
  may_refill_ = true;
  library_.clear_error();
  const int got = library_.peek(handle_.get(), &byte, 1);
  return got <= 0 && library_.get_error(handle_.get(), got) == SSL_ERROR_WANT_READ;
}

void Connection::note_failure() {
  const unsigned long error = library_.peek_last_error();
  const long verified = library_.get_verify_result(handle_.get());
  const int reason = ERR_GET_REASON(error);
  if (ERR_GET_LIB(error) != ERR_LIB_SSL) {
    if (!shaken_) error_ = "the server closed the connection during the TLS handshake; does it support TLS?";
    return;
  }
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED && verified != X509_V_OK) return note_certificate(verified);
  if (reason > SSL_AD_REASON_OFFSET && !got_reply_) return note_alert(reason - SSL_AD_REASON_OFFSET);
  if (shaken_) return;
  if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_PACKET_LENGTH_TOO_LONG ||
      reason == SSL_R_HTTP_REQUEST || reason == SSL_R_RECORD_TOO_SMALL ||
      reason == SSL_R_UNEXPECTED_MESSAGE) {
    error_ = "the server does not support TLS on this port; omit tls:// and --tls, or use its TLS port";
    return;
  }
  const char* const text = library_.reason_error_string(error);
  error_ = std::string("the TLS handshake failed: ") + (text == nullptr ? "unknown reason" : text);
}

// Reports why the server's certificate was not accepted.
void Connection::note_certificate(long code) {
  denied_ = true;
  error_ = "the server's certificate cannot be verified: ";
  switch (code) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      error_ +=
          "the certificate or its CA's has expired; renew it on the server, or correct this machine's clock";
      return;
    case X509_V_ERR_CERT_NOT_YET_VALID:
      error_ += "the certificate is not valid yet; check this machine's clock";
      return;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      error_ += "the certificate is not for " + name_ +
                "; write the server's name as in the certificate, or give --tls-name NAME";
      return;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      error_ += context_.options().ca_file.empty()
                    ? "no CA of this system signed the certificate; give its CA with --tls-ca FILE"
                    : "the CA in " + context_.options().ca_file + " did not sign it; give the server's CA";
      return;
    default: error_ += library_.verify_cert_error_string(code);
  }
}

// Reports the server's alert.
void Connection::note_alert(int alert) {
  switch (alert) {
    case SSL_AD_PROTOCOL_VERSION:
    case SSL_AD_INSUFFICIENT_SECURITY:
      error_ = "the server supports no common TLS version; enable TLS 1.2 or later on it";
      return;
    case SSL_AD_HANDSHAKE_FAILURE:
    case SSL_AD_CERTIFICATE_REQUIRED:
    case SSL_AD_NO_CERTIFICATE:
      denied_ = alert != SSL_AD_HANDSHAKE_FAILURE || context_.options().certificate_file.empty();
      break;
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_ACCESS_DENIED:
    case SSL_AD_DECRYPT_ERROR: denied_ = true; break;
    default: break;
  }
  const char* const text =
      library_.reason_error_string(ERR_PACK(ERR_LIB_SSL, 0, alert + SSL_AD_REASON_OFFSET));
  const std::string said = text == nullptr ? "alert " + std::to_string(alert) : text;
  if (!denied_) {
    error_ = "the server ended the TLS handshake: " + said;
  } else if (context_.options().certificate_file.empty()) {
    error_ =
        "the server requires a client certificate; give --tls-cert FILE and --tls-key FILE (its message: " +
        said + ')';
  } else {
    error_ = "the server does not accept the certificate " + context_.options().certificate_file +
             " (its message: " + said + "); use one that its CA signed";
  }
}

namespace {

// libssl loads libcrypto.
#define MCDS_OPENSSL "libssl.so.3"
MCDS_DLOPEN_NOTE(OpensslNote, "tls", "servers that are reached by TLS", MCDS_OPENSSL);

Failure no_openssl() {
  return {ErrorCode::system, "TLS needs " MCDS_OPENSSL " of OpenSSL 3; install it (Debian: libssl3)"};
}

// OpenSSL's cleanup at exit would only cost time.
Library load() {
#ifdef MCDS_STATIC
  // This machine's openssl.cnf may name modules, which a static program cannot load.
  const Library table;
  constexpr std::uint64_t settings = OPENSSL_INIT_NO_ATEXIT | OPENSSL_INIT_NO_LOAD_CONFIG;
#else
  const Library table{{MCDS_OPENSSL, no_openssl()}};
  constexpr std::uint64_t settings = OPENSSL_INIT_NO_ATEXIT;
#endif
  if (table.init_crypto(settings, nullptr) != 1) throw no_openssl();
  return table;
}

[[noreturn]] void unusable(const std::string& file, const std::string& what) {
  throw Failure(ErrorCode::configuration, file + ": " + what);
}

// Passes the configured password to OpenSSL, without a prompt. Returns -1 if there is none or it is too long.
int give_password(char* into, int size, int, void* from) {
  const std::string& password = static_cast<const TlsOptions*>(from)->key_password;
  if (password.empty() || password.size() > static_cast<std::size_t>(size)) return -1;
  std::copy(password.begin(), password.end(), into);
  return static_cast<int>(password.size());
}

void require(bool done) {
  if (!done) throw Failure(ErrorCode::system, "OpenSSL rejects a setting; check openssl.cnf");
}

// Where the CAs' certificates are in one file if OpenSSL's own place has none, as in a static program on
// another distribution than that of its library: Debian and Alpine, Fedora, Alpine's base system.
constexpr std::array ca_bundles = {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                                   "/etc/ssl/cert.pem"};

// Returns true if certificates are found here by hash: reading the whole bundle takes milliseconds.
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
    throw Failure(ErrorCode::system, "OpenSSL cannot create a context; check openssl.cnf");
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
               "no readable certificate was found; give the CA's certificate in PEM format");
    // The CA may be an intermediate one: that it is given is reason enough to trust it.
    require(library_.store_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN) == 1);
  } else {
    trust_system();
  }
  if (options_.crl_file.empty()) return;
  // Every certificate of the chain is checked, so the file must have a list of each CA.
  const std::size_t lists = each_in(options_.read(options_.crl_file), [&](const X509_INFO& info) {
    return info.crl != nullptr && library_.store_add_crl(store, info.crl) == 1;
  });
  if (lists == 0) unusable(options_.crl_file, "no readable revocation list was found; give it in PEM format");
  require(library_.store_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL) == 1);
}

// Trusts the system's CAs, or those of the variables SSL_CERT_FILE and SSL_CERT_DIR, as OpenSSL does.
void Context::trust_system() {
  require(library_.ctx_set_default_verify_dir(handle_.get()) == 1);
  const bool chosen = std::getenv("SSL_CERT_FILE") != nullptr;
  if (!chosen && is_indexed(library_.default_cert_dir())) return;
  if (chosen || std::getenv("SSL_CERT_DIR") != nullptr || access(library_.default_cert_file(), R_OK) == 0)
    return require(library_.ctx_set_default_verify_file(handle_.get()) == 1);
  for (const char* const bundle : ca_bundles) {
    if (library_.ctx_load_verify_file(handle_.get(), bundle) == 1) return;
  }
}

void Context::identify() {
  const std::string& certificate = options_.certificate_file;
  const std::string certificate_pem = options_.read(certificate);
  // The first certificate is the client's, the others are its chain.
  bool is_first = true;
  const std::size_t certificates = each_in(certificate_pem, [&](const X509_INFO& info) {
    if (info.x509 == nullptr) return false;
    if (std::exchange(is_first, false)) return library_.ctx_use_certificate(handle_.get(), info.x509) == 1;
    return library_.ctx_ctrl(handle_.get(), SSL_CTRL_CHAIN_CERT, 1, info.x509) == 1;
  });
  if (certificates == 0) unusable(certificate, "no readable certificate was found; give it in PEM format");
  const std::string& key = options_.key_file.empty() ? certificate : options_.key_file;
  std::string key_pem = key == certificate ? certificate_pem : options_.read(key);
  library_.clear_error();
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> read_key(
      library_.read_key(pem(key_pem).get(), nullptr, give_password, &options_), library_.key_free);
  explicit_bzero(key_pem.data(), key_pem.size());
  if (read_key == nullptr)
    unusable(key, options_.key_password.empty()
                      ? "no readable key was found; give it in PEM format, with --tls-key-password-file if "
                        "it is encrypted"
                      : "the password of --tls-key-password-file opens no key in the file");
  if (library_.ctx_use_key(handle_.get(), read_key.get()) != 1)
    unusable(key, "the key does not belong to the certificate " + certificate);
}

}  // namespace mcds::tls
