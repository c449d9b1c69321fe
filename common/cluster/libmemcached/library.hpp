// libmemcached as it is installed here, loaded when a list or a server first needs it.
#pragma once

#include <libmemcached-1.0/memcached.h>

#include <string>
#include <string_view>

#include "common/base/shared_library.hpp"

namespace mcds::libmemcached {

struct Library {
  SharedLibrary file;
  MCDS_LOADED(configured, memcached);
  MCDS_LOADED(check_configuration, libmemcached_check_configuration);
  MCDS_LOADED(behavior_get, memcached_behavior_get);
  MCDS_LOADED(callback_get, memcached_callback_get);
  MCDS_LOADED(server_count, memcached_server_count);
  MCDS_LOADED(server_at, memcached_server_instance_by_position);
  MCDS_LOADED(server_name, memcached_server_name);
  MCDS_LOADED(server_port, memcached_server_port);
  MCDS_LOADED(generate_hash, memcached_generate_hash);
  MCDS_LOADED(generate_hash_value, memcached_generate_hash_value);
  MCDS_LOADED(create, memcached_create);
  MCDS_LOADED(behavior_set, memcached_behavior_set);
  MCDS_LOADED(add_server, memcached_server_add);
  MCDS_LOADED(add_unix_socket, memcached_server_add_unix_socket);
  MCDS_LOADED(set_sasl_auth_data, memcached_set_sasl_auth_data);
  MCDS_LOADED(last_error_message, memcached_last_error_message);
  MCDS_LOADED(version, memcached_version);
  MCDS_LOADED(major_version, memcached_server_major_version);
  MCDS_LOADED(minor_version, memcached_server_minor_version);
  MCDS_LOADED(micro_version, memcached_server_micro_version);
  MCDS_LOADED(get, memcached_get);
  MCDS_LOADED(add, memcached_add);
  MCDS_LOADED(set, memcached_set);
  MCDS_LOADED(replace, memcached_replace);
  MCDS_LOADED(append, memcached_append);
  MCDS_LOADED(cas, memcached_cas);
  MCDS_LOADED(increment, memcached_increment_with_initial);
  MCDS_LOADED(decrement, memcached_decrement_with_initial);
  MCDS_LOADED(touch, memcached_touch);
  MCDS_LOADED(remove, memcached_delete);
  MCDS_LOADED(stats, memcached_stat_execute);
};

// Throws Failure(configuration) that names the package when it is not installed, is another version, or
// this build is static.
const Library& library();

// A message of the library without the addresses, in memory and in its source, that it puts around it.
std::string plain_words(std::string_view message);

}  // namespace mcds::libmemcached
