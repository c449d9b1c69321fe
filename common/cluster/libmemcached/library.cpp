#include "common/cluster/libmemcached/library.hpp"

#include <algorithm>

#include "common/base/shared_library.hpp"
#include "common/base/text.hpp"

namespace mcds::libmemcached {

namespace {

#define MCDS_LIBMEMCACHED "libmemcached.so.11"
MCDS_DLOPEN_NOTE(LibmemcachedNote, "libmemcached",
                 "the binary protocol, and libmemcached's configuration strings", MCDS_LIBMEMCACHED);

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
  file.find("memcached_create", table.create);
  file.find("memcached_behavior_set", table.behavior_set);
  file.find("memcached_server_add", table.add_server);
  file.find("memcached_server_add_unix_socket", table.add_unix_socket);
  file.find("memcached_set_sasl_auth_data", table.set_sasl_auth_data);
  file.find("memcached_last_error_message", table.last_error_message);
  file.find("memcached_version", table.version);
  file.find("memcached_server_major_version", table.major_version);
  file.find("memcached_server_minor_version", table.minor_version);
  file.find("memcached_server_micro_version", table.micro_version);
  file.find("memcached_get", table.get);
  file.find("memcached_add", table.add);
  file.find("memcached_set", table.set);
  file.find("memcached_replace", table.replace);
  file.find("memcached_append", table.append);
  file.find("memcached_cas", table.cas);
  file.find("memcached_increment_with_initial", table.increment);
  file.find("memcached_decrement_with_initial", table.decrement);
  file.find("memcached_touch", table.touch);
  file.find("memcached_delete", table.remove);
  file.find("memcached_stat_execute", table.stats);
  return table;
}

}  // namespace

const Library& library() {
  static const Library table = load_libmemcached();
  return table;
}

std::string plain_words(std::string_view message) {
  message = message.substr(0, message.rfind(" -> "));
  if (message.starts_with("(0x")) message.remove_prefix(std::min(message.find(") ") + 2, message.size()));
  return visible(message);
}

}  // namespace mcds::libmemcached
