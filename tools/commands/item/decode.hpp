// Shows values as their clients read them: mcds item get --decode, mcds item formats.
#pragma once

#include "common/values/values.hpp"
#include "tools/commands/item/options.hpp"

namespace mcds {

// Returns the format of --decode, or the usual one of the profile's client; nullptr: values stay undecoded.
// Throws InvalidInput if --decode names none.
const ValueFormat* format_of(Session& session, const ItemOptions& options);

// Adds "encoding", "decoded" and what else is to say about them.
void add_decoded(JsonObject& line, const DecodedValue& decoded);

// Returns a heading and the indented value, for -o text.
std::string decoded_text(std::string_view key, std::uint32_t flags, const DecodedValue& decoded);

ExitStatus item_formats(Session& session, const ItemOptions& options);

}  // namespace mcds
