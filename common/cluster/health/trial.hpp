// Asks one server for its version on a separate connection, without waiting, to see whether it answers again.
#pragma once

#include <string>

#include "common/cluster/wire/socket.hpp"

namespace mcds {

class Trial {
 public:
  // `tls`: for a server that is reached by it.
  Trial(const Server& server, const tls::Context* tls);

  enum class State { waiting, answered, failed };
  State look();
  // What to poll for before the next look.
  int descriptor() const { return socket_.descriptor(); }
  short events() const;

 private:
  bool send();
  meta::Socket socket_;
  bool sent_ = false;
  bool failed_ = false;
  std::string answer_;
};

}  // namespace mcds
