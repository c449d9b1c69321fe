#include "tools/cli/parse.hpp"

// CLI11 includes <iostream> for functions that are not called here, which would make every start build the
// locales of the standard streams. So the streams are only declared.
#include <istream>
#include <ostream>
#ifdef __GLIBCXX__
#define _GLIBCXX_IOSTREAM 1
namespace std {
extern istream cin;
extern ostream cout, cerr;
}  // namespace std
#endif

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "common/base/bytes.hpp"
#include "common/base/text.hpp"
#include "common/base/units.hpp"
#include "tools/cli/fields.hpp"

namespace mcds {

namespace {

using Words = std::vector<std::string>;

std::string quoted(const std::string& word) {
  return is_utf8(word) ? in_quotes(word) : "bytes that are not UTF-8";
}

std::uint64_t parsed_number(const std::string& text, const std::string& what) {
  if (const auto value = parse_u64(text)) return *value;
  throw InvalidInput(what + ": " + quoted(text) + " is not a whole number from 0 to 18446744073709551615");
}

struct Assign {
  const Words& words;
  const std::string& what;
  const std::string& last() const { return words.back(); }

  void operator()(bool*) const {}
  void operator()(std::string* target) const { *target = last(); }
  void operator()(std::optional<std::string>* target) const { *target = last(); }
  void operator()(Words* target) const { *target = words; }
  void operator()(Duration* target) const { *target = parse_duration(last(), what); }
  void operator()(std::optional<Duration>* target) const { *target = parse_duration(last(), what); }
  void operator()(std::uint64_t* target) const { *target = parsed_number(last(), what); }
  void operator()(std::optional<std::uint64_t>* target) const { *target = parsed_number(last(), what); }
};

void check_choice(const OptionSpec& option, const std::string& word) {
  const Words choices = option.choices();
  if (choices.empty() || std::ranges::find(choices, word) != choices.end()) return;
  throw InvalidInput(option.long_name() + ": " + quoted(word) + " is not one of " +
                     std::string(option.value) + did_you_mean(word, choices));
}

// Marks a word behind `--` at its start, so that CLI11 takes none of them for an option.
constexpr char behind_dashes = '\0';
std::string plain(const std::string& word) {
  return word.substr(word.starts_with(behind_dashes) ? 1 : 0);
}

void check_dash(bool takes_dash, const Words& words, const std::string& what) {
  if (takes_dash || std::ranges::find(words, "-") == words.end()) return;
  throw InvalidInput(what +
                     ": - means standard input, which this argument does not accept; give a name or value");
}

// Turns `--name=` into an empty value; CLI11 would use the next word as the value.
Words with_empty_values(const Words& words) {
  Words spelled_out;
  for (const std::string& word : words) {
    const bool empty = word.starts_with("--") && word.find('=') == word.size() - 1;
    spelled_out.push_back(empty ? word.substr(0, word.size() - 1) : word);
    if (empty) spelled_out.emplace_back();
  }
  return spelled_out;
}

// Returns true if a word is an option's name, or contains its letter as in `-qv`. A value may look the same.
bool may_name(const std::string& word, const OptionSpec& option) {
  if (word.size() < 2 || word[0] != '-') return false;
  if (word[1] == '-') return option.is_called(std::string_view(word).substr(0, word.find('=')));
  return std::any_of(word.begin() + 1, word.end(), [&](char letter) {
    return option.is_called(std::string{'-', letter});
  });
}

bool takes_value(const std::vector<OptionSpec>& options, const std::string& word) {
  return std::ranges::any_of(
      options, [&](const OptionSpec& option) { return !option.value.empty() && option.is_called(word); });
}

// Takes the first word that is neither an option nor an option's value out of `words`, if there is one.
std::optional<std::string> take_word(Words& words, const std::vector<OptionSpec>& options) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].size() > 1 && words[i][0] == '-') {
      if (takes_value(options, words[i])) ++i;
      continue;
    }
    std::string word = words[i];
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
    return word;
  }
  return std::nullopt;
}

