// The process that takes what servers dump, so that nothing that stops us stops them. See live.hpp.
#pragma once

#include <functional>
#include <vector>

#include "common/cluster/keys/live.hpp"

namespace mcds {

// What the child does: `keep` takes a key and is false when no more of that server is wanted; `goes_on`, to
// be asked several times a second, is false when it must end.
using ReadDumps = std::function<std::vector<LiveKeysOfServer>(const TakeLiveKey& keep,
                                                              const std::function<bool()>& goes_on)>;

// Runs `read` in a child, and gives what it keeps to `take`, here. Throws as read_live_keys().
std::vector<LiveKeysOfServer> read_by_child(std::size_t servers, const TakeLiveKey& take,
                                            const ReadDumps& read);

}  // namespace mcds
