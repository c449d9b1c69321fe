// mcds cache: parsing and printing; the algorithm is in common/structures/cache/cache.hpp, `run` in
// cache_run.cpp.
#include "common/structures/cache/cache.hpp"

#include <memory>

#include "tools/cli/copy_list.hpp"
#include "tools/cli/program.hpp"
#include "tools/cli/where_keys.hpp"
#include "tools/commands/cache/key.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

namespace {

JsonObject answer_for(const std::string& name) {
  JsonObject answer;
  answer.bytes("cache", name);
  return answer;
}

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

ExitStatus show(Session& session, const CacheOptions& options) {
  const std::string name = cache_key(options).name;
  Cache cache(session.context_with_copies(), name);
  const Cache::Shown shown = cache.show();
  JsonObject line = answer_for(name);
  line.boolean("found", shown.record.has_value());
  if (shown.record) add_record(line, shown, session.clock().wall());
  if (shown.ttl && shown.record && shown.ttl->count() >= 0)
    line.number("ttl_s", static_cast<std::uint64_t>(shown.ttl->count()));
  line.boolean("rebuilding", shown.rebuilding);
  if (!shown.holder.empty()) line.raw("holder", shown.holder);
  line.bytes("server", session.server_address(cache.server()));
  add_copies(line, session, shown.copies, "found");
  session.output().answer_bytes(line, shown.record ? shown.record->out : std::string());
  return shown.record ? ExitStatus::ok : ExitStatus::no;
}

// The two ways to invalidate: `done` is the name of the field.
ExitStatus invalidate(Session& session, const CacheOptions& options, const char* done,
                      Cache::Invalidation (Cache::*act)()) {
  const std::string name = cache_key(options).name;
  Cache cache(session.context_with_copies(), name);
  const Cache::Invalidation result = (cache.*act)();
  JsonObject line = answer_for(name);
  line.boolean(done, result.found).bytes("server", session.server_address(cache.server()));
  add_copies(line, session, result.copies, done);
  session.output().answer(line, result.found ? "1" : "0");
  if (result.failure) {
    session.output().error(*result.failure);
    return status_of(result.failure->code());
  }
  return result.found ? ExitStatus::ok : ExitStatus::no;
}

ExitStatus expire_tags(Session& session, const CacheOptions& options) {
  if (options.key_argument || options.key_option || options.key_from || !options.command.empty())
    throw InvalidInput("give either an entry or --tag");
  const CacheTags tags(session.context_with_copies(), distinct_tags(options));
  const std::vector<CacheTags::Expired> expired = tags.expire();
  ExitStatus worst = ExitStatus::ok;
  for (std::size_t i = 0; i < expired.size(); ++i) {
    const CacheTags::Expired& one = expired[i];
    if (one.failure) {
      session.output().error_of(tags.names()[i], tags.names(), *one.failure);
      worst = worse(worst, status_of(one.failure->code()));
      continue;
    }
    JsonObject line;
    line.bytes("tag", tags.names()[i]).boolean("expired", one.found);
    line.bytes("server", session.server_address(one.server));
    add_copies(line, session, one.copies);
    session.output().answer(line, one.found ? "1" : "0");
    worst = worse(worst, one.found ? ExitStatus::ok : ExitStatus::no);
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
  return print_where(session, Cache(session.context_with_copies(), cache_key(options).name).keys());
}

using Run = ExitStatus (*)(Session&, const CacheOptions&);

// Every verb names its entry in the same ways.
std::shared_ptr<CacheOptions> declare_entry(Verb& verb, bool command_required, Run run) {
  auto options = std::make_shared<CacheOptions>();
  verb.optional_argument("KEY", "the entry; default: made from the command line", &options->key_argument)
      .option("--key", "K", "the same as KEY", &options->key_option)
      .option("--key-from", "LIST",
              "what the output depends on, digested into the key: args, cwd, stdin, env:NAME, file:PATH; "
              "default without KEY: args",
              &options->key_from)
      .child(options->command, command_required)
      .action([options, run](Session& session) { return run(session, *options); });
  return options;
}

void declare_run(Command& command) {
  Verb& verb = command.verb("run", "replay the output of a command, or run it if the output is too old");
  verb.answer("cache replayed made_at exit_code server @copies")
      .answer("cache busy holder? server @copies")
      .answer("cache stored reason? @result server @copies")
      .example("mcds cache run report --ttl 5m -- ./make-report")
      .example("mcds cache run --ttl 1m --key-from args,env:LANG -- ./query \"$1\"")
      .example("mcds cache run sales --tag orders --tag customers -- ./report")
      .example("mcds cache run prices --refresh -- curl -fsS https://shop.example/prices");
  const auto options = declare_entry(verb, true, run_cached);
  verb.option("--ttl", "D", "how long the output is fresh; default 60s", &options->ttl)
      .option("--stale", "D", "how much longer it is replayed while another caller rebuilds it; default 10m",
              &options->stale)
      .option("-w,--wait", "D", "how long to wait for another caller's rebuild, or inf; default 3s",
              &options->wait)
      .option("--rebuild-ttl", "D",
              "consider a caller dead that has not renewed its rebuild lock for this long; default 30s",
              &options->rebuild_ttl)
      .choice("--on-busy", "stale|wait|run|fail",
              "while another caller rebuilds: wait and then replay stale output (stale), exit 75 (wait) or "
              "run the command (run); or do not wait (fail)",
              &options->on_busy)
      .flag("--refresh", "run the command even if its output is fresh; replay nothing", options->refresh)
      .option("--cache-codes", "LIST", "exit codes whose output is stored, such as 0,3-5; default 0",
              &options->cache_codes)
      .option("--max-bytes", "SIZE", "do not store output larger than this; default 1M", &options->max_bytes)
      .option("--tag", "T",
              "what the output depends on: `cache expire --tag T` makes it stale; may be repeated",
              &options->tags)
      .choice("--if-down", "run|fail",
              "when no server answers: run the command without the cache, or fail; default run",
              &options->if_down)
      .option("--report", "FILE", "write the result to this file as JSON", &options->report);
}

void declare_others(Command& command) {
  Verb& show_verb = command.verb("show", "print the age of an entry; exit 1 if there is none");
  show_verb
      .answer(
          "cache found fresh made_at expired? fresh_until_at? stale_until_at exit_code stdout_bytes "
          "stderr_bytes tags? expired_tags? ttl_s? rebuilding holder? server @copies")
      .answer("cache found rebuilding holder? server @copies")
      .example("mcds cache show report")
      .example("mcds cache show report -o value")
      .example("mcds cache show -- ./query shoes");
  declare_entry(show_verb, false, show);
  Verb& expire_verb = command.verb("expire", "make the output stale, so that the next run rebuilds it");
  expire_verb.answer("cache expired server @copies")
      .answer("tag expired server @copies")
      .example("mcds cache expire report")
      .example("mcds cache expire --tag orders --tag customers");
  const auto expiring = declare_entry(expire_verb, false, expire);
  expire_verb.option("--tag", "T", "instead of an entry: all entries that have this tag; may be repeated",
                     &expiring->tags);
  Verb& remove_verb = command.verb("remove", "remove the output");
  remove_verb.answer("cache removed server @copies").example("mcds cache remove report");
  declare_entry(remove_verb, false, remove);
  Verb& where_verb = command.verb("where", "print the keys and servers of an entry and its rebuild lock");
  where_verb.answer("@where").example("mcds cache where report");
  declare_entry(where_verb, false, where);
}

}  // namespace

void declare_cache(Command& command) {
  declare_run(command);
  declare_others(command);
}

}  // namespace mcds