bool take_flag(Words& words, std::string_view short_name, std::string_view long_name) {
  return std::erase_if(words, [&](const auto& word) { return word == short_name || word == long_name; }) > 0;
}

[[noreturn]] void refuse_unknown_option(const std::string& word, const std::vector<OptionSpec>& options,
                                        const std::string& help_of) {
  const std::string name = word.substr(0, word.find('='));
  Words known;  // a one-letter name is similar to every letter
  for (std::size_t i = 0; i < options.size() && name.size() > 2; ++i) {
    for (const std::string_view one : split(options[i].names, ',')) known.emplace_back(one);
  }
  throw InvalidInput(
      "unknown option " + quoted(name) +
      did_you_mean(name, known, "; see " + help_of + ", or put -- before a value that starts with a dash"));
}

// Returns true if `word` can be a value of this option and is hardly meant as another name.
bool may_take(const OptionSpec& option, const std::string& word) {
  if (option.chosen) return !attempt([&] { check_choice(option, word); }).failure();
  if (parse_u64(word)) return option.value == "N";
  if (option.value == "D") return !attempt([&] { parse_duration(word, ""); }).failure();
  if (option.names == "--token" || option.value == "VISITOR") return true;
  return option.value == "T" && !attempt([&] { parse_time(word, {}, ""); }).failure();
}

[[noreturn]] void refuse_surplus(const std::string& word, const CLI::App& app,
                                 const std::vector<OptionSpec>& options, const std::string& help_of) {
  const auto meant = std::ranges::find_if(options, [&](const OptionSpec& option) {
    const CLI::Option* given = app.get_option_no_throw(option.long_name());
    return may_take(option, word) && (given == nullptr || given->count() == 0);
  });
  const std::string shown = is_visible(word) && word.find(' ') == std::string::npos ? word : quoted(word);
  const std::string hint =
      meant == options.end() ? "" : "did you mean " + meant->long_name() + ' ' + shown + "? ";
  throw InvalidInput("too many arguments: " + quoted(word) + "; " + hint + "see " + help_of);
}

void declare(CLI::App& app, const OptionSpec& option) {
  if (option.value.empty()) {
    app.add_flag(std::string(option.names), *std::get<bool*>(option.target));
    return;
  }
  CLI::Option* added = app.add_option(std::string(option.names), [&app, &option](const Words&) {
    const std::string name = option.long_name();
    // As written: CLI11 2.4 reads {} as an empty list.
    const Words given = app.get_option(name)->results();
    if (given.back().starts_with(behind_dashes)) throw CLI::ArgumentMismatch::TypedAtLeast(name, 1, "");
    check_dash(option.takes_dash, given, name);
    for (const std::string& word : given) check_choice(option, word);
    std::visit(Assign{given, name}, option.target);
    return true;
  });
  added->allow_extra_args(false);
  if (std::holds_alternative<Words*>(option.target)) added->take_all();
}

// The usual constructor would make an option for help first.
struct BareApp : CLI::App {
  BareApp() : CLI::App("", "", nullptr) { allow_extras(); }
};

