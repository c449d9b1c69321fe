// Implements mcds array: parsing and printing. The algorithm is in common/structures/array/array.hpp.
#include "common/structures/array/array.hpp"

#include <iterator>

#include "common/primitives/seal.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

namespace {

// The size of a batch from standard input: one more line must still fit into one atomic change.
constexpr std::size_t batch_bytes = 96 * 1024;
constexpr std::size_t line_overhead = 48;
constexpr std::size_t max_item_value_size = max_change - line_overhead;

struct ArrayOptions {
  bool partial = false;
  std::string name;
  std::vector<std::string> values, add, remove;
  std::string encoding;
  bool json = false, allow_empty = false, report = false;
};

using Options = std::shared_ptr<ArrayOptions>;
using Elements = std::vector<std::string>;

Array array_of(Session& session, const ArrayOptions& options) {
  return {context_with_one_copy(session, "--copies", "an array"), options.name};
}

std::optional<ArrayEncoding> encoding_of(const ArrayOptions& options) {
  if (options.encoding.empty()) return std::nullopt;
  return options.encoding == "json" ? ArrayEncoding::json : ArrayEncoding::journal;
}

std::string element_of(const ArrayOptions& options, std::string_view value) {
  auto element = options.json ? compact_json(value) : std::optional(quote_bytes(value));
  if (!element) {
    throw Failure(ErrorCode::bad_data, "the value is not JSON; omit --json to store it as a string");
  }
  if (element->size() > max_item_value_size) {
    throw Failure(ErrorCode::bad_data,
                  "a value of " + std::to_string(value.size()) +
                      " bytes is too large; less than 256 KiB as JSON fit into one change");
  }
  return std::move(*element);
}

Elements elements_of(const ArrayOptions& options, const std::vector<std::string>& values) {
  Elements elements;
  for (const std::string& value : values) elements.push_back(element_of(options, value_of(value)));
  return elements;
}

bool from_input(const ArrayOptions& options) {
  const bool input = options.values == std::vector<std::string>{"-"};
  const bool mixed = !input && std::ranges::find(options.values, "-") != options.values.end();
  if (mixed) throw InvalidInput("- reads the values from standard input, one per line; give no other values");
  return input;
}

ExitStatus not_found(Session& session, const ArrayOptions& options, std::size_t server) {
  return answer_missing(session, JsonObject("array", options.name), {server});
}

// Returns the bytes of a string, or the JSON text of any other element.
std::string bytes_of(const std::string& element) {
  return unquote_bytes(element).value_or(element);
}

// Adds the elements. They are JSON already; if one has bytes that JSON cannot hold, all are added as base64.
// Returns false if an element was written by another program and is shown as bytes.
bool add_values(JsonObject& answer, const std::string& name, const Elements& elements) {
  bool binary = false;
  bool ours = true;
  for (const std::string& element : elements) {
    if (is_compact_json(element)) continue;
    binary = true;
    ours = ours && element.starts_with("b\"") && unquote_bytes(element);
  }
  std::string list = "[";
  for (const std::string& element : elements) {
    if (list.size() > 1) list += ',';
    list += binary ? '"' + base64(bytes_of(element)) + '"' : element;
  }
  answer.raw(binary ? name + "_b64" : name, list += ']');
  return ours;
}

ExitStatus answer_step(Session& session, const ArrayOptions& options, const Array::Changed& changed,
                       std::size_t adds, std::size_t deletes, const Elements* deleted = nullptr) {
  if (!changed.found) return not_found(session, options, changed.server);
  JsonObject answer("array", options.name);
  answer.number("adds", adds).number("deletes", deletes).boolean("created", changed.created);
  if (deleted != nullptr) add_values(answer, "deleted", *deleted);
  Output& output = session.output();
  if (deleted != nullptr && output.mode() == OutputMode::value) {
    for (const std::string& element : *deleted) output.answer_value({}, bytes_of(element), bytes_of(element));
    return ExitStatus::ok;
  }
  answer_from(session, answer, {changed.server}, std::to_string(adds + deletes));
  return ExitStatus::ok;
}

Batch<std::string> element_batch(const ArrayOptions& options) {
  Batch<std::string> batch;
  batch.parse = [&options](const std::string& line) { return element_of(options, line); };
  batch.max_items = std::numeric_limits<std::size_t>::max();
  batch.bytes_of = [](const std::string& element) { return element.size() + line_overhead; };
  batch.max_bytes = batch_bytes;
  return batch;
}

// Adds or deletes values of standard input in windows. Each window is one atomic change.
ExitStatus change_lines(Session& session, const ArrayOptions& options, Change kind) {
  const auto encoding = encoding_of(options);
  const bool adds = kind == Change::add;
  Array array = array_of(session, options);
  std::uint64_t changed = 0;
  bool created = false;
  bool found = false;
  const auto change = [&](std::span<const std::string> elements) {
    const std::span<const std::string> none;
    const auto step = array.change(adds ? elements : none, adds ? none : elements, encoding);
    created = created || step.created;
    found = found || step.found;
    if (step.found) changed += elements.size();
  };
  Batch<std::string> batch = element_batch(options);
  batch.run = [&](const Window<std::string>& window) {
    std::size_t done = 0;
    try {
      in_pieces(window.items.size(), [&](std::size_t first, std::size_t last) {
        change(std::span(window.items).subspan(first, last - first));
        done = last;
      });
    } catch (const Failure& failure) {
      window.fail_from(done, failure);
    }
  };
  const LinesDone lines = batch.of_lines(session, {.answers_each = false});
  JsonObject answer("array", options.name);
  answer.number("adds", adds ? changed : 0)
      .number("deletes", adds ? 0 : changed)
      .number("failed", lines.failed);
  add_lost(answer.boolean("created", created), session);
  session.add_unfinished(answer);
  session.output().answer(answer, std::to_string(changed));
  return !adds && !found && lines.lines != 0 ? worse(lines.worst, ExitStatus::no) : lines.worst;
}

ExitStatus change_in_one_step(Session& session, const ArrayOptions& options, const Elements& add,
                              const Elements& remove) {
  const auto changed = array_of(session, options).change(add, remove, encoding_of(options));
  return answer_step(session, options, changed, add.size(), remove.size());
}

ExitStatus add(Session& session, const ArrayOptions& options) {
  if (from_input(options)) return change_lines(session, options, Change::add);
  return change_in_one_step(session, options, elements_of(options, options.values), {});
}

ExitStatus remove(Session& session, const ArrayOptions& options) {
  if (from_input(options)) return change_lines(session, options, Change::remove);
  return change_in_one_step(session, options, {}, elements_of(options, options.values));
}

ExitStatus change_and_report(Session& session, const ArrayOptions& options) {
  if (options.remove.empty()) throw InvalidInput("--tell reports what --remove removes; give --remove V");
  if (options.encoding == "json") throw InvalidInput("--tell needs an array with the journal encoding");
  const Elements add = elements_of(options, options.add), remove = elements_of(options, options.remove);
  const auto reported = array_of(session, options).change_and_report(add, remove);
  return answer_step(session, options, reported.changed, add.size(), remove.size(), &reported.deleted);
}

ExitStatus change(Session& session, const ArrayOptions& options) {
  if (options.add.empty() && options.remove.empty())
    throw InvalidInput("nothing to change; give --add V or --remove V, once for each value");
  if (options.report) return change_and_report(session, options);
  return change_in_one_step(session, options, elements_of(options, options.add),
                            elements_of(options, options.remove));
}

ExitStatus replace(Session& session, const ArrayOptions& options) {
  const auto encoding = encoding_of(options);
  Elements elements;
  if (from_input(options)) {
    // All lines are one step. They are read before any is used, and none is used if one is invalid.
    Batch<std::string> batch = element_batch(options);
    batch.run = [&](Window<std::string>& window) {
      std::move(window.items.begin(), window.items.end(), std::back_inserter(elements));
    };
    const LinesDone lines = batch.of_lines(session, {.all_or_none = true, .answers_each = false});
    if (lines.worst != ExitStatus::ok) return lines.worst;
    if (elements.empty() && !options.allow_empty) {
      throw Failure(
          ErrorCode::bad_data,
          "standard input was empty and nothing was replaced; use --allow-empty to empty the array");
    }
  } else if (options.values.empty() && !options.allow_empty) {
    throw InvalidInput("no VALUE given; use --allow-empty to empty the array");
  } else {
    elements = elements_of(options, options.values);
  }
  const auto changed = array_of(session, options).replace(elements, encoding);
  JsonObject answer("array", options.name);
  answer.number("count", elements.size()).boolean("created", changed.created);
  answer_from(session, answer, {changed.server}, std::to_string(elements.size()));
  return ExitStatus::ok;
}

void warn_of_loss(Session& session, const JournalLoss& loss) {
  if (loss.segments == 0 && loss.lines == 0)
    return session.output().warning(
        "another program wrote a part of the array in an unknown form, so values may be missing; do not drop "
        "the array");
  session.output().warning(
      std::string(loss.segments != 0 ? "a server has lost a part of the array"
                                     : "a part of the array is damaged, or another program wrote to it") +
      ": values are missing, or removed ones are back; replace or drop the array");
}

Array::Contents read(Session& session, const ArrayOptions& options) {
  auto contents = array_of(session, options).fetch(encoding_of(options));
  if (!contents.complete()) warn_of_loss(session, contents.loss);
  return contents;
}

ExitStatus finish(Session& session, const Array::Contents& contents, JsonObject& answer,
                  std::string_view bare) {
  answer.number("count", contents.elements.size());
  if (!contents.complete()) answer.boolean("complete", false);
  if (contents.loss.segments != 0) answer.number("lost_items", contents.loss.segments);
  if (contents.loss.lines != 0) answer.number("damaged_lines", contents.loss.lines);
  if (contents.loss.unknown != 0) answer.number("unknown_lines", contents.loss.unknown);
  answer.bytes("server", session.server_address(contents.server));
  session.output().answer(answer, bare);
  return contents.complete() ? ExitStatus::ok : ExitStatus::problem;
}

// Prints a line for each value: its bytes with -o value, or a row for people.
ExitStatus print_each(Session& session, const Array::Contents& contents) {
  session.output().buffered(true);
  for (const std::string& element : contents.elements) {
    if (session.output().mode() == OutputMode::value) {
      session.output().answer_value({}, bytes_of(element), bytes_of(element));
      continue;
    }
    JsonObject row;
    if (is_compact_json(element))
      row.raw("value", element);
    else
      row.bytes("value", bytes_of(element));
    session.output().answer(row, {});
  }
  return contents.complete() ? ExitStatus::ok : ExitStatus::problem;
}

ExitStatus fetch(Session& session, const ArrayOptions& options) {
  const auto contents = read(session, options);
  if (!contents.found) return not_found(session, options, contents.server);
  const OutputMode mode = session.output().mode();
  if (mode == OutputMode::value || mode == OutputMode::text) return print_each(session, contents);
  JsonObject answer("array", options.name);
  const bool ours = add_values(answer, "values", contents.elements);
  const ExitStatus status = finish(session, contents, answer, {});
  if (ours) return status;
  throw Failure(ErrorCode::bad_data,
                "another program wrote to the array: an element is not JSON; all values are shown as bytes",
                session.server_address(contents.server));
}

// Fetches the array. An array is on one server: if that does not answer, the whole array is missing.
ExitStatus fetch_partially(Session& session, const ArrayOptions& options) {
  if (!options.partial) return fetch(session, options);
  try {
    return fetch(session, options);
  } catch (const NotApplied& failure) {
    JsonObject missing =
        JsonObject().boolean("complete", false).bytes("array", options.name).number("printed", 0);
    missing.objects("unreachable", {JsonObject("server", failure.server()).bytes("message", failure.what())});
    session.output().incomplete(missing, std::string("incomplete: nothing could be read: ") + failure.what() +
                                             " (server " + failure.server() + ')');
    return ExitStatus::problem;
  }
}

ExitStatus count(Session& session, const ArrayOptions& options) {
  const auto contents = read(session, options);
  if (!contents.found) return not_found(session, options, contents.server);
  JsonObject answer("array", options.name);
  return finish(session, contents, answer, std::to_string(contents.elements.size()));
}

ExitStatus drop(Session& session, const ArrayOptions& options) {
  return answer_dropped(session, JsonObject("array", options.name),
                        [&] { return array_of(session, options).drop(); });
}

ExitStatus where(Session& session, const ArrayOptions& options) {
  return print_where(session, array_of(session, options).keys(), 1);
}

constexpr const char* values_help =
    "the values, in one atomic step; @FILE: a file's contents; -: one per line of standard input";

Verb& declare(Command& command, const Options& options, ExitStatus (*run)(Session&, const ArrayOptions&),
              const char* name, const char* summary) {
  return command.verb(name, summary).argument("NAME", "the array", &options->name).action(run, options);
}

void with_encoding(Verb& verb, const Options& options) {
  verb.choice("--encoding", "journal|json",
              "how the array is stored; default: as it is, journal for a new one; another encoding than the "
              "array has is refused",
              &options->encoding);
}

void with_values(Verb& verb, const Options& options) {
  verb.flag("--json", "the values are JSON, not strings", options->json).with(with_encoding, options);
}

void declare_changes(Command& command, const Options& options) {
  declare(command, options, add, "add", "append values")
      .example("mcds array add jobs backup report")
      .answer("array adds deletes created server")
      .answer("array adds deletes failed created lost_or_dropped? unfinished?")
      .example("mcds array add hosts --json '{\"name\":\"web1\",\"up\":true}'")
      .example("find /data -name '*.csv' | mcds array add files -")
      .argument("VALUE", values_help, dash(&options->values))
      .with(with_values, options);
  declare(command, options, change, "change", "remove and append values in one atomic step")
      .example("mcds array change jobs --remove backup --add restore")
      .answer("array adds deletes created deleted? server")
      .answer("array found server")
      .option("--add", "V", "append V; may be repeated", dash(&options->add))
      .option("--remove", "V", "remove every value that equals V, before values are added; may be repeated",
              dash(&options->remove))
      .flag("--tell",
            "also print the values that this change removed; needs a journal and one more round trip",
            options->report)
      .example("mcds array change jobs --remove backup --remove report --tell")
      .with(with_values, options);
  declare(command, options, remove, "remove", "remove every value that equals one of the given values")
      .example("mcds array remove jobs backup")
      .answer("array adds deletes created server")
      .answer("array adds deletes failed created unfinished?")
      .answer("array found server")
      .argument("VALUE", values_help, dash(&options->values))
      .with(with_values, options);
  declare(command, options, replace, "replace", "replace all values in one atomic step")
      .example("mcds array replace jobs backup report")
      .answer("array count created server")
      .example("ls | mcds array replace files -")
      .optional_argument("VALUE", "the values; @FILE: a file's contents; -: one per line of standard input",
                         dash(&options->values))
      .with(with_values, options)
      .flag("--allow-empty", "accept empty input of -, or no VALUE, and leave an empty array",
            options->allow_empty);
}

}  // namespace

