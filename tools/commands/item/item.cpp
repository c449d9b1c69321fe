// Implements mcds item: an application's own items. Parsing only; larger verbs have a file of their own.

#include "common/primitives/cas_update.hpp"
#include "tools/commands/item/options.hpp"

namespace mcds {

namespace {

// Implements mcds item set and touch.
Exptime exptime_of(Session& session, const std::optional<Duration>& ttl) {
  if (!ttl) return Exptime::never();
  if (*ttl <= Duration::zero())
    throw InvalidInput("--ttl must be longer than 0; omit it for an item that does not expire");
  return Exptime::after(*ttl, session.clock().wall());
}

// Throws if the request is larger than the server accepts, before it is sent.
void check_size(Session& session, const Request& request) {
  const std::size_t size = request.key.size() + request.value.size() + item_overhead;
  if (request.value.size() <= max_value_size) return;
  const Reply reply = session.cluster().execute(Request::stats(*request.server, "settings"));
  const auto most = statistic_number(reply.value, "item_size_max");
  if (most && size <= *most) return;
  throw NotApplied(ErrorCode::refused,
                   "a value of " + std::to_string(request.value.size()) +
                       " bytes is larger than the server accepts; raise its -I, or store less",
                   session.server_address(*request.server));
}

Op op_of(const ItemOptions& options) {
  if (options.if_cas) return Op::cas;
  return options.if_absent ? Op::add : options.if_present ? Op::replace : Op::set;
}

const char* reason_of(Outcome outcome, Op op) {
  if (outcome == Outcome::exists) return "changed";
  return op == Op::add ? "exists" : "missing";
}

void check_set(const ItemOptions& options) {
  const int conditions =
      (options.if_absent ? 1 : 0) + (options.if_present ? 1 : 0) + (options.if_cas ? 1 : 0);
  if (conditions > 1) throw InvalidInput("--if-absent, --if-present and --if-cas cannot be combined");
  if (options.if_cas == 0) throw InvalidInput("--if-cas: 0 is not a cas unique; item show prints the item's");
  if (options.flags && *options.flags > UINT32_MAX) throw InvalidInput("--flags must be at most 4294967295");
}

ExitStatus print_set(Session& session, const ItemOptions& options, const Request& request,
                     const Reply& reply) {
  const bool stored = reply.outcome == Outcome::stored;
  JsonObject line = JsonObject("key", options.key).boolean("stored", stored);
  if (stored) {
    line.number("flags", request.flags).number("size_bytes", request.value.size());
  } else {
    line.bytes("reason", reason_of(reply.outcome, request.op));
  }
  return answer_yes(session, line, stored, {reply.server});
}

ExitStatus item_set(Session& session, const ItemOptions& options) {
  check_set(options);
  const std::vector<Item> items = items_of(session, options, std::span(&options.key, 1));
  const Exptime exptime = exptime_of(session, options.ttl);
  Request request = Request::set("", value_of(options.value), exptime);
  request.flags = static_cast<std::uint32_t>(options.flags.value_or(0));
  request.op = op_of(options);
  request.cas = {options.if_cas.value_or(0)};
  std::vector<Request> requests;
  for (const ItemPlace& place : items.front().places) {
    if (!place.must) continue;
    request.key = place.wire_key;
    request.server = place.server;
    check_size(session, request);
    requests.push_back(request);
  }
  // The first place decides on a condition, and the others follow it.
  Cluster& cluster = session.cluster();
  const bool conditional = request.op != Op::set;
  std::optional<Reply> decided;
  if (conditional) decided = expect(cluster, cluster.execute(requests.front()));
  std::vector<Reply> replies;
  if (!decided || decided->outcome == Outcome::stored)
    replies = store(cluster, std::span(requests).subspan(conditional ? 1 : 0), Op::replace);
  for (const Reply& reply : replies) static_cast<void>(expect(cluster, reply));
  return print_set(session, options, requests.front(), decided ? *decided : replies.front());
}

ExitStatus item_touch(Session& session, const ItemOptions& options) {
  if (!options.ttl) throw InvalidInput("--ttl: give the ttl from now");
  return for_items(session, options, [&](const Window<std::string>& names) {
    const std::vector<Item> items = items_of(session, options, names.items);
    const Exptime exptime = exptime_of(session, options.ttl);
    const auto touch = [&](const ItemPlace& place) {
      return Request::touch(place.wire_key, exptime).on(place.server);
    };
    ask_items(session, items, touch, [&](std::size_t i, ItemReplies replies) {
      if (const Reply* reply = first_failed(replies))
        return names.fail(i, failure_of(session.cluster(), *reply));
      const Reply* touched = first_with(Outcome::stored, replies);
      JsonObject line("key", items[i].key);
      line.boolean("touched", touched != nullptr);
      const std::size_t server = touched != nullptr ? touched->server : items[i].places.front().server;
      names.done(i, answer_yes(session, line, touched != nullptr, {server}));
    });
  });
}

constexpr const char* keys_help = "whole memcached keys; - reads one per line";

void declare_reads_and_writes(Command& command, const ItemOptionsPtr& options) {
  command.verb("get", "print items with their values, flags and ttl", item_get, options)
      .example("mcds item get session:44 --as php-memcached")
      .answer("key found value:bytes flags size_bytes encoding? decoded? guessed? problem? @age cas server")
      .field(
          "ttl_s number seconds until it expires; null: it does not expire, or the server does not report it")
      .answer("key found server")
      .field("value bytes the value")
      .example("mcds item get page:1 -o value")
      .example("mcds item get session:44 --decode auto -o text")
      .argument("KEY", keys_help, dash(&options->keys))
      .option("--decode", "FORMAT",
              "show what the value holds, in a format that item formats lists; auto: guess from the bytes; "
              "default: the format of the client of --as",
              &options->decode)
      .option("--max-bytes", "SIZE", "decode values up to this size, decompressed; default 64M",
              &options->max_bytes);
  command
      .verb("formats", "list the value formats of clients, and what their flags mean", item_formats, options)
      .example("mcds item formats -o text")
      .answer("format clients compressions? forms");
  command.verb("show", "the same without the values", item_show, options)
      .example("mcds item show page:1 page:2 -o text")
      .answer("key found flags size_bytes @age cas server")
      .field(
          "ttl_s number seconds until it expires; null: it does not expire, or the server does not report it")
      .answer("key found server")
      .argument("KEY", keys_help, dash(&options->keys));
  command.verb("set", "store an item where its client looks for it", item_set, options)
      .example("mcds item set motd 'back at noon' --ttl 1h")
      .answer("key stored flags size_bytes server")
      .answer("key stored reason server")
      .example("mcds item set logo @logo.png --flags 2 --if-absent")
      .argument("KEY", "the whole key", &options->key)
      .argument("VALUE", "any bytes; - reads standard input, @FILE a file", dash(&options->value))
      .option("--ttl", "D", "the ttl; default: no expiry", &options->ttl)
      .option("--flags", "N", "the flags, a number that clients store with the value; default 0",
              &options->flags)
      .flag("--if-absent", "only if there is no such item; otherwise exit with 1", options->if_absent)
      .flag("--if-present", "only if there is such an item; otherwise exit with 1", options->if_present)
      .option("--if-cas", "U",
              "only if the item still has this cas unique; otherwise exit with 1; not with the two above",
              &options->if_cas);
  command.verb("touch", "set a new ttl for items", item_touch, options)
      .example("mcds item touch session:44 --ttl 30m")
      .answer("key touched server")
      .argument("KEY", keys_help, dash(&options->keys))
      .option("--ttl", "D", "the ttl from now; required", &options->ttl);
}

void declare_list(Command& command, const ItemOptionsPtr& options) {
  command
      .verb("list", "print the keys that the servers hold now, with size, ttl and idle time", item_list,
            options)
      .with(declare_selected_keys, options->selected)
      .answer(
          "key size_bytes @age flags? digest? expires_at? cas server server_pid? "
          "server_started_at?")
      .answer("prefix @sum")
      .answer("prefix:null rest @sum")
      .answer("chunk_bytes keys size_bytes share wasted_bytes wasted_share free_bytes")
      .answer("lock? counter? visitors? eventlog? array? table? hash? cache? copies:integer? server")
      .field("hash bytes the hash")
      .field("size_bytes integer memory that the item, or all of them, use")
      .field("expires_at time when it expires, by the server's clock; absent: it does not")
      .field("copies integer number of its copies")
      .field(
          "ttl_s number seconds until it expires; null: it does not expire, or the server does not report it")
      .example("mcds item list --sort size -n 10")
      .example("mcds item list --by-prefix -o text")
      .example("mcds item list --histogram --prefix page: -o text")
      .example("mcds item list --names lock -o value")
      .option("--older-than", "D",
              "only keys that were neither read nor written for D, which servers note once a minute",
              &options->older_than)
      .option("--larger-than", "SIZE", "only items that take more memory than this: 64k, 1M",
              &options->larger_than)
      .flag("--never-expires", "only items without a ttl", options->never_expires)
      .option("--on", "SERVER", "only keys of this server", &options->on)
      .choice("--sort", "size|idle|ttl", "sort: largest first, longest unused first, or expiring first",
              &options->sort)
      .option("-n,--count", "N", "at most N lines; with --sort default 20", &options->count)
      .flag(
          "--by-prefix",
          "sum keys, memory, sizes and idle times by the text before the first colon, the largest sum first",
          options->by_prefix)
      .flag("--histogram", "sum keys and memory by slab class, with what each class wastes",
            options->histogram)
      .choice("--names", "lock|counter|visitors|eventlog|array|table|hash|cache",
              "print the names of these structures instead of keys", &options->names)
      .flag("--digest",
            "read the values and print their digests, flags and expiry, by which item remove - recognizes "
            "changes",
            options->digest);
}

void declare_remove(Command& command, const ItemOptionsPtr& options) {
  command.verb("remove", "remove items", item_remove, options)
      .answer("key removed reason? server servers?")
      .answer("key would_remove reason? server servers?")
      .answer("keys? size_bytes? removed:integer @removal")
      .answer("keys? size_bytes? would_remove:integer @removal")
      .field("removed boolean whether it was removed, or how many were")
      .field("size_bytes integer memory of the removed items")
      .field("servers string[] the servers that it was removed from")
      .field("kept counts how many were not removed, by reason: changed, held, used, gone, missing, failed")
      .field("keys integer number of keys that were found")
      .answer("begins selection")
      .example("mcds item remove page:1 page:2")
      .example("mcds item remove --prefix page: --dry-run")
      .example("mcds item list --older-than 7d --digest | mcds item remove - --yes")
      .optional_argument("KEY", "whole keys; - reads one per line, or lines of item list",
                         dash(&options->keys))
      .with(declare_selected_keys, options->selected)
      .option("--older-than", "D",
              "only keys that were neither read nor written for D, which servers note once a minute",
              &options->older_than)
      .option("--rate", "N/s",
              "with a selection: at most N keys per second; default 20000, no limit for a dry run",
              &options->rate)
      .option("--on", "SERVER", "remove from this server, wherever the client places the keys", &options->on)
      .flag("--everywhere", "remove from all servers", options->everywhere)
      .flag("--dry-run", "print what would be removed", options->dry_run)
      .flag("-y,--yes", "remove the selection, or the items that item list printed", options->yes)
      .option("--audit", "FILE", "append to this file who removed what, when and how much", &options->audit);
}

constexpr const char* rate_help = "at most N items per second";

void declare_save(Command& command, const ItemOptionsPtr& options) {
  command.verb("save", "save items to a file, from which item load puts them back", item_save, options)
      .answer("server @saved complete")
      .field("expired integer items that expired before they were read")
      .answer("structure saved:boolean reason")
      .answer("file:string|null @saved structures torn passed_over bytes @speed")
      .field("file string|null the file; null: none was written")
      .field("complete boolean whether the server listed all its keys")
      .field("keys integer keys that the server listed")
      .field("saved integer items that were saved; false: this structure was not")
      .field("failed integer items that the server did not give")
      .field("reason string why the structure was not saved: changed")
      .example("mcds item save cache.saved")
      .example("mcds item save pages.zst --prefix page:")
      .argument("FILE",
                "the file, which is replaced when all is written, compressed if named .zst; - writes "
                "standard output",
                dash(&options->file))
      .with(declare_selected_keys, options->selected)
      .option("--on", "SERVER", "only the items of this server", &options->on)
      .option("--rate", "N/s", rate_help, &options->rate)
      .flag("--structures", "also save arrays, tables, hashes, logs, visitors and counters of one copy",
            options->structures);
}

void declare_load(Command& command, const ItemOptionsPtr& options) {
  command.verb("load", "put back what item save or memcached-tool dump printed", item_load, options)
      .answer("server @loaded")
      .answer("structure loaded:boolean reason")
      .answer(
          "file items @loaded united structures_there expired:integer astray passed_over whole @speed "
          "unfinished?")
      .answer("server would_load")
      .answer("file items would_load expired:integer astray passed_over whole @speed unfinished?")
      .answer("file items bytes whole about?")
      .field("unknown integer items that may or may not be stored, because no reply came")
      .field("failed integer items that the server refused or did not answer")
      .field("loaded integer items that were stored; false: this structure was not")
      .field("items integer items in the file")
      .field(
          "about object what the file says of itself: when the save began and ended, servers, items, and "
          "xxh3, its checksum")
      .field(
          "astray integer items that are not where this client places them, and whose server is not in the "
          "list")
      .field("reason string why the structure was not loaded: there")
      .example("mcds item load cache.saved --dry-run")
      .example("memcached-tool 10.0.0.1:11211 dump | mcds item load - --max-ttl 1h")
      .argument("FILE", "the saved file; - reads standard input", dash(&options->file))
      .with(declare_selected_keys, options->selected)
      .flag("--overwrite", "also replace what exists already", options->overwrite)
      .option("--max-ttl", "D", "let no item live longer than D from now; structures keep their ttl",
              &options->max_ttl)
      .option("--rate", "N/s", rate_help, &options->rate)
      .flag("--dry-run", "count what would be loaded, for each server; nothing is sent", options->dry_run)
      .flag("--verify", "only read the file, and print the number of items and whether it is whole",
            options->verify)
      .flag("--even-astray", "load even if --as does not explain where the items were",
            options->even_misplaced)
      .flag("--strict", "load nothing from a file that is not known to be whole; reads it twice",
            options->strict);
}

void declare_keep(Command& command, const ItemOptionsPtr& options) {
  command
      .verb("keep", "save what a server has, run a command that restarts it, load it again", item_keep,
            options)
      .example("mcds item keep --on 10.0.0.1:11211 -- systemctl restart memcached")
      .answer(
          "server before:integer saved torn passed_over restarted away_s loaded written_meanwhile "
          "united structures_there expired:integer failed no_room after file?")
      .field("file string the saved file, if it stays")
      .field("failed integer items that the server refused or did not answer")
      .field("server string the server that was restarted")
      .field("restarted boolean whether another process answers")
      .field("before integer items on the server before")
      .example("mcds item keep --on 10.0.0.1:11211 --file kept.saved -- sh upgrade")
      .option("--on", "SERVER", "the server that the command restarts; required", &options->on)
      .option("--max-ttl", "D",
              "let no item that is loaded live longer than D, default 10m; structures keep their ttl",
              &options->max_ttl)
      .flag("--full-ttl", "let everything live as long as it would have; not with --max-ttl",
            options->full_ttl)
      .option("--file", "FILE",
              "save to this file, which stays; default: a file that is removed when all is loaded",
              &options->file)
      .option("--wait", "D", "how long to wait for the server after the command; default 1m", &options->wait)
      .option("--rate", "N/s", rate_help, &options->rate)
      .flag("--structures", "also save arrays, tables, hashes, logs, visitors and counters of one copy",
            options->structures)
      .child(options->command, true);
}

void declare_hot(Command& command, const ItemOptionsPtr& options) {
  command.verb("hot", "watch which keys are read, missed, stored and evicted most", item_hot, options)
      .example("mcds item hot -n 5 -o text")
      .answer("key @events refused? size_bytes:integer|null server")
      .answer("server @events refused? coverage dropped:integer watched_s")
      .field(
          "size_bytes integer|null size of the value when it was last seen; null: the server does not log it")
      .field("dropped integer events that the server did not log")
      .example("mcds item hot --for 30s --sort misses --prefix page:")
      .option("--for", "D", "how long to watch; default 5s", &options->watched)
      .option("-n,--count", "N", "at most N keys; default 20", &options->count)
      .option("--prefix", "P", "only keys that begin with P", &options->selected.prefix)
      .option("--on", "SERVER", "watch only this server", &options->on)
      .choice("--sort", "gets|misses|stores|refused|evictions",
              "the keys with the most of these; default: of all events", &options->sort);
}

}  // namespace

void declare_item(Command& command) {
  command.exits(
      "1 an item is missing or has changed, or was not stored because of its condition|2 not everything was "
      "saved or loaded, a server evicted items or was restarted or flushed during load, the file is cut off "
      "or damaged, or keep found "
      "that the server was not restarted|65 a "
      "line of input is not a valid key, a listed name contains a line end, or load refuses the file or the "
      "profile|66 a file cannot be read|69 a server cannot be reached, or keep did nothing because not all "
      "could be saved|73 a file cannot be written, or a temporary file has no room|75 a server is busy with "
      "another list, or its hash table grows; try again|76 a server refused: it cannot list its keys or be "
      "watched, or a value is too large|77|78|80 the outcome of a change is unknown");
  const auto options = std::make_shared<ItemOptions>();
  declare_reads_and_writes(command, options);
  declare_remove(command, options);
  declare_list(command, options);
  declare_save(command, options);
  declare_load(command, options);
  declare_keep(command, options);
  declare_hot(command, options);
}

}  // namespace mcds
