// What all TLS connections share: the certificates, read once.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "common/cluster/credentials.hpp"
#include "common/cluster/tls/library.hpp"

namespace mcds::tls {

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

}  // namespace mcds::tls
