// libmemcached, loaded when the classic transport first needs it: linked in, it would cost every command the
// time to load it and what it depends on, more than all the rest of a cold start.
#pragma once

#include <libmemcached/memcached.h>

namespace mcds::classic {

struct Library {
  decltype(&::memcached_create) create;
  decltype(&::memcached_free) free;
  decltype(&::memcached_quit) quit;
  decltype(&::memcached_behavior_set) behavior_set;
  decltype(&::memcached_behavior_get) behavior_get;
  decltype(&::memcached_server_add) server_add;
  decltype(&::memcached_server_add_unix_socket) server_add_unix_socket;
  decltype(&::memcached_server_instance_by_position) server_instance_by_position;
  decltype(&::memcached_server_major_version) server_major_version;
  decltype(&::memcached_server_minor_version) server_minor_version;
  decltype(&::memcached_server_micro_version) server_micro_version;
  decltype(&::memcached_last_error) last_error;
  decltype(&::memcached_mget) mget;
  decltype(&::memcached_fetch_result) fetch_result;
  decltype(&::memcached_result_free) result_free;
  decltype(&::memcached_result_key_value) result_key_value;
  decltype(&::memcached_result_key_length) result_key_length;
  decltype(&::memcached_result_value) result_value;
  decltype(&::memcached_result_length) result_length;
  decltype(&::memcached_result_flags) result_flags;
  decltype(&::memcached_result_cas) result_cas;
  decltype(&::memcached_add) add;
  decltype(&::memcached_set) set;
  decltype(&::memcached_replace) replace;
  decltype(&::memcached_append) append;
  decltype(&::memcached_cas) cas;
  decltype(&::memcached_increment_by_key) increment_by_key;
  decltype(&::memcached_decrement_by_key) decrement_by_key;
  decltype(&::memcached_touch) touch;
  decltype(&::memcached_delete) remove;
  decltype(&::memcached_version) version;
  decltype(&::memcached_stat_execute) stat_execute;
};

// Throws Failure(system) when it is not installed or another version.
const Library& library();

}  // namespace mcds::classic
