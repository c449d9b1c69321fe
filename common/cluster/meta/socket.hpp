// One non-blocking connection to one server.
#pragma once

#include <netdb.h>

#include <cstddef>
#include <memory>
#include <string>

#include "common/placement/pools/pool.hpp"

namespace mcds::meta {

class Socket {
 public:
  explicit Socket(const Server& server) : server_(server) {}
  ~Socket() { close(); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  enum class State { closed, connecting, open };
  State state() const { return state_; }
  int descriptor() const { return descriptor_; }

  // Begins to connect, to the first of the name's addresses that lets us. Resolves names only (never literals or
  // unix paths), and blocks for that. False with error() set when there is nothing to connect to.
  bool start();
  // After poll said writable while connecting: open, still connecting (the next address), or closed with error() set.
  State finish_connecting();
  // Bytes the kernel took, 0 when it would block; -1: the connection is gone.
  std::ptrdiff_t send(const char* bytes, std::size_t size) const;
  // Appends what is there; 0 when nothing is; -1: the connection is gone.
  std::ptrdiff_t receive(std::string& into) const;
  // An open connection on which the server has closed or spoken out of turn must not be used again.
  bool usable_again() const;
  void close();
  const std::string& error() const { return error_; }

 private:
  bool try_address(const sockaddr* address, socklen_t size, int family);
  bool try_next_address();

  const Server& server_;
  int descriptor_ = -1;
  State state_ = State::closed;
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses_{nullptr, freeaddrinfo};
  const addrinfo* next_ = nullptr;
  std::string error_;
};

}  // namespace mcds::meta
