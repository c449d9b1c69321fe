#include "tools/cli/copy_list.hpp"

#include <algorithm>

#include "tools/cli/exit_status.hpp"
#include "tools/cli/session.hpp"

namespace mcds {

void add_copies(JsonObject& line, Session& session, std::span<const CopyOutcome> copies, const char* yes) {
  if (copies.size() < 2) return;
  std::vector<JsonObject> list;
  for (const CopyOutcome& copy : copies) {
    JsonObject& entry = list.emplace_back();
    const std::string server = session.server_address(copy.server);
    entry.bytes("server", server);
    if (copy.yes) entry.boolean(yes, *copy.yes);
    if (copy.number) entry.number("value", *copy.number);
    if (!copy.failure) continue;
    entry.object(
        "error",
        JsonObject().bytes("code", name_of(copy.failure->code())).bytes("message", copy.failure->what()));
    if (session.output().mode() == OutputMode::value && session.first_failure_of(copy.server)) {
      session.output().warning(server + ": no answer from this copy: " + copy.failure->what());
    }
  }
  line.objects("copies", list);
  const auto failed = [](const CopyOutcome& copy) { return copy.failure.has_value(); };
  if (copies.size() == 2 && std::count_if(copies.begin(), copies.end(), failed) == 1)
    line.boolean("degraded", true);
}

Context context_with_one_copy(Session& session, const char* option, const std::string& what) {
  if (session.options().copies && session.copies() > 1)
    throw InvalidInput(std::string(option) + ": " + what + " has one copy; use --copies 1, or omit it");
  Context context = session.context_with_copies();
  context.copies = 1;
  return context;
}

void add_copies_or_one(JsonObject& line, Session& session, std::span<const CopyOutcome> copies) {
  if (copies.size() < 2 && session.copies() > 1)
    line.number("copies", 1);
  else
    add_copies(line, session, copies);
}

ExitStatus answer_recopied(Session& session, JsonObject answer, bool found, std::size_t before) {
  if (!found) {
    answer.boolean("found", false);
    if (session.output().mode() != OutputMode::value) session.output().answer(answer, {});
    return ExitStatus::no;
  }
  answer.number("copies", session.copies()).number("copies_before", before);
  answer.boolean("changed", session.copies() != before);
  session.output().answer(answer, std::to_string(session.copies()));
  return ExitStatus::ok;
}

ExitStatus answer_dropped(Session& session, JsonObject answer, bool dropped) {
  session.output().answer(answer.boolean("dropped", dropped), dropped ? "1" : "0");
  return dropped ? ExitStatus::ok : ExitStatus::no;
}

}  // namespace mcds
