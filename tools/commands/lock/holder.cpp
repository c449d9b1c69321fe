#include "tools/commands/lock/holder.hpp"

#include <unistd.h>

#include "tools/cli/here.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

LockHolder holder_here(std::string note) {
  return {.host = host_name(),
          .user = user_name(),
          .note = std::move(note),
          .pid = static_cast<std::uint64_t>(getpid())};
}

std::string describe_holder(const std::string& holder, const char* why_kept) {
  const auto field = [&](std::string_view name) {
    const auto json = json_field(holder, name);
    return json ? json_unquote(*json).value_or(*json) : std::string();
  };
  if (holder.empty() || field("host").empty()) return "another program";
  std::string text = field("user") + '@' + field("host") + " (pid " + field("pid") + ')';
  if (const std::string since = field("acquired_at"); !since.empty()) text += " since " + since;
  if (!field("finished_at").empty()) text += std::string(", finished") + why_kept;
  if (const std::string note = field("note"); !note.empty()) text += ": " + note;
  return text;
}

}  // namespace mcds
