// One non-blocking connection to one server.
#pragma once

#include "common/base/clock.hpp"
#include "common/cluster/credentials.hpp"
#include "common/cluster/name_lookup.hpp"
#include "common/cluster/tls/connection.hpp"
#include "common/placement/pools/pool.hpp"

namespace mcds::meta {

class Socket {
 public:
  // `tls`: for servers that are to be reached by it, else nullptr.
  Socket(const Server& server, const tls::Context* tls) : server_(server), tls_(tls) {}
  ~Socket() { close(); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  enum class State { closed, connecting, open };
  State state() const { return state_; }
  int descriptor() const { return descriptor_; }

  // Begins to connect to the first of the name's addresses that accepts. Resolves names only (never literals
  // or unix paths), and blocks for that, not longer than `lookup`. False with error() set when there is
  // nothing to connect to.
  bool start(Duration lookup);
  // What to poll for while connecting.
  short connecting_events() const;
  // After poll said so while connecting: open, still connecting (the next address, the TLS handshake), or
  // closed with complaint() saying why.
  State finish_connecting();
  // Bytes the kernel took, 0 when it would block; -1: the connection is gone.
  std::ptrdiff_t send(const char* bytes, std::size_t size);
  // Whether each send() makes a record (of tls::largest_record at most) that the server reads at once.
  bool has_records() const { return session_ != nullptr; }
  // Appends what is there; 0 when nothing is; -1: the connection is gone.
  std::ptrdiff_t receive(std::string& into);
  // When the server's certificate ends, on an open connection with TLS.
  std::optional<WallTime> certificate_end() const {
    return session_ == nullptr ? std::nullopt : session_->certificate_end();
  }
  // An open connection on which the server has closed or spoken out of turn must not be used again.
  bool usable_again();
  void close();
  // One sentence: why there is no connection (any more), and what to do. `late`: the time allowed for it has
  // passed.
  std::string complaint(bool late = false) const;
  // It failed for want of an accepted certificate, on either side: nothing that was sent was applied.
  // Or it was not begun, because the server may not be shown its login.
  bool denied() const { return withheld() || (session_ != nullptr && session_->denied()); }

 private:
  bool withheld() const { return !credentials_of(server_).withheld.empty(); }
  bool try_address(const sockaddr* address, socklen_t size, int family);
  bool try_next_address();
  State connected();

  const Server& server_;
  const tls::Context* tls_;
  int descriptor_ = -1;
  State state_ = State::closed;
  Addresses addresses_{nullptr, freeaddrinfo};
  const addrinfo* next_ = nullptr;
  std::unique_ptr<tls::Connection> session_;
  bool wants_to_read_ = false;  // the handshake
  std::string error_;
};

}  // namespace mcds::meta
