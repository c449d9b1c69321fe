// Implements mcds table: parsing and printing. The algorithm is in common/structures/elements/table.hpp.
#include "common/structures/elements/table.hpp"

#include "tools/commands/elements/command.hpp"

namespace mcds {

namespace {

// Runs add or has, which differ in their request and in the field of the answer. Only add has a ttl.
ExitStatus members(Session& session, const ElementsOptions& options, const char* word, ExitStatus otherwise,
                   Elements::Answers (*ask)(Table&, std::span<const Element>, const ElementsOptions&)) {
  Table table(context_for_setting(session, options), options.name);
  ElementLine line(options);
  auto batch = element_batch(
      session, [&](std::span<const Element> window) { return ask(table, window, options); },
      [&](const Element& member, const ElementResult& result) {
        JsonObject& answer = line.of(member.name).boolean(word, result.yes);
        answer_setting(session, answer, options, result);
        return result.yes ? ExitStatus::ok : otherwise;
      });
  batch.parse = [](std::string&& name) { return checked(Table::member(std::move(name))); };
  return run_words(session, options, batch);
}

ExitStatus add(Session& session, const ElementsOptions& options) {
  return members(session, options, "added", ExitStatus::ok,
                 [](Table& table, std::span<const Element> window, const ElementsOptions& how) {
                   return table.begin_set(window, how.ttl);
                 });
}

ExitStatus has(Session& session, const ElementsOptions& options) {
  return members(session, options, "has", ExitStatus::no,
                 [](Table& table, std::span<const Element> window, const ElementsOptions&) {
                   return known(table.get(names_of(window)));
                 });
}

}  // namespace

void declare_table(Command& command) {
  command.exits(
      "1 one of them is not a member|2 a part of the index was lost, or the table was lost or dropped while "
      "members were added|65 a member is too long, or a key holds something else|66 a file cannot be "
      "read|69|75 other clients kept changing the table|76|80 the change may or may not have been made");
  const auto options = std::make_shared<ElementsOptions>(ElementsOptions{"table", "member"});
  declare_verb(command, options, "add", "add members", add)
      .answer("table member added server ttl_s? lost_or_dropped? @copies")
      .field("ttl_s number the ttl in seconds")
      .example("mcds table add blocked 10.1.2.3 10.1.2.4")
      .example("cut -f1 offenders | mcds table add blocked - --ttl 1h")
      .argument("MEMBER", "any bytes; @FILE: a file's contents; - reads one per line", dash(&options->words))
      .with(declare_ttl, options);
  declare_verb(command, options, "has", "print whether these are members", has)
      .example("mcds table has blocked 10.1.2.3")
      .answer("table member has server @copies")
      .example("if mcds table has blocked \"$IP\" >/dev/null; then exit 1; fi")
      .argument("MEMBER", "any bytes; - reads one per line", dash(&options->words));
  declare_fetch(command, options, "fetch", "print all members, unordered", false)
      .example("mcds table fetch blocked -o value | sort");
  declare_shared_verbs(command, options);
}

}  // namespace mcds
