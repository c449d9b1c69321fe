#include "common/cluster/classic/library.hpp"

#include <dlfcn.h>

#include <string>

#include "common/base/errors.hpp"

namespace mcds::classic {

namespace {

constexpr const char* file_name = "libmemcached.so.11";

[[noreturn]] void missing() {
  throw Failure(ErrorCode::system,
                std::string("the classic protocol needs ") + file_name +
                    "; install libmemcached (Debian: libmemcached11) or use --protocol meta");
}

template <typename Function>
void find(void* file, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(file, name));
  if (function == nullptr) missing();
}

Library load() {
  void* file = dlopen(file_name, RTLD_NOW | RTLD_LOCAL);
  if (file == nullptr) missing();
  Library table{};
  find(file, "memcached_create", table.create);
  find(file, "memcached_free", table.free);
  find(file, "memcached_quit", table.quit);
  find(file, "memcached_behavior_set", table.behavior_set);
  find(file, "memcached_behavior_get", table.behavior_get);
  find(file, "memcached_server_add", table.server_add);
  find(file, "memcached_server_add_unix_socket", table.server_add_unix_socket);
  find(file, "memcached_server_instance_by_position", table.server_instance_by_position);
  find(file, "memcached_server_major_version", table.server_major_version);
  find(file, "memcached_server_minor_version", table.server_minor_version);
  find(file, "memcached_server_micro_version", table.server_micro_version);
  find(file, "memcached_last_error", table.last_error);
  find(file, "memcached_mget", table.mget);
  find(file, "memcached_fetch_result", table.fetch_result);
  find(file, "memcached_result_free", table.result_free);
  find(file, "memcached_result_key_value", table.result_key_value);
  find(file, "memcached_result_key_length", table.result_key_length);
  find(file, "memcached_result_value", table.result_value);
  find(file, "memcached_result_length", table.result_length);
  find(file, "memcached_result_flags", table.result_flags);
  find(file, "memcached_result_cas", table.result_cas);
  find(file, "memcached_add", table.add);
  find(file, "memcached_set", table.set);
  find(file, "memcached_replace", table.replace);
  find(file, "memcached_append", table.append);
  find(file, "memcached_cas", table.cas);
  find(file, "memcached_increment_by_key", table.increment_by_key);
  find(file, "memcached_decrement_by_key", table.decrement_by_key);
  find(file, "memcached_touch", table.touch);
  find(file, "memcached_delete", table.remove);
  find(file, "memcached_version", table.version);
  find(file, "memcached_stat_execute", table.stat_execute);
  return table;
}

}  // namespace

const Library& library() {
  static const Library table = load();
  return table;
}

}  // namespace mcds::classic
