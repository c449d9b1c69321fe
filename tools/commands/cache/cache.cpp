// Implements mcds cache: parsing and printing; the algorithm is in cache.hpp, `run` in run.cpp.

#include <unistd.h>

#include <array>
#include <cctype>
#include <climits>
#include <cstdlib>

#include "tools/commands/cache/options.hpp"

namespace mcds {

namespace {

void add_record(JsonObject& line, const Cache::Shown& shown, WallTime now) {
  const CacheRecord& record = *shown.record;
  line.boolean("fresh", record.fresh(now) && shown.expired_tags.empty()).time("made_at", record.made_at);
  if (record.expired_by_hand())
    line.boolean("expired", true);
  else
    line.time("fresh_until_at", record.fresh_until);
  line.time("stale_until_at", record.stale_until);
  line.number("exit_code", static_cast<std::uint64_t>(record.exit_code));
  line.number("stdout_bytes", record.out.size()).number("stderr_bytes", record.err.size());
  std::vector<std::string> tags;
  for (const CacheTag& tag : record.tags) tags.push_back(tag.name);
  if (!tags.empty()) line.strings("tags", tags);
  if (!shown.expired_tags.empty()) line.strings("expired_tags", shown.expired_tags);
}

Context context_of(Session& session) {
  return context_with_one_copy(session, "--copies", "a cache entry");
}

ExitStatus show(Session& session, const CacheOptions& options) {
  const std::string name = cache_key(options).name;
  Cache cache(context_of(session), name);
  const Cache::Shown shown = cache.show();
  JsonObject line("cache", name);
  line.boolean("found", shown.record.has_value());
  if (shown.record) add_record(line, shown, session.clock().wall());
  if (shown.ttl && shown.record && shown.ttl->count() >= 0)
    line.number("ttl_s", static_cast<std::uint64_t>(shown.ttl->count()));
  line.boolean("rebuilding", shown.rebuilding);
  if (!shown.holder.empty()) line.raw("holder", shown.holder);
  line.bytes("server", session.server_address(cache.server()));
  session.output().answer_bytes(line, shown.record ? shown.record->out : std::string());
  return shown.record ? ExitStatus::ok : ExitStatus::no;
}

// Invalidates the entry in one of two ways. `done` is the name of the answer's field.
ExitStatus invalidate(Session& session, const CacheOptions& options, const char* done, bool (Cache::*act)()) {
  const std::string name = cache_key(options).name;
  Cache cache(context_of(session), name);
  const bool found = (cache.*act)();
  JsonObject line("cache", name);
  return answer_yes(session, line.boolean(done, found), found, {cache.server()});
}

ExitStatus expire_tags(Session& session, const CacheOptions& options) {
  if (options.key || options.key_from || !options.command.empty())
    throw InvalidInput("an entry and --tag cannot be combined");
  const CacheTags tags(context_of(session), distinct_tags(options));
  const std::vector<CacheTags::Expired> expired = tags.expire();
  ExitStatus worst = ExitStatus::ok;
  for (std::size_t i = 0; i < expired.size(); ++i) {
    const CacheTags::Expired& one = expired[i];
    if (one.failure) {
      session.output().error_of(tags.names()[i], tags.names(), *one.failure);
      worst = worse(worst, status_of(one.failure->code()));
      continue;
    }
    JsonObject line("tag", tags.names()[i]);
    line.boolean("expired", one.found);
    worst = worse(worst, answer_yes(session, line, one.found, {one.server}));
  }
  return worst;
}

ExitStatus expire(Session& session, const CacheOptions& options) {
  if (!options.tags.empty()) return expire_tags(session, options);
  return invalidate(session, options, "expired", &Cache::expire);
}

ExitStatus remove(Session& session, const CacheOptions& options) {
  return invalidate(session, options, "removed", &Cache::remove);
}

ExitStatus where(Session& session, const CacheOptions& options) {
  return print_where(session, Cache(context_of(session), cache_key(options).name).keys(), 1);
}

// Declares how the verb names its entry, which is the same for every verb.
void with_entry(Verb& verb, const std::shared_ptr<CacheOptions>& options, bool command_required) {
  verb.optional_argument("KEY", "the entry; default: made from the command line", &options->key)
      .option("--key-from", "LIST",
              "what the output depends on, digested into the key: args, cwd, stdin, env:NAME, file:PATH; "
              "default without KEY: args",
              &options->key_from)
      .child(options->command, command_required);
}

void declare_run(Command& command, const std::shared_ptr<CacheOptions>& options) {
  command
      .verb("run", "replay the output of a command, or run it if the output is too old", run_cached, options)
      .with(with_entry, options, true)
      .answer("cache replayed made_at exit_code server")
      .answer("cache busy holder? server")
      .answer("cache stored reason? @result server")
      .field("holder {host pid user note? acquired_at ttl_s? finished_at? slots?} who rebuilds the entry")
      .field("stored boolean whether the output of the command was stored")
      .field(
          "reason string why not: exit_code, too_large, superseded (invalidated or rebuilt meanwhile), busy, "
          "refused, bad_data or down")
      .example("mcds cache run report --ttl 5m -- ./make-report")
      .example("mcds cache run --ttl 1m --key-from args,env:LANG -- ./query \"$1\"")
      .example("mcds cache run sales --tag orders --tag customers -- ./report")
      .example("mcds cache run prices --refresh -- curl -fsS https://shop.example/prices")
      .option("--ttl", "D", "how long the output is fresh, from the end of the command; default 60s",
              &options->terms.ttl)
      .option("--stale", "D",
              "how much longer it is replayed while another caller rebuilds it; default 10m; 0: not at all",
              &options->terms.stale)
      .option("-w,--wait", "D", "how long to wait for another caller's rebuild, or inf; default 3s",
              &options->wait)
      .option("--rebuild-ttl", "D",
              "consider a caller dead that has not renewed its rebuild lock for this long; default 30s, at "
              "least 4s",
              &options->terms.rebuild_ttl)
      .choice("--on-busy", "stale|wait|run|fail",
              "while another caller rebuilds: wait and then replay stale output (stale, the default), exit "
              "with 75 (wait) or run the command without storing its output (run); or exit with 75 at once "
              "(fail)",
              &options->on_busy)
      .flag("--refresh",
            "run the command even if its output is fresh; replay nothing; if another caller rebuilds, wait, "
            "then exit with 75",
            options->terms.refresh)
      .option("--cache-codes", "LIST", "exit codes whose output is stored, such as 0,3-5; default 0",
              &options->cache_codes)
      .option("--max-bytes", "SIZE",
              "do not store output, standard error included, larger than this; default and maximum: a little "
              "less than 1M",
              &options->max_bytes)
      .option("--tag", "T",
              "what the output depends on: `cache expire --tag T` makes it stale; may be repeated, up to 32 "
              "times",
              &options->tags)
      .choice("--if-down", "run|fail",
              "when the server does not answer or the key holds another program's data: run the command "
              "without the cache and warn, or fail; default run",
              &options->if_down)
      .option("--report", "FILE", "write the result to this file as JSON", &options->report);
}

}  // namespace

void declare_cache(Command& command) {
  command.exits(
      "1 there is no such entry|65 the key holds another program's data or a damaged entry|66 a file of "
      "--key-from cannot be read|69|71|73 the report cannot be written; a command that failed keeps its own "
      "code|75 another caller is rebuilding the entry and there is nothing to replay|76|80 the entry may or "
      "may not have been expired or removed|126|127");
  const auto options = std::make_shared<CacheOptions>();
  declare_run(command, options);
  command.verb("show", "print the age of an entry; exit 1 if there is none", show, options)
      .with(with_entry, options, false)
      .answer(
          "cache found fresh made_at expired? fresh_until_at? stale_until_at exit_code stdout_bytes "
          "stderr_bytes tags? expired_tags? ttl_s? rebuilding holder? server")
      .answer("cache found rebuilding holder? server")
      .field("holder {host pid user note? acquired_at ttl_s? finished_at? slots?} who rebuilds the entry")
      .field("expired boolean true: it was made stale by cache expire")
      .field("ttl_s number seconds until the server drops the entry")
      .example("mcds cache show report")
      .example("mcds cache show report -o value")
      .example("mcds cache show -- ./query shoes");
  command.verb("expire", "make the output stale, so that the next run rebuilds it", expire, options)
      .with(with_entry, options, false)
      .answer("cache expired server")
      .answer("tag expired server")
      .field("expired boolean whether there was such an entry or tag")
      .example("mcds cache expire report")
      .example("mcds cache expire --tag orders --tag customers")
      .option("--tag", "T", "instead of one entry, expire all that have this tag; may be repeated",
              &options->tags);
  command.verb("remove", "remove the output", remove, options)
      .with(with_entry, options, false)
      .answer("cache removed server")
      .field("removed boolean whether there was an entry")
      .example("mcds cache remove report");
  command.verb("where", "print the keys and servers of an entry and its rebuild lock", where, options)
      .with(with_entry, options, false)
      .answer("@where")
      .example("mcds cache where report");
}

namespace {

constexpr std::size_t max_command_part = 40;

// Appends a part's name, size and bytes, so that different lists of parts never have the same text.
void add_part(std::string& text, std::string_view name, std::string_view bytes) {
  text.append(name).append("=").append(std::to_string(bytes.size())).append(":").append(bytes).append("\n");
}

std::string working_directory() {
  std::array<char, PATH_MAX> path{};
  if (getcwd(path.data(), path.size()) == nullptr)
    throw refused_by_system(ErrorCode::cannot_read, "cannot determine the working directory");
  return path.data();
}

void add_environment(std::string& text, const std::string& part, const char* name) {
  const char* value = std::getenv(name);
  add_part(text, part + (value == nullptr ? " unset" : ""), value == nullptr ? "" : value);
}

std::string material(const CacheOptions& options, std::string_view list, std::optional<std::string>& input) {
  std::string text;
  const std::vector<std::string_view> words = split(list, ',');
  // Each part is used once, in a fixed order.
  for (const std::string& part : std::set<std::string>(words.begin(), words.end())) {
    if (part == "args") {
      if (options.command.empty()) throw InvalidInput("--key-from args: give the command after --");
      for (const std::string& word : options.command) add_part(text, "arg", word);
    } else if (part == "cwd") {
      add_part(text, part, working_directory());
    } else if (part == "stdin") {
      input = value_of("-");
      add_part(text, part, *input);
    } else if (part.starts_with("env:") && part.size() > 4) {
      add_environment(text, part, part.c_str() + 4);
    } else if (part.starts_with("file:") && part.size() > 5) {
      add_part(text, part, file_bytes(part.substr(5)));
    } else {
      throw InvalidInput("--key-from: '" + part + "' is not args, cwd, stdin, env:NAME or file:PATH");
    }
  }
  return text;
}

// Returns the plain characters of the program's name, which make the entry recognisable in a list of keys.
std::string command_part(const std::vector<std::string>& command) {
  std::string word = command.front().substr(command.front().rfind('/') + 1);
  std::erase_if(
      word, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '_'; });
  return word.substr(0, max_command_part);
}

}  // namespace

std::vector<std::string> distinct_tags(const CacheOptions& options) {
  std::vector<std::string> tags;
  for (const std::string& tag : options.tags) {
    if (std::ranges::find(tags, tag) == tags.end()) tags.push_back(tag);
  }
  return tags;
}

CacheKey cache_key(const CacheOptions& options) {
  const auto& given = options.key;
  if (given && !options.key_from) return {*given, {}};
  if (!given && options.command.empty())
    throw InvalidInput("give a KEY, or after -- the command whose entry it is");
  CacheKey key;
  const std::string digest = digest128(material(options, options.key_from.value_or("args"), key.input));
  key.name = given.value_or(options.command.empty() ? "" : command_part(options.command)) + '-' + digest;
  return key;
}

}  // namespace mcds
