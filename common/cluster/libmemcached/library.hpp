// libmemcached as it is installed here, loaded when a list or a server first needs it.
#pragma once

#include <libmemcached-1.0/memcached.h>

#include <string>
#include <string_view>

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
  decltype(&::memcached_create) create;
  decltype(&::memcached_behavior_set) behavior_set;
  decltype(&::memcached_server_add) add_server;
  decltype(&::memcached_server_add_unix_socket) add_unix_socket;
  decltype(&::memcached_set_sasl_auth_data) set_sasl_auth_data;
  decltype(&::memcached_last_error_message) last_error_message;
  decltype(&::memcached_version) version;
  decltype(&::memcached_server_major_version) major_version;
  decltype(&::memcached_server_minor_version) minor_version;
  decltype(&::memcached_server_micro_version) micro_version;
  decltype(&::memcached_get) get;
  decltype(&::memcached_add) add;
  decltype(&::memcached_set) set;
  decltype(&::memcached_replace) replace;
  decltype(&::memcached_append) append;
  decltype(&::memcached_cas) cas;
  decltype(&::memcached_increment_with_initial) increment;
  decltype(&::memcached_decrement_with_initial) decrement;
  decltype(&::memcached_touch) touch;
  decltype(&::memcached_delete) remove;
  decltype(&::memcached_stat_execute) stats;
};

// Throws Failure(configuration) that names the package when it is not installed, is another version, or
// this build is static.
const Library& library();

// A message of the library without the addresses, in memory and in its source, that it puts around it.
std::string plain_words(std::string_view message);

}  // namespace mcds::libmemcached
