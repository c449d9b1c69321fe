#include "common/base/bytes.hpp"
#include "tools/cli/parse.hpp"

namespace mcds {

namespace {

struct Row {
  std::string_view words;
  std::string_view instead;
};

constexpr std::array commands_to_try{
    Row{"get gets mget fetch cat show read view print",
        "mcds item get KEY, mcds counter get NAME, or mcds hash get NAME FIELD"},
    Row{"set put store replace",
        "mcds item set KEY VALUE, mcds counter set NAME NUMBER, or mcds hash set NAME FIELD VALUE"},
    Row{"add", "mcds table add NAME MEMBER, mcds array add NAME VALUE, or mcds item set KEY VALUE"},
    Row{"append push write log publish", "mcds eventlog put NAME DATA, or mcds array add NAME VALUE"},
    Row{"pop consume", "mcds eventlog fetch NAME --cursor FILE"},
    Row{"tail follow", "mcds eventlog tail NAME"},
    Row{"incr inc", "mcds counter incr NAME"},
    Row{"decr", "mcds counter decr NAME"},
    Row{"keys key-list ls list scan metadump cachedump", "mcds item list"},
    Row{"bigkeys", "mcds item list --sort size"},
    Row{"members smembers has", "mcds table fetch NAME, or mcds table has NAME MEMBER"},
    Row{"hgetall", "mcds hash fetch NAME"},
    Row{"size len length count",
        "mcds table count NAME, mcds array count NAME, or mcds item list --by-prefix"},
    Row{"delete del rm remove unset delete_multi unlink",
        "mcds item remove KEY, or mcds hash remove NAME FIELD"},
    Row{"clear drop", "mcds table drop NAME, mcds array drop NAME, or mcds item remove --prefix PREFIX"},
    Row{"ttl", "mcds item show KEY, or mcds lock show NAME"},
    Row{"touch expire", "mcds item touch KEY --ttl D, or mcds cache expire KEY"},
    Row{"flush_all flush", "mcds item remove --prefix '' --all"},
    Row{"unlock break release", "mcds lock release NAME --token TOKEN"},
    Row{"top watch monitor hot", "mcds item hot, or mcds servers --every 1s"},
    Row{"stats stat info slabs display", "mcds servers, or mcds servers --stats slabs"},
    Row{"version", "mcds servers, or mcds --version"},
    Row{"ping", "mcds servers"},
    Row{"migrate rebalance", "mcds ring move --to LIST"},
    Row{"dump backup", "mcds item save FILE, or mcds item list"},
};

// The verbs to try for each word. The first one that the command has is suggested.
constexpr std::array verbs_to_try{
    Row{"get gets read find lookup query view print cat see hget see peek", "get fetch value show info"},
    Row{"fetch list ls all members values entries elements items dump show scan each smembers hgetall lrange",
        "fetch list show value get info"},
    Row{"keys fields names hkeys", "fields list fetch"},
    Row{"size len length total sum count scard hlen llen cardinality", "count value info get"},
    Row{"contains has exists member ismember sismember hexists includes", "has get show"},
    Row{"status state info stat stats inspect describe holder owner who", "show check info value get"},
    Row{"ttl expiry age remaining", "show"},
    Row{"history hist", "fetch value"},
    Row{"follow watch monitor stream subscribe", "tail watch hot"},
    Row{"top hottest", "hot"},
    Row{"bigkeys largest biggest", "list --sort size"},
    Row{"verify validate lint test", "check"},
    Row{"compare plan preview", "diff"},
    Row{"pop shift getdel lpop rpop spop", "take"},
    Row{"consume receive dequeue", "fetch --cursor FILE"},
    Row{"add increment inc increase bump plus incrby", "incr add put set hit"},
    Row{"decrement dec decrease minus subtract", "decr"},
    Row{"push append insert put set store write log save sadd hset rpush lpush record publish send",
        "add put set hit run"},
    Row{"visit pfadd", "hit"},
    Row{"update modify edit replace change", "change replace set"},
    Row{"delete del rm unset erase unlink discard delete_multi srem hdel lrem remove", "remove drop release"},
    Row{"clear empty truncate flush wipe purge destroy drop", "drop remove"},
    Row{"reset zero", "take drop"},
    Row{"invalidate", "expire"},
    Row{"expire touch prolong refresh extend", "touch renew"},
    Row{"lock hold obtain grab take get_lock", "acquire"},
    Row{"unlock break free release", "release"},
    Row{"throttle allow ratelimit rate", "limit"},
    Row{"migrate rebalance", "move"},
    Row{"export backup", "save fetch"},
    Row{"import restore", "load"},
    Row{"location locate server find", "where"},
};

// Verbs of 0.x that were removed without a successor.
constexpr std::array gone{
    Row{"compact", "compaction is automatic now"},
    Row{"recopy",
        "the number of copies is chosen when a name is created; mcds-copies(7) shows how to copy it"},
};

std::string_view find(std::span<const Row> rows, std::string_view word) {
  for (const Row& row : rows) {
    const auto all = split(row.words, ' ');
    if (std::ranges::find(all, word) != all.end()) return row.instead;
  }
  return {};
}

// Returns the required arguments as the help shows them: `NAME MEMBER…`.
std::string required_arguments(const Verb& verb) {
  std::string text;
  for (const ArgumentSpec& argument : verb.arguments()) {
    if (argument.required) append_all(text, {" ", argument.name});
  }
  return text;
}

}  // namespace

std::string_view commands_for(std::string_view word) {
  return find(commands_to_try, word);
}

std::string verb_for(const Command& command, std::string_view word) {
  if (const std::string_view why = find(gone, word); !why.empty()) return std::string(why);
  std::string kept;
  if (word == "clear" && command.name() == "array")
    kept = ", or mcds array replace NAME --allow-empty for an empty array";
  for (const std::string_view verbs = find(verbs_to_try, word); std::string_view one : split(verbs, ' ')) {
    const Verb* verb = one.empty() || one.starts_with('-') ? nullptr : command.find(one);
    if (verb == nullptr) continue;
    const std::string_view options = verbs.substr(static_cast<std::size_t>(one.end() - verbs.begin()));
    std::string text = "try mcds " + command.name() + ' ' + verb->name() + required_arguments(*verb);
    if (options.starts_with(" --")) text += options;
    return text + kept;
  }
  return {};
}

}  // namespace mcds
