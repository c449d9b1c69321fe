// Socket: a non-blocking connection to one server.
#pragma once

#include "common/base/clock.hpp"
#include "common/cluster/credentials.hpp"
#include "common/cluster/name_lookup.hpp"
#include "common/cluster/tls/connection.hpp"
#include "common/placement/pools/pool.hpp"

namespace mcds::meta {

class Socket {
 public:
  // `tls` is nullptr for servers that are reached without it.
  Socket(const Server& server, const tls::Context* tls) : server_(server), tls_(tls) {}
  ~Socket() { close(); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  enum class State { closed, connecting, open };
  State state() const { return state_; }
  int descriptor() const { return descriptor_; }

  // Starts connecting to the first address of the server that accepts. Only host names are looked up, which
  // blocks for at most `lookup`. Returns false and sets complaint() if there is nothing to connect to.
  bool start(Duration lookup);
  // Returns the events to poll for while connecting.
  short connecting_events() const;
  // Continues after poll() reported one of those events. Returns open, connecting (the next address, or the
  // TLS handshake), or closed, with the reason in complaint().
  State finish_connecting();
  // Returns the number of bytes the kernel accepted, 0 if it would block, or -1 if the connection is gone.
  std::ptrdiff_t send(const char* bytes, std::size_t size);
  // Returns true if each send() makes a TLS record (at most tls::max_record_size) that is read whole.
  bool has_records() const { return session_ != nullptr; }
  // Appends the available bytes. Returns their number, 0 if there are none, or -1 if the connection is gone.
  std::ptrdiff_t receive(std::string& into);
  // Returns when the server's certificate expires, on an open TLS connection.
  std::optional<WallTime> certificate_end() const {
    return session_ == nullptr ? std::nullopt : session_->certificate_end();
  }
  // Returns false if the server has closed the connection or sent unexpected bytes.
  bool usable_again();
  void close();
  // Returns one sentence: why there is no connection, and what to do. `late`: its timeout has passed.
  std::string complaint(bool late = false) const;
  // Returns true if no certificate was accepted, on either side, or if the login must not be sent to this
  // server. In both cases nothing was applied.
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
  bool wants_to_read_ = false;  // the handshake waits for bytes
  std::string error_;
};

}  // namespace mcds::meta
