#include "tools/commands/elements/command.hpp"

#include <unistd.h>

namespace mcds {

namespace {

JsonObject start_answer(const ElementsOptions& options) {
  return {options.structure, options.name};
}

Elements elements_of(Session& session, const ElementsOptions& options) {
  return Elements(session.context_with_copies(), options.structure, options.name);
}

ExitStatus status_of(const Elements::Listing& listing) {
  return listing.complete() ? ExitStatus::ok : ExitStatus::problem;
}

// Adds the number of elements, and of listed names without an element.
void add_numbers(JsonObject& answer, const Elements::Listing& listing) {
  answer.number("count", listing.present).number("listed", listing.names);
  answer.number("missing", listing.missing());
}

// Adds what was lost, after the elements that remain.
void add_losses(JsonObject& answer, const Elements::Listing& listing) {
  answer.boolean("complete", listing.complete());
  if (!listing.complete()) answer.strings("lost", listing.lost);
}

std::string loss_message(const ElementsOptions& options, const Elements::Listing& listing) {
  return "a part of the index is lost (" + joined(listing.lost, ", ") + "), so more may exist; see mcds-" +
         options.structure + "(1), LOSS";
}

ExitStatus remove(Session& session, const ElementsOptions& options) {
  Elements elements = elements_of(session, options);
  ElementLine line(options);
  const auto batch = element_batch(
      session, [&](std::span<const Element> window) { return known(elements.remove(names_of(window))); },
      [&](const Element& element, const ElementResult& result) {
        return answer_yes(session, line.of(element.name).boolean("removed", result.yes), result.yes,
                          {result.server, result.copies});
      });
  const ExitStatus status = run_words(session, options, batch);
  session.output().flush();
  elements.compact_removed();
  return status;
}

// Returns true if no element was ever set, or the whole index is lost.
bool is_missing(const Elements::Listing& listing) {
  return listing.shards == 0 && listing.complete() && listing.unknown == 0 && listing.unread_shards == 0;
}

ExitStatus as_missing(const ElementsOptions& options) {
  return options.must_exist ? ExitStatus::no : ExitStatus::ok;
}

Elements::Listing read_elements(Session& session, const ElementsOptions& options, const Elements& elements) {
  Progress progress(session.clock(), std::string(options.element) + "s", index_shards);
  return elements.fetch([&](Elements::Found& found) { progress.advance(1, found.shard); });
}

ExitStatus count(Session& session, const ElementsOptions& options) {
  const auto listing = read_elements(session, options, elements_of(session, options));
  JsonObject answer = start_answer(options);
  const bool missing = is_missing(listing);
  if (missing) answer.boolean("found", false);
  add_numbers(answer, listing);
  if (!listing.complete()) add_losses(answer, listing);
  if (!listing.complete() && session.output().mode() == OutputMode::value)
    session.output().warning(loss_message(options, listing));
  warn_if_degraded(session);
  session.output().answer(add_degraded(answer, session), std::to_string(listing.present));
  return missing ? as_missing(options) : status_of(listing);
}

ExitStatus check(Session& session, const ElementsOptions& options) {
  Elements elements = elements_of(session, options);
  if (options.accept) elements.accept();
  const auto listing = read_elements(session, options, elements);
  JsonObject answer = start_answer(options);
  add_losses(answer, listing);
  add_numbers(answer, listing);
  answer.number("lines", listing.lines).number("shards", listing.shards);
  if (listing.repaired)
    answer.number("healed", *listing.repaired).boolean("copies_whole", listing.copies_whole);
  std::vector<JsonObject> divergent;
  for (const auto& one : listing.divergent) {
    divergent.emplace_back(options.element, one.name).strings("values", one.values);
  }
  if (!divergent.empty()) answer.objects("divergent", divergent);
  session.output().answer(add_degraded(answer, session), listing.complete() && divergent.empty() ? "1" : "0");
  return divergent.empty() ? status_of(listing) : ExitStatus::problem;
}

ExitStatus drop(Session& session, const ElementsOptions& options) {
  return answer_dropped(session, start_answer(options), [&] { return elements_of(session, options).drop(); });
}

ExitStatus where(Session& session, const ElementsOptions& options) {
  const Elements elements = elements_of(session, options);
  const std::vector<std::string> index = elements.index_keys();
  std::vector<std::string> keys;
  for (const std::string& word : options.words)
    keys.push_back(elements.key_of(bare_element(value_of(word)).name));
  keys.insert(keys.end(), index.begin(), index.end());
  return print_where(session, keys);
}

// Prints elements as they arrive. A write error ends the run.
class Printer {
 public:
  Printer(Session& session, const ElementsOptions& options, bool values)
      : session_(session), options_(options), values_(values), line_(options), object_(session.output()) {
    if (isatty(STDOUT_FILENO) == 0)
      progress_.emplace(session.clock(), std::string(options.element) + "s", index_shards);
  }