void declare_array(Command& command) {
  command.exits(
      "1 no such array|2 a part of the array is lost, or it was lost or dropped while the command ran|65 a "
      "value that cannot be stored, an array of the other encoding, or a key that holds something else|66 a "
      "file cannot be read|69|75 other clients kept changing the array|76|80 the change may or may not have "
      "been made");
  const auto options = std::make_shared<ArrayOptions>();
  declare_changes(command, options);
  declare(command, options, fetch_partially, "fetch",
          "print all values, in the order in which they were added")
      .example("mcds array fetch jobs")
      .answer("array values count complete? lost_items? damaged_lines? unknown_lines? server")
      .answer("array found server")
      .example("mcds array fetch jobs -o value | while read -r job; do run \"$job\"; done")
      .flag("--partial",
            "if no server of the array answers, report this in a last line on standard error and exit with 2",
            options->partial)
      .with(with_encoding, options);
  declare(command, options, count, "count", "print the number of values")
      .example("mcds array count jobs -o value")
      .answer("array count complete? lost_items? damaged_lines? unknown_lines? server")
      .answer("array found server")
      .with(with_encoding, options);
  declare(command, options, drop, "drop", "end the array: nothing of it remains on the servers")
      .example("mcds array drop jobs")
      .answer("array @dropped");
  declare(command, options, where, "where", "print the array's keys and their servers")
      .example("mcds array where jobs")
      .answer("@where");
}

}  // namespace mcds
