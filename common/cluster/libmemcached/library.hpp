// Child: a process that calls libmemcached for its parent. The library aborts its process on unexpected
// replies, and may block forever. Messages go over a socket pair; if the child crashes or is late, its Line
// reports that no more comes. The child inherits no descriptors, is not reached by the terminal's signals,
// and ends with its parent.
#pragma once

#include <libmemcached-1.0/memcached.h>

#include <functional>

#include "common/base/clock.hpp"
#include "common/base/process.hpp"
#include "common/base/shared_library.hpp"

namespace mcds::libmemcached {

// Sends and receives whole messages over the socket pair. Both ends are this program, so texts are preceded
// by their size and numbers have their memory layout.
class Line {
 public:
  explicit Line(int descriptor) : descriptor_(descriptor) {}

  // Returns false if the other end has closed or does not accept the bytes in time.
  bool send(const void* bytes, std::size_t size) const;
  bool send_text(std::string_view text) const;
  template <typename Value>
  bool send_value(const Value& value) const {
    static_assert(std::is_trivially_copyable_v<Value>);
    return send(&value, sizeof value);
  }
  // Returns false, or nullopt, if the other end has closed or the bytes do not come in time.
  bool receive(void* into, std::size_t size) const;
  std::optional<std::string> receive_text() const;
  template <typename Value>
  bool receive_value(Value& value) const {
    static_assert(std::is_trivially_copyable_v<Value>);
    return receive(&value, sizeof value);
  }

 private:
  int descriptor_;
};

class Child {
 public:
  // Runs `serve`, which must not throw, in a new child, which then exits. Throws Failure(system).
  Child(const char* name, const std::function<void(const Line&)>& serve);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  Line line() const { return Line(descriptor_); }
  // Sets the timeout of each later message.
  void wait_no_longer_than(Duration longest) const;
  // Returns true in the process that created this Child.
  bool is_ours() const;

 private:
  pid_t parent_, child_ = -1;
  Descriptor descriptor_;
};

// The installed libmemcached, loaded on first use.

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
  MCDS_LOADED(add_weighted_server, memcached_server_add_with_weight);
  MCDS_LOADED(add_weighted_socket, memcached_server_add_unix_socket_with_weight);
  MCDS_LOADED(lib_version, memcached_lib_version);
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

// Throws Failure(configuration), which names the package, if it is not installed or has another version, or
// if this build is static.
const Library& library();

// Returns a message of the library without the memory addresses and source locations that it adds.
std::string plain_words(std::string_view message);

}  // namespace mcds::libmemcached
