#include "common/cluster/libmemcached/library.hpp"

#include <algorithm>

#include "common/base/text.hpp"

namespace mcds::libmemcached {

namespace {

#define MCDS_LIBMEMCACHED "libmemcached.so.11"
MCDS_DLOPEN_NOTE(LibmemcachedNote, "libmemcached",
                 "the binary protocol, and libmemcached's configuration strings", MCDS_LIBMEMCACHED);

}  // namespace

const Library& library() {
  static const Library table{
      {MCDS_LIBMEMCACHED, bad_configuration("this needs " MCDS_LIBMEMCACHED
                                            ", which is not here or cannot be loaded; install it (Debian: "
                                            "libmemcached11), and use a build without -Dstatic=true")}};
  return table;
}

std::string plain_words(std::string_view message) {
  message = message.substr(0, message.rfind(" -> "));
  if (message.starts_with("(0x")) message.remove_prefix(std::min(message.find(") ") + 2, message.size()));
  return visible(message);
}

}  // namespace mcds::libmemcached
