// Creates a private network in which real servers listen at the addresses of a list, for `sandbox
// --rehearse`.
//
// Namespaces of this process (network, mounts, process ids, and a user namespace if needed) contain the
// servers and the command. The network has a loopback interface with the addresses of the list, and no route.
// /run is empty, so the sockets of nscd, resolved, D-Bus or a real memcached there cannot be reached; other
// unix sockets of the machine can. The first process that is forked afterwards is the first of the process
// namespace: when it ends, the kernel ends all others, and the mounts and the network vanish with them.
#pragma once

#include <map>

#include "common/placement/pools/pool.hpp"

namespace mcds {

// Returns the file's text, empty if it cannot be read.
std::string text_in(const std::string& path);

class Rehearsal {
 public:
  // Enters the namespaces and adds the addresses. Must be called while the program has one thread and no
  // child. Throws InvalidInput for a list whose servers cannot be replaced, and Failure(system) with the
  // reason if namespaces are forbidden.
  explicit Rehearsal(const Pool& list);

  // Returns each server of the list once, with the address at which its replacement must listen. A host name
  // gets an address of 198.18.0.0/15, which RFC 2544 reserves for tests.
  const Pool& servers() const { return servers_; }
  // Returns the names that a server's TLS certificate needs in addition to loopback, each after a comma.
  std::string certificate_names() const;
  // Makes the host names of the list resolve to their servers, with a file in `directory` that is mounted
  // over /etc/hosts, and shows the processes of the namespace in /proc. Must be called after the first fork.
  void finish(const std::string& directory) const;
  // Makes the server that listens at `socket` reachable at the path that the list has.
  void link_socket(const std::string& path, const std::string& socket) const;

 private:
  std::map<std::string, std::string> hosts_;  // the address of each host name
  Pool servers_;
};

}  // namespace mcds
