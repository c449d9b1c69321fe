// TLS on one connected, non-blocking socket, which stays its owner's.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "common/base/clock.hpp"
#include "common/cluster/tls/context.hpp"
#include "common/placement/pools/pool.hpp"

namespace mcds::tls {

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