// Parses the options that are given, and the arguments of the verb, into their targets. CLI11 would take a
// list apart at its commas, so a list, which is the last argument, gets the words that are left.
void parse_words(Words words, const Words& tail, const Verb& verb, const std::vector<OptionSpec>& globals,
                 const std::string& help_of) {
  // Building all options costs more than the rest of a cold start, and most command lines have none or two.
  const auto is_absent = [&](const OptionSpec& option) {
    return std::ranges::none_of(words, [&](const auto& word) { return may_name(word, option); });
  };
  std::vector<OptionSpec> options = globals;
  std::erase_if(options, is_absent);
  options = options_with(verb, std::move(options));
  std::erase_if(options, is_absent);
  BareApp app;
  for (const OptionSpec& option : options) declare(app, option);
  std::vector<std::pair<const ArgumentSpec*, CLI::Option*>> arguments;
  // By numbers, because CLI11 2.4 refuses names such as `FIELD VALUE`.
  for (const ArgumentSpec& argument : verb.arguments())
    arguments.emplace_back(
        &argument, app.add_option("word" + std::to_string(arguments.size()))->required(argument.required));
  const auto refuse_others = [&](const Words& others) {
    for (const std::string& word : others) {
      if (word.size() > 1 && word[0] == '-')
        refuse_unknown_option(word, options_with(verb, globals), help_of);
    }
  };
  const auto check = [&] {
    for (const auto& [argument, given] : arguments) refuse_others(given->results());
    refuse_others(app.remaining());
    if (verb.child_required() && verb.child_target()->empty())
      throw InvalidInput("no command to run; give it after --, see " + help_of);
  };
  words = with_empty_values(words);
  for (const std::string& word : tail) words.push_back(behind_dashes + word);
  std::ranges::reverse(words);
  try {
    app.parse(std::move(words));
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string message = error.what(), name = message.substr(0, message.find(':'));
    const bool twice = app.get_option(name)->count() > 1;
    throw InvalidInput(name + (twice ? " is given twice; give it once" : " needs a value; see " + help_of));
  } catch (const CLI::RequiredError&) {
    check();
    const auto missing = std::ranges::find_if(
        arguments, [](const auto& one) { return one.first->required && one.second->empty(); });
    const CLI::Option* const null = app.get_option_no_throw("--null");
    throw InvalidInput(
        "no " + std::string(missing->first->name) + " given; see " + help_of +
        (null != nullptr && null->count() > 0 ? ", or put -- before -0 if it is a value" : ""));
  } catch (const CLI::ParseError& error) {
    throw InvalidInput(std::string(error.what()) + "; see " + help_of);
  }
  check();
  Words rest = app.remaining();
  for (const auto& [argument, given] : arguments) {
    Words taken = given->results();
    if (std::holds_alternative<Words*>(argument->target))
      std::ranges::move(std::exchange(rest, {}), std::back_inserter(taken));
    if (taken.empty()) break;
    std::ranges::transform(taken, taken.begin(), plain);
    const std::string name(argument->name);
    check_dash(argument->takes_dash, taken, name);
    std::visit(Assign{taken, name}, argument->target);
  }
  if (!rest.empty()) refuse_surplus(plain(rest.front()), app, verb.options(), help_of);
}

// Expands -n before the command to the namespace, whatever -n means to the verb that follows.
void spell_out_leading(Words& words, const std::vector<OptionSpec>& globals) {
  for (std::size_t i = 0; i < words.size() && words[i].size() > 1 && words[i][0] == '-'; ++i) {
    const bool with_value = takes_value(globals, words[i]);
    for (const OptionSpec& option : globals) {
      if (option.names.starts_with(words[i] + ',')) words[i] = option.long_name();
    }
    if (with_value) ++i;
  }
}

// Sets the output mode early, so that even a parse error is printed in the requested mode.
void note_output_mode(const Words& words, GlobalOptions& globals) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string mode;
    if ((words[i] == "-o" || words[i] == "--output") && i + 1 < words.size()) mode = words[i + 1];
    if (words[i].starts_with("--output=")) mode = words[i].substr(9);
    if (mode == "value" || mode == "text") globals.output = mode;
  }
}

std::unique_ptr<Command> find_command(const std::string& name, std::optional<std::string_view> only) {
  if (auto command = declared(name, only)) return command;
  Words names;
  for (const CommandEntry& entry : all_commands()) names.emplace_back(entry.name);
  const std::string_view ours = commands_for(name);
  if (!ours.empty()) throw InvalidInput("no command " + quoted(name) + "; try " + std::string(ours));
  throw InvalidInput("no command " + quoted(name) + did_you_mean(name, names, "; mcds --help lists them"));
}

