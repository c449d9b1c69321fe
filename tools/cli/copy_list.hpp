// The copies of a key in an answer.
#pragma once

#include <span>
#include <string>

#include "common/base/json.hpp"
#include "common/primitives/context.hpp"
#include "common/primitives/several/copies.hpp"
#include "tools/cli/exit_status.hpp"

namespace mcds {

class Session;

// "copies":[{"server":…,"value":5},{"server":…,"error":{"code":…,"message":…}}]; nothing when there is one
// copy. Where the answer has no room for it (-o value), a failed copy is a warning, once for each server.
// `yes`: what CopyOutcome::yes is called. "degraded":true: the answer rests on one copy of two.
void add_copies(JsonObject& line, Session& session, std::span<const CopyOutcome> copies,
                const char* yes = "");

// For what has one copy, whatever is configured. Throws InvalidInput if several were asked for: `option` is
// for what has one.
Context context_with_one_copy(Session& session, const char* option,
                              const std::string& what = "such a counter");
// The same list; where there is none though several copies are configured, "copies":1.
void add_copies_or_one(JsonObject& line, Session& session, std::span<const CopyOutcome> copies);

// The answer of the verb recopy: {…,"copies":3,"copies_before":1,"changed":true}; `found`: false: there is no
// such thing.
ExitStatus answer_recopied(Session& session, JsonObject answer, bool found, std::size_t before);

// The answer of the verb drop: {…,"dropped":true}; exit 1 if there was nothing.
ExitStatus answer_dropped(Session& session, JsonObject answer, bool dropped);

}  // namespace mcds
