// One libmemcached handle for one server: requests in, one at a time (gets together), replies to the job.
//
// Every return code is taken for what libmemcached 1.1.4 was measured to mean by it. It believes too much:
// the line `ERROR` to a get looks like a miss, `OK` to a delete like success; so a miss is confirmed by a
// command whose answer it reads strictly (a cas that cannot match), and the connection is dropped after every
// answer that is not the usual one.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "common/cluster/classic/job.hpp"
#include "common/cluster/classic/library.hpp"
#include "common/cluster/cluster.hpp"

namespace mcds::classic {

class Handle {
 public:
  Handle(const Server& server, const ConnectOptions& options);
  ~Handle();
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  void execute(Job& job);

 private:
  bool connected();
  void drop();
  Reply one(const Request& request);
  Reply store(const Request& request);
  Reply count(const Request& request);
  Reply compare(const Request& request);
  Reply plain(const Request& request);
  Reply version();
  Reply stats(const Request& request);
  std::size_t fetch_run(Job& job, std::size_t first);
  void fetch(Job& job, std::size_t first, std::size_t count);
  bool collect(Job& job, std::unordered_multimap<std::string_view, std::size_t>& wanted, bool with_cas);
  bool confirms_misses(const std::string& key, bool with_cas, Reply& otherwise);
  // The failure a return code stands for; drops the connection.
  Reply failure(memcached_return_t code, Op op);

  const Library& library_;
  memcached_st* handle_;
  bool lost_ = false;  // a reply, in this batch
  // Fetched on this connection: only these may be compared with (a restarted server counts anew).
  std::unordered_map<std::string, std::uint64_t> uniques_;
};

}  // namespace mcds::classic
