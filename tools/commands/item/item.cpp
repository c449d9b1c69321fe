// mcds item: an application's own items. Parsing; what the verbs do stands in read, change, remove and list.cpp.
#include "tools/cli/session.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/item/options.hpp"

namespace mcds {

namespace {

using VerbFunction = ExitStatus (*)(Session&, const ItemOptions&);

void finish(Verb& verb, const ItemOptionsPtr& options, VerbFunction function) {
  verb.action([options, function](Session& session) { return function(session, *options); });
}

constexpr const char* keys_help = "whole keys; - reads one per line";

void declare_list(Command& command, const ItemOptionsPtr& options) {
  finish(
      command.verb("list", "the keys that the servers hold now, with size, ttl and idle time")
          .example("mcds item list --sort size -n 10")
          .example("mcds item list --by-prefix")
          .example("mcds item list --names lock -o value")
          .option("--prefix", "P", "only keys that begin with this", &options->prefix)
          .option("--match", "GLOB", "only keys that match: * any bytes, ? one, [a-z] one of these",
                  &options->match)
          .option("--on", "SERVER", "only this server's keys", &options->on)
          .choice("--sort", {"size", "idle", "ttl"},
                  "the largest, the longest unused, or those that end first", &options->sort)
          .option("-n,--count", "N", "at most N lines; default with --sort 20", &options->count)
          .flag("--by-prefix", "sum keys and bytes by what stands before the first separator",
                options->by_prefix)
          .option("--separator", "TEXT",
                  "with --by-prefix: what ends a prefix; default :", &options->separator)
          .choice("--names", {"lock", "counter", "visitors", "eventlog", "array", "table", "hash", "cache"},
                  "the names of these structures instead of keys", &options->names),
      options, item_list);
}

}  // namespace

void declare_item(Command& command) {
  const auto options = std::make_shared<ItemOptions>();
  finish(command.verb("get", "print items with their values, flags and ttl")
             .example("mcds item get session:44 --as php-memcached")
             .example("mcds item get page:1 -o value")
             .argument("KEY", keys_help, &options->keys)
             .dash(),
         options, item_get);
  finish(command.verb("show", "the same without the values")
             .example("mcds item show page:1 page:2 -o text")
             .argument("KEY", keys_help, &options->keys)
             .dash(),
         options, item_show);
  finish(
      command.verb("set", "store an item where its client looks for it")
          .example("mcds item set motd 'back at noon' --ttl 1h")
          .example("mcds item set logo @logo.png --flags 2 --if-absent")
          .argument("KEY", "the whole key", &options->key)
          .argument("VALUE", "any bytes; - reads standard input, @FILE a file", &options->value)
          .dash()
          .option("--ttl", "D", "how long it stays; default: no end", &options->ttl)
          .option("--flags", "N", "the number that clients keep beside the value; default 0", &options->flags)
          .flag("--if-absent", "only if there is none; exit 1 otherwise", options->if_absent)
          .flag("--if-present", "only if there is one; exit 1 otherwise", options->if_present)
          .option("--if-cas", "U", "only if it is still the one that had this cas unique", &options->if_cas),
      options, item_set);
  finish(command.verb("touch", "give items a new ttl")
             .example("mcds item touch session:44 --ttl 30m")
             .argument("KEY", keys_help, &options->keys)
             .dash()
             .option("--ttl", "D", "how long they stay from now on", &options->ttl),
         options, item_touch);
  finish(command.verb("remove", "remove items")
             .example("mcds item remove page:1 page:2")
             .example("mcds item list --prefix page: | mcds item remove - --dry-run")
             .argument("KEY", "whole keys; - reads one per line, or lines of item list", &options->keys)
             .dash()
             .option("--on", "SERVER", "from this server, wherever the client looks", &options->on)
             .flag("--everywhere", "from all servers", options->everywhere)
             .flag("--dry-run", "show what would go", options->dry_run)
             .flag("-y,--yes", "remove what item list printed", options->yes),
         options, item_remove);
  declare_list(command, options);
}

}  // namespace mcds
