// Reads keys for mcds ring from a file, from standard input, or from the servers.
#pragma once

#include "tools/commands/commands.hpp"

namespace mcds {

struct RingKey {
  std::string_view key;                     // the whole key, as sent to the server
  std::optional<std::uint64_t> bytes = {};  // size of the item, if known
  std::optional<std::size_t> server = {};   // for live keys: the server that listed it
};

using TakeRingKey = std::function<void(const RingKey&)>;

// Reads lines `KEY` or `KEY<TAB>BYTES` of a file, or of standard input for `-`. A line that is not a valid
// key is reported on stderr and does not stop the others.
ExitStatus read_keys_of(Session& session, const std::string& file, const TakeRingKey& take);

// Reads all keys of all servers. Servers that cannot list theirs are reported and set in `unlisted`.
ExitStatus read_live_keys_of(Session& session, const TakeRingKey& take,
                             std::vector<bool>* unlisted = nullptr);

}  // namespace mcds