const Verb& find_verb(const Command& command, Words& words, const std::vector<OptionSpec>& globals) {
  const Verb* itself = command.find("");
  if (itself != nullptr && command.verbs().size() == 1) return *itself;
  Words attempt = words;
  const auto word = take_word(attempt, globals);
  const Verb* verb = word ? command.find(*word) : nullptr;
  if (verb != nullptr && !word->empty()) {
    words = attempt;
    return *verb;
  }
  if (itself != nullptr) {
    attempt = words;
    const bool takes_words = !itself->arguments().empty();
    if (takes_words || !take_word(attempt, options_with(*itself, globals))) return *itself;
  }
  Words names;
  for (const auto& known : command.verbs()) {
    if (!known->name().empty()) names.push_back(known->name());
  }
  const std::string list = joined(names, ", ");
  const std::string instead = verb_for(*declared(command.name()), *word);
  throw InvalidInput("mcds " + command.name() + " has no verb " + quoted(*word) +
                     (instead.empty() ? did_you_mean(*word, names, "; it has " + list) : "; " + instead));
}

}  // namespace

std::vector<OptionSpec> global_options(GlobalOptions& into) {
  Verb all("", "");
  all.option("-s,--servers", "LIST",
             "HOST[:PORT][/?WEIGHT],… · [v6]:port · tls://HOST:PORT · unix:/path · NAME=HOST:PORT",
             &into.servers)
      .option("--servers-from", "SOURCE",
              "nutcracker:FILE#POOL mcrouter:FILE#POOL php-ini:FILE#POOL django:FILE#CACHE oslo:FILE#SECTION "
              "json:FILE#POINTER libketama:FILE file:LIST dns:[tls://]HOST dnssrv:[tls://]NAME "
              "elasticache:[tls://]HOST:PORT dsn:VARIABLE "
              "dalli:VARIABLE env:NAME libmemcached:STRING libmemcached:@FILE",
              &into.servers_from)
      .option("-P,--pool", "NAME", "use this pool of the configuration file", &into.pool)
      .option("--as", "PROFILE", "place keys as this client does; default ketama", &into.profile)
      .option("-n,--namespace", "PREFIX", "a prefix for every key, hashed with it", &into.key_prefix)
      .option("--copies", "N", "keep each key on N distinct servers; default 1", &into.copies)
      .option("--timeout", "D", "longest time to wait for one reply; default 1s", &into.timeout)
      .option("--connect-timeout", "D", "longest time to wait for one connection; default 500ms",
              &into.connect_timeout)
      .option("--deadline", "D",
              "longest time for the whole command, except for a child command; then exit 75", &into.deadline)
      .choice("--protocol", "auto|classic|meta|binary", "the protocol to use; default auto", &into.protocol)
      .flag("--tls", "use TLS for every server, as tls://HOST:PORT does for one", into.tls)
      .option("--tls-ca", "FILE", "the CA of the servers' certificates; default: the CAs of the system",
              &into.tls_ca)
      .option("--tls-crl", "FILE", "revocation lists, one of each CA: a revoked certificate is not accepted",
              &into.tls_crl)
      .option("--tls-name", "NAME", "the name in the servers' certificates; default: each server's host",
              &into.tls_name)
      .option("--tls-cert", "FILE", "the client certificate to present", &into.tls_cert)
      .option("--tls-key", "FILE", "its key; default: read from the certificate's file", &into.tls_key)
      .option("--tls-key-password-file", "FILE", "the file that contains the password of an encrypted key",
              &into.tls_key_password_file)
      .flag("--tls-insecure", "do not verify certificates", into.tls_insecure)
      .option("--user", "NAME", "log in as this user", &into.user)
      .option("--password-file", "FILE", "the file that contains the password", &into.password_file)
      .choice("--auth", "ascii|user-key|sasl",
              "the form of the login: memcached -Y, MemCachier, or memcached -S; default ascii", &into.auth)
      .choice("-o,--output", "json|value|text|openmetrics",
              "JSON lines, the bare answer, columns for people, or metrics (servers, doctor); default json",
              &into.output)
      .flag("-0,--null", "end the lines of input and output with a NUL, for names with line feeds", into.null)
      .flag("-q,--quiet", "print no answers; errors and exit codes are as ever", into.quiet)
      .flag("-v,--verbose", "print one line per round trip on standard error", into.verbose)
      .option("--errors", "FILE", "also write every failure to this file, one JSON object per line",
              &into.errors)
      .option("--config", "FILE", "read this instead of /etc/mcds.conf and $XDG_CONFIG_HOME/mcds/mcds.conf",
              &into.config);
  return all.options();
}

