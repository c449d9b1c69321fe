// libmemcached as it is installed here, loaded when a list or a server first needs it.
#pragma once

#include <libmemcached-1.0/memcached.h>

namespace mcds::libmemcached {

struct Library {
  decltype(&::memcached) configured;
  decltype(&::libmemcached_check_configuration) check_configuration;
  decltype(&::memcached_behavior_get) behavior_get;
  decltype(&::memcached_callback_get) callback_get;
  decltype(&::memcached_server_count) server_count;
  decltype(&::memcached_server_instance_by_position) server_at;
  decltype(&::memcached_server_name) server_name;
  decltype(&::memcached_server_port) server_port;
  decltype(&::memcached_generate_hash) generate_hash;
  decltype(&::memcached_generate_hash_value) generate_hash_value;
};

// Throws Failure(configuration) that names the package when it is not installed, is another version, or
// this build is static.
const Library& library();

}  // namespace mcds::libmemcached
