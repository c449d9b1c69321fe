// Records the variants of a key that are in use under one name, each until its expiry: the periods of
// visitors, the shapes of an event log.
//
// Key layout
//   <base>:conf    lines `P1 <what> <UNIX seconds of its end> *<checksum>`, the newest last
//                  E.g. visitors:site:conf = P1 3600 1795240800 *8d1f20aa
//                                            P1 10 1795234150 *5b0e9c31
// Invariants
//   The record is a hint, written by cas so that concurrent writers do not lose lines, and best effort. A
//   line that was lost or could not be written is written again with the next period or chunk. A server
//   without cas keeps only what was written last.
#pragma once

#include "common/primitives/context.hpp"

namespace mcds {

struct ActiveVariant {
  std::string what;
  WallTime until;

  bool operator==(const ActiveVariant&) const = default;
};

// Returns the variants that have not expired, the newest last. Lines of another form are skipped, so another
// program's value yields an empty result.
std::vector<ActiveVariant> parse_active_variants(std::string_view value, WallTime now);
std::string active_variants_value(const std::vector<ActiveVariant>& all);

// Returns the request that adds `noted` as the newest variant to `seen`, the reply to a gets of `key`.
Request record_active_variant(const std::string& key, const Reply& seen, const ActiveVariant& noted,
                              WallTime now);
// Throws CorruptData if `value` is another program's; that value is left in place.
void require_active_variant(const Context& context, const std::string& key, std::string_view value,
                            std::size_t server);
// Returns `seen`, the reply to a gets, or the reply to a get if the server has no gets. Throws like
// require_active_variant().
Reply read_active_variants(const Context& context, const std::string& key, const Reply& seen);
// Reads the key and stores `noted`, and retries after a conflicting write or a lost reply. Returns false if
// that failed. Throws like require_active_variant().
bool record_active_variant(const Context& context, const std::string& key, const ActiveVariant& noted);

}  // namespace mcds
