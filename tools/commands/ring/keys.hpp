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

// The keys that --keys or --live selects.
struct RingKeys {
  std::optional<std::string> file;  // or `-`
  bool live = false;

  bool any() const { return file || live; }
  // Throws InvalidInput if both are given.
  void check() const;
  // Reads lines `KEY` or `KEY<TAB>BYTES` of the file, or of standard input for `-`, or all keys of all
  // servers. A line that is not a valid key is reported on stderr and does not stop the others. Servers that
  // cannot list their keys are reported and set in `unlisted`.
  ExitStatus read(Session& session, const TakeRingKey& take, std::vector<bool>* unlisted = nullptr) const;
};

}  // namespace mcds
