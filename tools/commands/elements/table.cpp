// mcds table: parsing and printing; the algorithm is in common/structures/elements/table.hpp.
#include "common/structures/elements/table.hpp"

#include "tools/cli/copy_list.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/elements/command.hpp"

namespace mcds {

namespace {

constexpr ElementsKind kind{"table", "member", false};

// add and has differ in what they ask and the word they answer with. Only add has a ttl.
ExitStatus members(Session& session, const ElementsOptions& options, const char* word, ExitStatus otherwise,
                   Elements::Answers (*ask)(Table&, const std::vector<std::string>&,
                                            const ElementsOptions&)) {
  Table table(context_for_setting(session, kind, options), options.name);
  const auto batch =
      element_batch([&](std::span<const Element> window) { return ask(table, names_of(window), options); },
                    [&](const Element& member, const ElementResult& result) {
                      JsonObject answer = element_answer(kind, options, member.name);
                      answer.boolean(word, result.yes).bytes("server", session.server_address(result.server));
                      add_setting(answer, session, options, result);
                      session.output().answer(answer, result.yes ? "1" : "0");
                      return result.yes ? ExitStatus::ok : otherwise;
                    });
  return run_words(session, options, batch);
}

ExitStatus add(Session& session, const ElementsOptions& options) {
  return members(session, options, "added", ExitStatus::ok,
                 [](Table& table, const std::vector<std::string>& names, const ElementsOptions& how) {
                   return table.begin_add(names, how.relist, how.ttl);
                 });
}

ExitStatus has(Session& session, const ElementsOptions& options) {
  return members(session, options, "has", ExitStatus::no,
                 [](Table& table, const std::vector<std::string>& names, const ElementsOptions&) {
                   return known(table.has(names));
                 });
}

}  // namespace

void declare_table(Command& command) {
  const auto options = std::make_shared<ElementsOptions>();
  Verb& adding = command.verb("add", "add members");
  adding.answer("table member added server ttl_s? @copies")
      .example("mcds table add blocked 10.1.2.3 10.1.2.4")
      .example("cut -f1 offenders | mcds table add blocked - --ttl 1h")
      .argument("NAME", "the table", &options->name)
      .argument("MEMBER", "any bytes; @FILE: a file's contents; - reads one per line", &options->words)
      .dash()
      .flag("--relist", "also list existing members in the index again, after a part of it was lost",
            options->relist)
      .flag("--fail-fast", "stop at the first line that fails", options->fail_fast)
      .action([options](Session& session) { return add(session, *options); });
  declare_ttl(adding, options);
  command.verb("has", "print whether these are members")
      .example("mcds table has blocked 10.1.2.3")
      .answer("table member has server @copies")
      .example("if mcds table has blocked \"$IP\" >/dev/null; then exit 1; fi")
      .argument("NAME", "the table", &options->name)
      .argument("MEMBER", "any bytes; - reads one per line", &options->words)
      .dash()
      .flag("--fail-fast", "stop at the first line that fails", options->fail_fast)
      .action([options](Session& session) { return has(session, *options); });
  command.verb("fetch", "print all members, unordered")
      .example("mcds table fetch blocked -o value | sort")
      .answer("table member server")
      .answer("table complete lost")
      .argument("NAME", "the table", &options->name)
      .flag("--partial", "if servers do not answer, print what the others hold and exit with 2",
            options->partial)
      .flag("--must-exist", "exit with 1 if there is no such table", options->must_exist)
      .action([options](Session& session) { return fetch_elements(session, kind, *options, true); });
  declare_shared_verbs(command, kind, options);
}

}  // namespace mcds
