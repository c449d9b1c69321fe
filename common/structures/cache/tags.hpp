// What many cache entries depend on, so that one command makes all of them stale. Its contract stands at the
// end of this file.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/errors.hpp"
#include "common/primitives/context.hpp"
#include "common/structures/cache/entry.hpp"

namespace mcds {

class CacheTags {
 public:
  // Throws InvalidInput for names that no key can hold.
  CacheTags(const Context& context, std::vector<std::string> names);

  bool empty() const { return names_.empty(); }
  const std::vector<std::string>& names() const { return names_; }
  // The servers' keys, in the order of the names.
  const std::vector<std::string>& keys() const { return keys_; }

  // What asks for all of them: to be sent with what else is asked for.
  void ask(std::vector<Request>& batch) const {
    for (const std::string& key : keys_) batch.push_back(Request::get(key));
  }
  // The tags as they are, from the replies to ask(). Empty numbers: missing. Throws what keeps them from
  // being known.
  std::vector<CacheTag> take(std::span<const Reply> replies) const;
  std::vector<CacheTag> read() const;
  // The same, with those created that are missing. Throws UnknownOutcome and the like.
  std::vector<CacheTag> made(std::vector<CacheTag> tags) const;

  struct Expired {
    bool found = false;  // false: it was missing, so nothing that depends on it is fresh
    std::size_t server = 0;
    std::optional<Failure> failure = {};
  };
  // In the order of the names.
  std::vector<Expired> expire() const;

 private:
  std::string number() const;

  Context context_;
  std::vector<std::string> names_, keys_;
};

// Whether the entry's tags are as they were, and every tag that is named among them. `named`: as they are;
// others are read.
bool tags_agree(const Context& context, const CacheRecord& record, std::vector<CacheTag> named);
// Those that are not as they were.
std::vector<std::string> tags_expired(const Context& context, const CacheRecord& record);

}  // namespace mcds

// Key layout
//   cachetag:<tag> = 6148914691236517205     a random number of 19 digits, without exptime
//                                            expiring increments it
// Invariants
//   An entry holds the numbers that its tags had before its command was started. It is fresh only as long as
//   each tag has the same number. Each attempt to create a tag has a number of its own, so a tag that was
//   lost, and is created again by whomever and however late, makes its entries stale, and never fresh.
//   After an acknowledged expire no tag has a number that was read before it. So whatever was built from data
//   older than the expire is not fresh, even if it is stored later.
// Round trips
//   None of their own for tags that the caller names: they are read with the entry. Entries' other tags: 1.
//   Creating one: 1. expire 1.
// When things fail
//   eviction, restart  of a tag: its entries are stale.
//   lost reply         of creating: nobody uses the number. Of expire: repeated; at last UnknownOutcome, and
//                      harmless to repeat.
//   server down        of a tag: nothing is fresh that depends on it; thrown.
