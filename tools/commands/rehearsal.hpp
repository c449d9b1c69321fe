// A private network in which real servers listen at the addresses of a list, for `sandbox --rehearse`.
//
// Namespaces of this process (network, mounts, process ids, and a user namespace where it is needed) hold the
// servers and the command. The network has a loopback interface with the addresses of the list and no route
// to anywhere. /run is empty, so the sockets of nscd, resolved, D-Bus or a real memcached there are not
// reached; other unix sockets of the machine are. The first process that is forked afterwards is the first of
// the process namespace: when it ends, the kernel ends all others, and the mounts and the network go with
// them.
#pragma once

#include <map>

#include "common/placement/pools/pool.hpp"

namespace mcds {

class Rehearsal {
 public:
  // Enters the namespaces and adds the addresses. Call it while the program has one thread and no child.
  // Throws InvalidInput for a list that no servers can stand in for, and Failure(system) with the reason
  // where namespaces are forbidden.
  explicit Rehearsal(const Pool& list);

  // Returns each server of the list once, with the address at which its stand-in has to listen: a host name
  // has one of 198.18.0.0/15, which RFC 2544 reserves for tests.
  const Pool& servers() const { return servers_; }
  // Returns what the certificate of a server with TLS has to name besides loopback, each behind a comma.
  std::string certificate_names() const;
  // Makes host names of the list lead to their servers, by a file in `directory` that is mounted over
  // /etc/hosts, and shows the processes of the namespace in /proc. Call it after the first fork.
  void finish(const std::string& directory) const;
  // Lets clients reach the server that listens at `socket` at the path that the list has.
  void link_socket(const std::string& path, const std::string& socket) const;

 private:
  std::map<std::string, std::string> hosts_;  // the address of each name
  Pool servers_;
};

}  // namespace mcds
