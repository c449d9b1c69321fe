// mcds hash: parsing and printing; the algorithm is in common/structures/elements/hash.hpp.
#include "common/structures/elements/hash.hpp"

#include "common/base/bytes.hpp"
#include "tools/cli/copy_list.hpp"
#include "tools/cli/input.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/elements/command.hpp"

namespace mcds {

namespace {

constexpr ElementsKind kind{"hash", "field", true};

Element checked(Element element) {
  check_element(element);
  return element;
}

// FIELD<TAB>VALUE.
Element of_tab_line(const std::string& line) {
  const auto tab = line.find('\t');
  if (tab == std::string::npos)
    throw Failure(ErrorCode::bad_data,
                  "no tab between field and value; write FIELD<TAB>VALUE, or use --json");
  return checked({line.substr(0, tab), line.substr(tab + 1)});
}

// A member of an answer: `name` as it is, or `name`_b64; a value that is not a string stands for its JSON
// text.
std::optional<std::string> text_of(const std::string& object, const std::string& name) {
  if (const auto plain = json_field(object, name))
    return plain->starts_with('"') ? json_unquote(*plain) : plain;
  const auto encoded = json_field(object, name + "_b64");
  const auto digits = encoded ? json_unquote(*encoded) : std::nullopt;
  return digits ? parse_base64(*digits) : std::nullopt;
}

// A line as fetch prints it.
Element of_json_line(const std::string& line) {
  auto field = text_of(line, "field");
  auto value = text_of(line, "value");
  if (!field || !value) throw Failure(ErrorCode::bad_data, R"(not of the form {"field":"…","value":"…"})");
  return checked({std::move(*field), std::move(*value)});
}

ExitStatus answer_set(Session& session, const ElementsOptions& options, const Element& field,
                      const ElementResult& result) {
  JsonObject answer = element_answer(kind, options, field.name);
  answer.boolean("created", result.yes).bytes("server", session.server_address(result.server));
  add_setting(answer, session, options, result);
  session.output().answer(answer, result.yes ? "1" : "0");
  return ExitStatus::ok;
}

ExitStatus set(Session& session, const ElementsOptions& options) {
  Hash hash(context_for_setting(session, kind, options), options.name);
  auto batch = element_batch(
      [&](std::span<const Element> window) { return hash.begin_set(window, options.relist, options.ttl); },
      [&](const Element& field, const ElementResult& result) {
        return answer_set(session, options, field, result);
      });
  batch.parse = options.json ? of_json_line : of_tab_line;
  if (options.words == std::vector<std::string>{"-"}) return run_words(session, options, batch);
  if (options.json) throw InvalidInput("--json applies to lines of standard input; give - instead of fields");
  if (options.words.size() % 2 != 0)
    throw InvalidInput("each field needs a value; give FIELD VALUE …, or - for standard input");
  std::vector<Element> fields;
  for (std::size_t i = 0; i < options.words.size(); i += 2)
    fields.push_back(checked({value_of(options.words[i]), value_of(options.words[i + 1])}));
  return run_elements(session, batch, std::move(fields));
}

ExitStatus get(Session& session, const ElementsOptions& options) {
  const Hash hash(session.context_with_copies(), options.name);
  const bool alone = options.words.size() == 1 && options.words.front() != "-";
  const auto answer_one = [&](const Element& field, const ElementResult& result) {
    Output& output = session.output();
    JsonObject answer = element_answer(kind, options, field.name);
    if (!result.yes) {
      answer.boolean("found", false).bytes("server", session.server_address(result.server));
      if (output.mode() != OutputMode::value) output.answer(answer, {});
      return ExitStatus::no;
    }
    answer.stored_bytes("value", result.value).bytes("server", session.server_address(result.server));
    add_copies(answer, session, result.copies);
    alone ? output.answer_bytes(answer, result.value) : output.answer(answer, result.value);
    return ExitStatus::ok;
  };
  return run_words(
      session, options,
      element_batch([&](std::span<const Element> window) { return known(hash.get(names_of(window))); },
                    answer_one));
}

}  // namespace

void declare_hash(Command& command) {
  const auto options = std::make_shared<ElementsOptions>();
  Verb& setting = command.verb("set", "set fields to values");
  setting.answer("hash field created server ttl_s? @copies")
      .example("mcds hash set cfg color blue size L")
      .example("mcds hash set cfg logo @logo.png")
      .example("mcds hash fetch cfg | mcds hash set copy - --json")
      .example("mcds hash set sessions user7 \"$token\" --ttl 30m")
      .argument("NAME", "the hash", &options->name)
      .argument("FIELD VALUE", "any bytes; @FILE: a file's contents; - reads FIELD<TAB>VALUE lines",
                &options->words)
      .dash()
      .flag("--json", "the lines are JSON objects as printed by fetch", options->json)
      .flag("--relist", "also list existing fields in the index again, after a part of it was lost",
            options->relist)
      .flag("--fail-fast", "stop at the first line that fails", options->fail_fast)
      .action([options](Session& session) { return set(session, *options); });
  declare_ttl(setting, options);
  command.verb("get", "print the values of fields")
      .example("mcds hash get cfg color -o value")
      .answer("hash field value server @copies")
      .answer("hash field found server")
      .field("value bytes the value")
      .example("mcds hash get cfg color size")
      .argument("NAME", "the hash", &options->name)
      .argument("FIELD", "any bytes; - reads one per line", &options->words)
      .dash()
      .flag("--fail-fast", "stop at the first line that fails", options->fail_fast)
      .action([options](Session& session) { return get(session, *options); });
  command.verb("fetch", "print all fields with their values, unordered")
      .example("mcds hash fetch cfg")
      .answer("hash field value server")
      .answer("hash complete lost")
      .field("value bytes the value")
      .example("mcds hash fetch cfg -o value | sort")
      .argument("NAME", "the hash", &options->name)
      .flag("--partial", "if servers do not answer, print what the others hold and exit with 2",
            options->partial)
      .flag("--must-exist", "exit with 1 if there is no such hash", options->must_exist)
      .action([options](Session& session) { return fetch_elements(session, kind, *options, false); });
  command.verb("fields", "print all fields without their values")
      .example("mcds hash fields cfg -o value")
      .answer("hash field server")
      .answer("hash complete lost")
      .argument("NAME", "the hash", &options->name)
      .flag("--partial", "if servers do not answer, print what the others hold and exit with 2",
            options->partial)
      .flag("--must-exist", "exit with 1 if there is no such hash", options->must_exist)
      .action([options](Session& session) { return fetch_elements(session, kind, *options, true); });
  command.verb("watch", "print all fields, or those given, then each change of them")
      .example("mcds hash watch cfg")
      .answer("hash field value before? server")
      .answer("hash field removed before? server")
      .field("value bytes the value")
      .example("mcds hash watch cfg color size --every 5s -o value")
      .argument("NAME", "the hash", &options->name)
      .optional_argument("FIELD", "the fields to watch; default: all, those too that come later",
                         &options->words)
      .option("--every", "D", "time between two looks; default 2s", &options->every)
      .action([options](Session& session) { return watch_elements(session, kind, *options); });
  declare_shared_verbs(command, kind, options);
}

}  // namespace mcds
