// The keys that mcds ring looks at: of a file, of standard input, live ones, or made up.
#pragma once

#include "tools/commands/commands.hpp"

namespace mcds {

struct RingKey {
  std::string_view key;                     // whole, as sent to the server
  std::optional<std::uint64_t> bytes = {};  // its size, where it is known
  std::optional<std::size_t> server = {};   // live: where it was found
};

using TakeRingKey = std::function<void(const RingKey&)>;

// Lines `KEY` or `KEY<TAB>BYTES` of a file, `-` for standard input. A line that is not a valid key is
// reported on stderr and does not stop the others.
ExitStatus read_keys_of(Session& session, const std::string& file, const TakeRingKey& take);

// Every key that every server holds. A server that cannot list them is reported on stderr, and is true in
// `unlisted`.
ExitStatus read_live_keys_of(Session& session, const TakeRingKey& take,
                             std::vector<bool>* unlisted = nullptr);

}  // namespace mcds