std::vector<OptionSpec> options_with(const Verb& verb, std::vector<OptionSpec> globals) {
  const auto is_taken = [&](std::string_view name) {
    return std::ranges::any_of(verb.options(), [&](const OptionSpec& own) { return own.is_called(name); });
  };
  std::erase_if(globals, [&](const OptionSpec& option) { return is_taken(option.long_name()); });
  for (OptionSpec& option : globals) {
    const std::size_t comma = option.names.find(',');
    if (comma != std::string::npos && is_taken(option.names.substr(0, comma)))
      option.names.remove_prefix(comma + 1);
  }
  globals.insert(globals.begin(), verb.options().begin(), verb.options().end());
  return globals;
}

std::unique_ptr<Command> declared(std::string_view name, std::optional<std::string_view> only) {
  for (const CommandEntry& entry : all_commands()) {
    if (name != entry.name) continue;
    auto command = std::make_unique<Command>(entry.name, entry.summary, only);
    entry.declare(*command);
    return command;
  }
  return nullptr;
}

void parse(const std::vector<std::string>& arguments, Invocation& invocation) {
  const auto dashes = std::ranges::find(arguments, "--");
  Words words(arguments.begin(), dashes);
  Words tail(dashes == arguments.end() ? dashes : dashes + 1, arguments.end());
  std::vector<OptionSpec> globals = global_options(invocation.globals);
  note_output_mode(words, invocation.globals);
  const bool schema = take_flag(words, "--schema", "--schema");
  bool help = take_flag(words, "-h", "--help") || schema;
  if (!help && take_flag(words, "-V", "--version")) {
    invocation.text = version_text();
    return;
  }
  spell_out_leading(words, globals);
  auto name = take_word(words, globals);
  if (name == "help") {
    help = true;
    name = take_word(words, globals);
  }
  if (!name) {
    parse_words(words, {}, Verb("", ""), globals, "mcds --help");
    if (schema) throw InvalidInput("no command given; mcds --help lists them");
    invocation.text = program_help();
    invocation.lacks_words = !help;
    return;
  }
  Words rest = words;
  const auto next = take_word(rest, globals);
  const bool whole = help || next == "help" || !next;
  invocation.command = find_command(*name, whole ? std::nullopt : std::optional<std::string_view>(*next));
  const Verb* itself = invocation.command->find("");
  // If the command's words are names, `help` is one of them.
  const bool asks = next == "help" && rest.empty() && (itself == nullptr || itself->arguments().empty());
  invocation.lacks_words = !help && !next && itself == nullptr;
  if (asks || (help && !next) || invocation.lacks_words) {
    invocation.text = schema ? command_schema(*invocation.command) : command_help(*invocation.command);
    return;
  }
  invocation.verb = &find_verb(*invocation.command, words, globals);
  if (help) {
    invocation.text = schema ? schema_of(*invocation.command, *invocation.verb).text() + '\n'
                             : verb_help(*invocation.command, *invocation.verb);
    return;
  }
  const Verb& verb = *invocation.verb;
  if (verb.child_target() != nullptr) *verb.child_target() = std::exchange(tail, {});
  parse_words(
      words, tail, verb, globals,
      "mcds " + invocation.command->name() + (verb.name().empty() ? "" : " " + verb.name()) + " --help");
}

}  // namespace mcds
