#include "common/cluster/libmemcached/library.hpp"

#include "common/base/shared_library.hpp"

namespace mcds::libmemcached {

namespace {

#define MCDS_LIBMEMCACHED "libmemcached.so.11"
MCDS_DLOPEN_NOTE(LibmemcachedNote, "libmemcached", "lists of servers as libmemcached's configuration strings",
                 MCDS_LIBMEMCACHED);

Library load_libmemcached() {
  const SharedLibrary file(MCDS_LIBMEMCACHED,
                           bad_configuration("this needs " MCDS_LIBMEMCACHED
                                             ", which is not here or cannot be loaded; install it (Debian: "
                                             "libmemcached11), and use a build without -Dstatic=true"));
  Library table{};
  file.find("memcached", table.configured);
  file.find("libmemcached_check_configuration", table.check_configuration);
  file.find("memcached_behavior_get", table.behavior_get);
  file.find("memcached_callback_get", table.callback_get);
  file.find("memcached_server_count", table.server_count);
  file.find("memcached_server_instance_by_position", table.server_at);
  file.find("memcached_server_name", table.server_name);
  file.find("memcached_server_port", table.server_port);
  file.find("memcached_generate_hash", table.generate_hash);
  file.find("memcached_generate_hash_value", table.generate_hash_value);
  return table;
}

}  // namespace

const Library& library() {
  static const Library table = load_libmemcached();
  return table;
}

}  // namespace mcds::libmemcached
