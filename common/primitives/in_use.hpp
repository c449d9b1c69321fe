// Which variants of a key are in use under one name, each until it ends: the periods of visitors, the
// shapes of an event log.
//
// Key layout
//   <base>:conf    lines `P1 <what> <UNIX seconds of its end> *<checksum>`, the newest last
//                  E.g. visitors:site:conf = P1 3600 1795240800 *8d1f20aa
//                                            P1 10 1795234150 *5b0e9c31
// Invariants
//   This is a hint, written by cas, so that no line is lost to a rival, and best effort. A line that loses to
//   a rival or is lost is written again with the next period or chunk. Servers without cas keep what was
//   written last.
#pragma once

#include "common/primitives/context.hpp"

namespace mcds {

struct InUse {
  std::string what;
  WallTime until;

  bool operator==(const InUse&) const = default;
};

// Those that have not ended, the newest last; nothing if the value is not ours. Lines of another form are
// skipped.
std::vector<InUse> parse_in_use(std::string_view value, WallTime now);
std::string in_use_value(const std::vector<InUse>& all);

// Stores `noted` as the newest beside what `seen`, the reply to a gets of `key`, has.
Request note_in_use(const std::string& key, const Reply& seen, const InUse& noted, WallTime now);
// Throws CorruptData where another program's value is there: it stays.
void expect_in_use(const Context& context, const std::string& key, std::string_view value,
                   std::size_t server);
// What is there, by `seen`, the reply to a gets; asked again where servers know none. Throws as
// expect_in_use().
Reply look_in_use(const Context& context, const std::string& key, const Reply& seen);
// The same with its own gets, repeated if a rival was faster or no reply came. Failures are ignored.
void note_in_use(const Context& context, const std::string& key, const InUse& noted);

}  // namespace mcds
