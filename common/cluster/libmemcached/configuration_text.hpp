// What is known of a configuration string of libmemcached before the library sees it: it is foreign text,
// and the library obeys words that end its program or read other files, and aborts at numbers that it does
// not expect.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/placement/pools/pool.hpp"

namespace mcds::libmemcached {

// The servers as they are written, for their weights and whether they have a port: the library shows
// neither. Statements that it would refuse may be missing. Throws Failure(configuration) for what it must
// not be given: anything that begins like a word instead of an option (RESET, INCLUDE, ERROR …),
// --CONFIGURE-FILE, more than 100 servers, ports above 65535, a quotation mark without its end, more than
// 64 KiB, a NUL.
Pool read_configuration_text(std::string_view text);

// With /?1 in place of each weight.
std::string with_equal_weights(std::string_view text);

}  // namespace mcds::libmemcached