  void print(const Elements::Found& found) {
    if (progress_) progress_->advance(1, found.shard);
    if (options_.as_object) return object_.add(found.name, text_or_base64(found.value));
    if (session_.output().mode() == OutputMode::value)
      return values_ ? session_.output().answer_pair(found.name, found.value)
                     : session_.output().answer_name({}, found.name);
    JsonObject& answer = line_.of(found.name);
    if (values_) answer.stored_bytes("value", found.value);
    answer.fields({session_.server_field(found.server)});
    session_.output().answer(add_degraded(answer, session_), {});
  }

  ExitStatus end(const Elements::Listing& listing) {
    warn_if_degraded(session_);
    if (options_.as_object) object_.end();
    if (is_missing(listing)) return missing_name();
    if (listing.missing() > 0)
      session_.output().warning(
          std::to_string(listing.missing()) + " of " + std::to_string(listing.names) + " listed " +
          options_.element + "s no longer exist, because they were removed, expired or evicted; see mcds-" +
          options_.structure + "(1), LOSS");
    if (listing.complete()) return ExitStatus::ok;
    if (options_.partial) {
      session_.output().flush();
      session_.output().incomplete(missing(listing), missing_words(listing));
      return ExitStatus::problem;
    }
    if (session_.output().mode() == OutputMode::value || options_.as_object) {
      session_.output().warning(loss_message(options_, listing));
    } else {
      JsonObject answer = start_answer(options_);
      add_losses(answer, listing);
      session_.output().answer(answer, {});
    }
    return ExitStatus::problem;
  }

 private:
  // Reports a missing name on stderr, because a reader treats every line of the answer as an element.
  ExitStatus missing_name() const {
    JsonObject answer = start_answer(options_);
    session_.output().incomplete(
        add_degraded(answer.boolean("found", false), session_),
        "no " + std::string(options_.structure) + " named " + options_.name + " exists");
    return as_missing(options_);
  }
  // Returns what is missing in a partial fetch.
  JsonObject missing(const Elements::Listing& listing) const {
    JsonObject answer = JsonObject().boolean("complete", false).bytes(options_.structure, options_.name);
    answer.number("printed", listing.present).strings("lost", listing.lost);
    std::vector<JsonObject> unreachable;
    for (const Failure& failure : listing.unreachable)
      unreachable.emplace_back("server", failure.server()).bytes("message", failure.what());
    return answer.objects("unreachable", unreachable)
        .number("unknown", listing.unknown)
        .number("unread_index_parts", listing.unread_shards);
  }
  std::string missing_words(const Elements::Listing& listing) const {
    std::string text = "incomplete: ";
    for (const Failure& failure : listing.unreachable)
      text += "no answer from " + failure.server() + " (" + failure.what() + "); ";
    if (!listing.lost.empty()) text += loss_message(options_, listing) + "; ";
    return text + std::to_string(listing.unknown) + " listed " + options_.element + "s and " +
           std::to_string(listing.unread_shards) + " of " + std::to_string(index_shards) +
           " parts of the index could not be read";
  }

