// CacheTags are the tags on which cache entries depend. Expiring a tag makes all its entries stale. Its
// contract is at the end of this file.
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
  // Throws InvalidInput for names that no key can contain.
  CacheTags(const Context& context, std::vector<std::string> names);

  bool empty() const { return names_.empty(); }
  const std::vector<std::string>& names() const { return names_; }
  // Returns the memcached keys of the tags, in the order of the names.
  const std::vector<std::string>& keys() const { return keys_; }

  // Adds the requests that read all tags to `batch`, so that they share its round trip.
  void ask(std::vector<Request>& batch) const {
    for (const std::string& key : keys_) batch.push_back(Request::get(key));
  }
  // Returns the tags from the replies to ask(); an empty number means missing. Throws if one cannot be read.
  std::vector<CacheTag> take(std::span<const Reply> replies) const;
  std::vector<CacheTag> read() const;
  // Returns the tags after creating the missing ones. Throws UnknownOutcome and the like.
  std::vector<CacheTag> made(std::vector<CacheTag> tags) const;

  struct Expired {
    bool found = false;  // false: it was missing, so no entry that depends on it is fresh
    std::size_t server = 0;
    std::optional<Failure> failure = {};
  };
  // Expires the tags, and returns the results in the order of the names.
  std::vector<Expired> expire() const;

 private:
  std::string number() const;

  Context context_;
  std::vector<std::string> names_, keys_;
};

// Returns true if the entry's tags are unchanged and include every tag in `named`. `named` has current
// numbers; the entry's other tags are read.
bool tags_agree(const Context& context, const CacheRecord& record, std::vector<CacheTag> named);
// Returns the names of the entry's tags that have changed.
std::vector<std::string> tags_expired(const Context& context, const CacheRecord& record);

}  // namespace mcds

// Key layout
//   cachetag:<tag> = 6148914691236517205     a random number of 19 digits, without exptime;
//                                            expiring increments it
// Invariants
//   An entry holds the numbers that its tags had before its command was started, and is fresh only while each
//   tag has that number. Each attempt to create a tag uses another number, so a tag that is lost and created
//   again, by any client and however late, makes its entries stale and never fresh.
//   After an acknowledged expire no tag has a number that was read before it. So output that was built from
//   data older than the expire is not fresh, even if it is stored later.
// Round trips
//   None of their own for tags that the caller names, which are read with the entry. An entry's other tags 1.
//   Creating tags 1. expire 1.
// When things fail
//   eviction, restart  of a tag: its entries are stale.
//   lost reply         of creating: no entry uses the number. Of expire: repeated, which is harmless; finally
//                      UnknownOutcome.
//   server down        of a tag: throws, because no entry that depends on it is fresh.
