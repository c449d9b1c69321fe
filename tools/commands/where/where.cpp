// Implements mcds where: locates a key for any client. Contacts servers only with --probe or --guess.
#include "common/placement/profiles/profile.hpp"
#include "tools/commands/where/options.hpp"

namespace mcds {

namespace {

// Implements --down: shows where the client looks for a key while servers are down.
using Down = std::vector<bool>;  // per server of the pool

Down down_of(const Pool& pool, const std::string& list) {
  Down down(pool.size());
  for (const std::string_view word : split(list, ','))
    down[server_named(pool, std::string(word), "--down")] = true;
  return down;
}

// Adds the server's address, in JSON also its index.
void add_then(Session& session, JsonObject& line, std::optional<std::size_t> then) {
  if (session.output().mode() == OutputMode::text)
    line.bytes("then", then ? session.server_address(*then) : "-");
  else if (then)
    line.object("then", JsonObject("server", session.server_address(*then)).number("index", *then));
  else
    line.raw("then", "null");
}

// Prints the place while servers are down. Returns false if the client then has no server for the key.
bool print_when_down(Session& session, const Placement& placement, const Down& down, const std::string& key) {
  const Placement::Place place = placement.place_of(key);
  const auto then = placement.server_of_when_down(key, down);
  JsonObject line = PlacedLines(session, placement).line(key, place);
  add_then(session, line.boolean("down", down[place.server]), then);
  session.output().answer(line, then ? session.server_address(*then) : "-");
  return then.has_value();
}

const char* word_of(Distribution distribution) {
  constexpr std::array words{"modulo",     "mask",       "ring",     "bucketed ring", "jump", "furc",
                             "rendezvous", "rendezvous", "election", "routes",        "asked"};
  static_assert(words.size() == static_cast<std::size_t>(Distribution::asked) + 1);
  return words[static_cast<std::size_t>(distribution)];
}

ExitStatus print_profiles(Session& session) {
  for (const Profile& profile : all_profiles()) {
    JsonObject line = JsonObject("profile", profile.name)
                          .bytes("client", profile.client->name)
                          .bytes("language", profile.client->language);
    line.bytes("versions", profile.client->versions).bytes("selected_by", profile.selected_by);
    line.bytes("distribution", word_of(profile.rule.distribution))
        .bytes("when_down", name_of(profile.rule.failover));
    line.bytes("fragile", profile.fragile);
    session.output().answer(line, profile.name);
  }
  for (const Alias& alias : all_aliases()) {
    session.output().answer(JsonObject("alias", alias.name).bytes("profile", alias.profile), alias.name);
  }
  return ExitStatus::ok;
}

// Explains step by step how the client places the key.
JsonObject explanation(const Placement& placement, const PlacementOptions& options, const Pool& listed,
                       std::string_view key) {
  const Profile& profile = profile_named(placement.profile());
  JsonObject steps = JsonObject("client", profile.client->name).bytes("selected_by", profile.selected_by);
  steps.bytes("distribution", word_of(profile.rule.distribution));
  const std::uint64_t hash = placement.hash_of(key);
  if (const Continuum* ring = placement.continuum(); ring != nullptr) {
    const std::size_t position = ring->find(hash);
    steps.number("points", ring->points().size()).number("point_index", position);
    steps.bytes("point", std::to_string(ring->points()[position].value));
  } else if (profile.rule.distribution == Distribution::modulo) {
    std::uint64_t slots = listed.size();
    if (profile.rule.repeats) {
      slots = 0;
      for (const Server& server : listed) slots += server.weight;
    }
    steps.bytes("step",
                std::to_string(hash) + " % " + std::to_string(slots) + " = " + std::to_string(hash % slots));
  }
  std::vector<std::string> next;
  for (const std::size_t server : placement.servers_of(key, placement.pool().size())) {
    next.push_back(placement.pool()[server].address());
  }
  steps.strings("order", next);
  const bool asked = profile.rule.distribution == Distribution::asked;
  const std::string_view same = asked ? same_profile(placement, options) : std::string_view();
  if (!same.empty()) steps.bytes("same_as", same);
  if (*profile.fragile != '\0') steps.bytes("fragile", profile.fragile);
  return steps;
}

void print_key(Session& session, const WhereOptions& options, const Placements& placements,
               std::vector<PlacedLines>& lines, std::string&& key) {
  const PlacedKey part = placed(std::move(key), session.key_prefix());
  for (std::size_t i = 0; i < placements.size(); ++i) {
    const auto& placement = placements[i];
    const Placement::Place place = placement->place_of(part.placed_by());
    if (!options.explain && lines[i].print(part, place)) continue;
    const std::string& address = session.server_address(place.server);
    if (session.output().mode() == OutputMode::value) {
      session.output().answer({}, address);
      continue;
    }
    JsonObject& line = lines[i].line(part, place, {});
    add_owners(session, line, *placement, part.placed_by());
    if (options.explain)
      line.object("explain", explanation(*placement, session.placement_options(), session.pool().pool,
                                         part.placed_by()));
    session.output().answer(line, address);
  }
}

ExitStatus where_down(Session& session, const WhereOptions& options, const Placements& placements) {
  const Down down = down_of(placements.front()->pool(), *options.down);
  const auto print_key = [&](const std::string& key) {
    ExitStatus status = ExitStatus::ok;
    for (const auto& placement : placements) {
      if (!print_when_down(session, *placement, down, key)) status = ExitStatus::no;
    }
    return status;
  };
  return for_each_key(session, placements, options, print_key);
}

// Returns the placements for --as P[,P…].
Placements placements_of(Session& session) {
  const std::string names = session.options().profile.value_or("");
  if (names.find(',') == std::string::npos) return {session.placement()};
  Placements placements;
  for (const std::string_view name : split(names, ',')) placements.push_back(session.placement_as(name));
  return placements;
}

void check_together(const WhereOptions& options) {
  if ((options.yes || options.dry_run || options.even_last || options.even_replicas) && !options.prune)
    throw InvalidInput("--yes, --dry-run, --even-last and --even-replicas need --prune");
  if ((options.live || options.list) && !options.probe && !options.prune)
    throw InvalidInput(options.guess ? "omit --live and --list: --guess without KEY samples the live keys"
                                     : "--live and --list need --probe or --prune");
  if (options.sample && !options.guess && !(options.probe && options.live))
    throw InvalidInput("--sample needs --guess, or --probe --live");
  if (options.selected.any() && !options.live && !options.guess)
    throw InvalidInput("--prefix and --match need --live or --guess");
  if (options.prune) options.selected.check();
  if (options.audit && !options.prune) throw InvalidInput("--audit needs --prune");
  if (options.without_cas && !options.moved_from) throw InvalidInput("--without-cas needs --moved-from");
  if (options.divergent && (!options.prune || options.moved_from))
    throw InvalidInput("--divergent needs --prune and cannot be combined with --moved-from");
  if (options.divergent && *options.divergent != "drop") throw InvalidInput("--divergent takes only drop");
  if (options.journal && !options.moved_from && !options.divergent)
    throw InvalidInput("--journal needs --moved-from or --divergent drop");
  const int asked =
      (options.probe || options.prune ? 1 : 0) + (options.down ? 1 : 0) + (options.guess ? 1 : 0);
  if (asked > 1) throw InvalidInput("--probe, --down and --guess cannot be combined");
  if (asked > 0 && options.explain)
    throw InvalidInput("--explain cannot be combined with --probe, --prune, --down or --guess");
}

ExitStatus where(Session& session, const WhereOptions& options) {
  if (options.profiles) return print_profiles(session);
  check_together(options);
  if (options.operation) session.place_for(operation_named(*options.operation));
  if (options.guess) return where_guess(session, options);
  if (options.live != options.keys.empty())
    throw InvalidInput(options.live
                           ? "KEY and --live cannot be combined: --live uses all keys that the servers hold"
                           : "no KEY given; see mcds where --help");
  if (options.as_from && !options.moved_from) throw InvalidInput("--as-from needs --moved-from");
  if (options.moved_from) return where_moved(session, options);
  const Placements placements = placements_of(session);
  if (options.down) return where_down(session, options, placements);
  if (options.probe || options.prune) return where_probe(session, options, placements);
  std::vector<PlacedLines> lines;
  for (const auto& placement : placements) lines.emplace_back(session, *placement);
  const auto print = [&](std::string&& key) {
    print_key(session, options, placements, lines, std::move(key));
    return ExitStatus::ok;
  };
  return for_each_key(session, placements, options, print);
}

void declare_fields(Verb& verb) {
  verb.field("size_bytes integer memory of the keys")
      .field("removed integer how many copies were removed")
      .field("would_remove integer how many copies would be removed")
      .field("left string why an old copy was left")
      .field("to string the server that the key belongs on now")
      .field("share number share of the keys that this client wrote, if several did")
      .field("prefix bytes a prefix that the keys have and the client does not hash")
      .field(
          "servers string[] the servers that the client keeps the key on, the one that is read first in "
          "front")
      .field("astray integer keys that are where neither list and profile places them")
      .field(
          "copies {server owner holder:boolean? error? found? size_bytes? flags? ttl_s:number|null? idle_s? "
          "cas? md5? rtt_us? prune?}[] each server's copy");
}

void declare_pruning(Verb& verb, WhereOptions& options) {
  verb.flag("--prune",
            "remove copies where the client does not look, if they equal the one where it does; needs --yes "
            "or --dry-run",
            options.prune)
      .flag("--even-last",
            "with --prune: remove copies even if the key's own server has none, if all of them are the same",
            options.even_last)
      .flag("--even-replicas",
            "with --prune: continue although the copies look like replication, or like a second client's",
            options.even_replicas)
      .option("--moved-from", "LIST",
              "with --prune --live: the servers before a move; remove copies that the new servers have too",
              &options.moved_from)
      .option("--as-from", "P", "with --moved-from: the client profile before the move, if it was another",
              &options.as_from)
      .option("--journal", "FILE",
              "with --moved-from: the journal of the move; also remove copies that differ but were not "
              "written since they were copied; with --divergent drop: record the removed copies in it, to "
              "continue an ended run",
              &options.journal)
      .option("--divergent", "drop", "with --prune: remove every copy of keys whose copies differ",
              &options.divergent)
      .flag("--without-cas",
            "with --moved-from: also from servers that run without cas (-C); stop the writers first",
            options.without_cas)
      .flag("--dry-run", "with --prune: show what would be removed", options.dry_run)
      .flag("-y,--yes", "with --prune: remove the copies", options.yes)
      .option("--audit", "FILE", "with --prune: append to this file who removed what, when and how much",
              &options.audit);
  declare_selected_keys(verb, options.selected);
}

}  // namespace

ExitStatus for_each_key(Session& session, const Placements& placements, const WhereOptions& options,
                        const TakeKey& take, const SendKeys& send) {
  const KeyRules rules{session.key_prefix(), placements, options.probe || options.prune || options.guess};
  Batch<std::string> batch;
  batch.parse = [&](std::string&& line) { return rules.of_line(std::move(line), session.options().null); };
  batch.run = [&](Window<std::string>& window) {
    for (const auto& placement : placements) placement->expect(window.items);
    for (std::size_t i = 0; i < window.items.size(); ++i) {
      const ExitStatus status = take(std::move(window.items[i]));
      send ? window.note(status) : window.done(i, status);
    }
    if (send) window.note(send());
  };
  const auto& keys = options.keys;
  if (keys == std::vector<std::string>{"-"}) return batch.of_lines(session, {}).worst;
  std::vector<std::string> whole;
  for (const std::string& key : keys) whole.push_back(rules.checked(key));
  return batch.of_words(session, std::move(whole), keys);
}

void declare_where(Command& command) {
  command.exits(
      "1 --probe: a key is missing; --down: a key has nowhere to go; --guess: no client is certain|2 "
      "--probe: another verdict than ok or missing; --prune: copies stay|65 a line of input is not a valid "
      "key, or --prune refuses the profile|66 a file cannot be read|69 no server answers, or one cannot list "
      "its keys|76 a server has no command to list its keys|77|78|80 the outcome of a removal is unknown");
  const auto options = std::make_shared<WhereOptions>();
  command.itself()
      .answer("@where @owners explain?")
      .answer("@placed down then")
      .answer("@placed @owners verdict compared? copies")
      .answer("keys profile verdicts size_bytes? pairs? examples?")
      .answer("keys profile verdicts removed:integer @removal")
      .answer("keys profile verdicts would_remove:integer @removal")
      .answer(
          "keys profile profile_before astray locks on_old_places only_there differs changed failed "
          "removed:integer @removal")
      .answer(
          "keys profile profile_before astray locks on_old_places only_there differs changed failed "
          "would_remove:integer @removal")
      .answer("removed:integer @removal")
      .answer("begins selection")
      .answer("key left server to message")
      .answer(
          "profile agreement explained keys by_chance told_apart_after client selected_by also "
          "alike_here_only prefix? "
          "share?")
      .answer(
          "profile agreement explained keys by_chance behind_after client selected_by also alike_here_only "
          "prefix? "
          "share?")
      .answer("profile client language versions selected_by distribution when_down fragile")
      .answer("alias profile")
      .example("mcds where price:44 price:45")
      .example("mcds where price:44 --as php-memcached,gomemcache --explain")
      .example("mcds where --probe price:44")
      .example("cut -f1 keys.tsv | mcds where - -o value | sort | uniq -c")
      .optional_argument("KEY", "whole memcached keys; - reads one per line", dash(&options->keys))
      .flag("--explain",
            "also print the steps from key to server, and the order in which further servers follow",
            options->explain)
      .option(
          "--operation", "get|set|delete",
          "where mcrouter's routes send this operation; default: the placement that reads and writes share",
          &options->operation)
      .flag("--profiles", "list the client profiles: language, versions, options that select them",
            options->profiles)
      .option("--down", "SERVER[,...]",
              "where the client goes while these servers, given by name or address, are dead", &options->down)
      .flag("--guess", "find the client that placed the given keys, or a sample of live keys", options->guess)
      .option("--sample", "N",
              "with --guess: the number of live keys in the sample, default 2000; with --probe --live: "
              "default all",
              &options->sample)
      .flag("--probe", "ask every server whether it holds the key, without changing anything", options->probe)
      .flag("--live",
            "with --probe or --prune: use every key that the servers hold, and count them by verdict",
            options->live)
      .flag("--list", "with --live: also print each key whose verdict is not ok", options->list)
      .action(where, options)
      .with(declare_fields)
      .with(declare_pruning, *options);
}

}  // namespace mcds