  Session& session_;
  const ElementsOptions& options_;
  bool values_;
  ElementLine line_;
  ObjectAnswer object_;
  std::optional<Progress> progress_;
};

template <bool values>
ExitStatus fetch(Session& session, const ElementsOptions& options) {
  const Elements elements = elements_of(session, options);
  Printer printer(session, options, values);
  session.output().buffered(true);
  const auto listing =
      elements.fetch([&](const Elements::Found& found) { printer.print(found); }, options.partial);
  return printer.end(listing);
}

}  // namespace

Context context_for_setting(Session& session, const ElementsOptions& options) {
  if (!options.ttl) return session.context_with_copies();
  if (*options.ttl <= Duration::zero())
    throw InvalidInput(std::string("--ttl must be longer than 0; omit it for a ") + options.element +
                       " that does not expire");
  return context_with_one_copy(session, "--ttl", std::string("a ") + options.element + " with a ttl");
}

void answer_setting(Session& session, JsonObject& answer, const ElementsOptions& options,
                    const ElementResult& result) {
  answer.fields({session.server_field(result.server)});
  if (options.ttl) add_seconds(answer, "ttl_s", *options.ttl);
  add_lost(answer, session);
  answer_from(session, answer, {{}, result.copies, "", options.ttl.has_value()}, result.yes ? "1" : "0");
}

std::vector<std::string> names_of(std::span<const Element> elements) {
  std::vector<std::string> names;
  for (const Element& element : elements) names.push_back(element.name);
  return names;
}

Element checked(Element element) {
  check_element(element);
  return element;
}

Element bare_element(std::string name) {
  return checked({std::move(name), {}});
}

Batch<Element> element_batch(Session& session, AskElements ask, AnswerElement answer) {
  Batch<Element> batch;
  batch.parse = bare_element;
  batch.begin = [ask = std::move(ask), answer = std::move(answer)](const Window<Element>& window) -> Answers {
    return [&window, &answer, results = ask(window.items)] { answer_each(window, results(), answer); };
  };
  batch.ahead = 2;
  // Windows have as many requests for any copy count: more would evict their state from the CPU cache.
  batch.max_items_later = 2048 / session.copies();
  // If all of the first elements are new, later ones are added without being read first.
  batch.max_items_first = 64;
  batch.max_bytes = std::size_t{2} << 20;
  batch.bytes_of = [](const Element& element) { return element.name.size() + element.value.size(); };
  return batch;
}

ExitStatus run_elements(Session& session, const Batch<Element>& batch, std::vector<Element> elements) {
  const std::vector<std::string> names = names_of(elements);
  return batch.of_words(session, std::move(elements), names);
}

ExitStatus run_words(Session& session, const ElementsOptions& options, const Batch<Element>& batch) {
  if (options.words == std::vector<std::string>{"-"}) return batch.of_lines(session, {}).worst;
  std::vector<Element> elements;
  for (const std::string& word : options.words) {
    if (word == "-") throw InvalidInput("- reads all elements from standard input; give no other elements");
    elements.push_back(*batch.parse(value_of(word)));
  }
  return run_elements(session, batch, std::move(elements));
}

Verb& declare_verb(Command& command, const ElementsOptionsPtr& options, const char* verb,
                   const std::string& summary, ElementsAction run) {
  const std::string structure = options->structure;
  Verb& declared = command.verb(verb, summary);
  declared.argument("NAME", "the " + structure, &options->name).action(run, options);
  // The `hash` of where is that of a key.
  if (std::string_view(verb) != "where") declared.field(structure + " bytes the " + structure);
  return declared;
}

void declare_ttl(Verb& verb, const ElementsOptionsPtr& options) {
  verb.option("--ttl", "D",
              std::string("let the ") + options->element +
                  "s expire after D, by their server's clock; without it they do not expire, even if they "
                  "did before; for one copy",
              &options->ttl);
}

Verb& declare_fetch(Command& command, const ElementsOptionsPtr& options, const char* verb,
                    const char* summary, bool values) {
  const std::string structure = options->structure;
  return declare_verb(command, options, verb, summary, values ? fetch<true> : fetch<false>)
      .answer(structure + ' ' + options->element + (values ? " value server degraded?" : " server degraded?"))
      .answer(structure + " complete lost")
      .field("complete boolean false: a part of the index was lost")
      .flag("--partial",
            "if servers do not answer, print the elements of the others, count the missing ones on standard "
            "error, and exit with 2",
            options->partial)
      .flag("--must-exist", "exit with 1 if there is no such " + structure, options->must_exist);
}

void declare_shared_verbs(Command& command, const ElementsOptionsPtr& options) {
  const std::string structure = options->structure;
  const std::string element = options->element;
  const auto declare = [&](const char* name, const std::string& summary, ElementsAction run) -> Verb& {
    return declare_verb(command, options, name, summary, run);
  };
  std::string words = element;
  for (char& letter : words) letter = static_cast<char>(letter - 'a' + 'A');
  const std::string name = structure == "table" ? "blocked" : "cfg";

  declare("remove", "remove " + element + "s", remove)
      .answer(structure + ' ' + element + " removed server @copies")
      .example("mcds " + structure + " remove " + name + " old")
      .argument(words, "any bytes; - reads one per line", dash(&options->words));
  declare("count", "print the number of " + element + "s", count)
      .example("mcds " + structure + " count " + name)
      .answer(structure + " found? count listed missing complete? lost? degraded?")
      .field("complete boolean false: a part of the index was lost")
      .flag("--must-exist", "exit with 1 if there is no such " + structure, options->must_exist);
  declare("check", "print whether the index is complete, and its size", check)
      .example("mcds " + structure + " check " + name)
      .answer(structure +
              " complete lost? count listed missing lines shards healed? copies_whole? divergent? degraded?")
      .field("complete boolean whether the index of at least one copy is whole")
      .flag("--accept", "first declare the rest of a damaged index to be complete; see LOSS in mcds-table(1)",
            options->accept);
  declare("drop", "end the " + structure + ": nothing of it remains on the servers", drop)
      .example("mcds " + structure + " drop " + name)
      .answer(structure + " @dropped");
  declare("where", "print the keys of " + element + "s and of the index, and their servers", where)
      .example("mcds " + structure + " where " + name)
      .answer("@where")
      .optional_argument(words, element + "s whose keys to show", &options->words);
}

}  // namespace mcds
