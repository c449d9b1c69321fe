// Shows values as their clients read them, for mcds item get --decode and mcds item formats.
#pragma once

#include "common/values/values.hpp"
#include "tools/commands/item/options.hpp"

namespace mcds {

// Returns the format that --decode gives, or the usual format of the profile's client. Returns nullptr if
// values stay undecoded. Throws InvalidInput if --decode names no format.
const ValueFormat* format_of(Session& session, const ItemOptions& options);

// Adds "encoding", "decoded" and remarks about them.
void add_decoded(JsonObject& line, const DecodedValue& decoded);

// Returns a heading and the indented value, for -o text.
std::string decoded_text(std::string_view key, std::uint32_t flags, const DecodedValue& decoded);

ExitStatus item_formats(Session& session, const ItemOptions& options);

}  // namespace mcds
