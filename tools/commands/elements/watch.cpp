// mcds hash watch: what is there, then what changes.
#include "common/structures/elements/watch.hpp"

#include "tools/commands/elements/command.hpp"

namespace mcds {

namespace {

void print_change(Session& session, ElementLine& lines, const ElementWatch::Change& change) {
  Output& output = session.output();
  if (output.mode() == OutputMode::value) return output.answer_pair(change.name, change.value);
  JsonObject& line = lines.of(change.name);
  if (change.value)
    line.stored_bytes("value", *change.value);
  else
    line.boolean("removed", true);
  if (change.before) line.stored_bytes("before", *change.before);
  line.bytes("server", session.server_address(change.server));
  output.answer(line, {});
}

}  // namespace

ExitStatus watch_elements(Session& session, const ElementsOptions& options) {
  if (options.every < std::chrono::milliseconds(10)) throw InvalidInput("--every must be at least 10ms");
  std::vector<std::string> names;
  for (const std::string& word : options.words) {
    const std::string name = bare_element(value_of(word)).name;
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  session.output().buffered(true);
  ElementWatch watch(session.context_with_copies(), options.structure, options.name, std::move(names));
  ElementLine lines(options);
  Pause pause(session.deadline());
  Outage outage;
  do {
    const ElementWatch::Look look = watch.look();
    for (const auto& change : look.changes) print_change(session, lines, change);
    session.output().flush();
    session.output().tell_new_errors();
    outage.tell(session, look.failure ? std::span(&*look.failure, 1) : std::span<const Failure>());
  } while (pause.wait(options.every));
  return ExitStatus::ok;
}

}  // namespace mcds
