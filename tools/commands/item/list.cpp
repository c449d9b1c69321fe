// mcds item list: every key that the servers of the pool hold now.
#include <unistd.h>

#include "common/cluster/keys/live.hpp"
#include "common/operations/listings.hpp"
#include "common/operations/removal.hpp"
#include "common/placement/key_hash.hpp"
#include "common/primitives/key_names.hpp"
#include "tools/cli/live_dump.hpp"
#include "tools/commands/item/options.hpp"

namespace mcds {

namespace {

constexpr std::uint64_t usual_first = 20;
constexpr std::size_t keys_per_trip = 256;
// That have a sum of their own: the first ones that are listed. Servers list keys in the order of hashes, so
// a prefix of one key in a thousand is among them.
constexpr std::size_t most_prefixes = 10'000;
// That are printed as soon as they are listed.
constexpr std::size_t most_names = 20'000;

// A LiveKey that may be kept.
struct ListedKey {
  std::string key;  // without the namespace
  LiveKey about;    // its `key` is not valid
};

// Of keys with one prefix.
struct Sum {
  std::uint64_t keys = 0, bytes = 0;

  JsonObject& add_to(JsonObject& line) const { return line.number("keys", keys).number("size_bytes", bytes); }
};

// Of `order` size, idle or ttl the largest, the longest unused, those that end first come first.
std::int64_t rank_of(std::string_view order, const LiveKey& about) {
  if (order == "size") return -static_cast<std::int64_t>(about.size_bytes);
  if (order == "idle") return about.last_accessed_at;
  return about.expires_at < 0 ? INT64_MAX : about.expires_at;
}

void check_listing(const ItemOptions& options) {
  const int forms = (options.sort ? 1 : 0) + (options.by_prefix ? 1 : 0) + (options.names ? 1 : 0);
  if (forms > 1) throw InvalidInput("give one of --sort, --by-prefix and --names, not several");
  options.selected.check();
  if (options.older_than && *options.older_than <= Duration::zero())
    throw InvalidInput("--older-than must be longer than 0");
  if (options.digest && (options.by_prefix || options.names))
    throw InvalidInput("--digest cannot be combined with --by-prefix or --names");
  if (options.count == 0) throw InvalidInput("-n must be at least 1");
}

class Lister {
 public:
  Lister(Session& session, const ItemOptions& options)
      : session_(session),
        options_(options),
        selection_(options.selected.of(session)),
        pool_(session.placement()->pool()),
        on_(server_of(session, options)) {}

  ExitStatus list() {
    times_ = server_times(session_.cluster(), session_.clock(), on_);
    session_.output().buffered(true);
    const bool waits = options_.by_prefix || options_.sort || isatty(STDOUT_FILENO) == 0;
    const auto results = list_keys_on(
        session_, on_, [this](const LiveKey& key) { return take(key); }, waits);
    const ExitStatus status = report_unlisted(session_, pool_, results);
    print_rest();
    session_.output().tell_errors();
    return worse(status, status_);
  }

 private:
  bool wanted(const LiveKey& key) const {
    return selection_.has(key.key) &&
           (!options_.older_than ||
            std::chrono::seconds(times_[key.server].now - key.last_accessed_at) >= *options_.older_than);
  }

  // False: no more is wanted.
  bool take(const LiveKey& key) {
    const std::string& prefix = session_.key_prefix();
    if (done_) return false;
    if (!wanted(key)) return true;
    const std::string_view name = key.key.substr(prefix.size());
    if (options_.names) return take_name(name, key.server);
    if (options_.by_prefix) {
      add_to_sum(name, key.size_bytes);
    } else if (options_.sort) {
      keep_if_first(name, key);
    } else if (options_.digest) {
      unread_.push_back({std::string(name), key});
      if (unread_.size() >= keys_per_trip) read_values();
      return !done_;
    } else {
      print(name, key);
      return enough();
    }
    return true;
  }

  void add_to_sum(std::string_view key, std::uint64_t bytes) {
    const std::string_view prefix = key.substr(0, key.find(':') + 1);  // empty if there is no colon
    auto found = sums_.find(prefix);
    if (found == sums_.end() && sums_.size() < most_prefixes) found = sums_.emplace(prefix, Sum()).first;
    Sum& sum = found == sums_.end() ? rest_ : found->second;
    ++sum.keys;
    sum.bytes += bytes;
  }

  void keep_if_first(std::string_view key, const LiveKey& about) {
    const std::size_t most = options_.count.value_or(usual_first);
    const std::int64_t rank = rank_of(*options_.sort, about);
    if (first_.size() == most && rank >= first_.rbegin()->first) return;
    first_.emplace(rank, ListedKey{std::string(key), about});
    if (first_.size() > most) first_.erase(std::prev(first_.end()));
  }

  // Those that are still there, with what was read of them.
  void read_values() {
    std::vector<Request> probes;
    for (const ListedKey& listed : unread_)
      probes.push_back(Request::probe(session_.key_prefix() + listed.key, listed.about.server));
    const std::vector<Reply> replies = session_.cluster().execute(probes);
    for (std::size_t i = 0; i < replies.size() && !done_; ++i) {
      if (replies[i].failed()) {
        status_ = worse(status_,
                        session_.output().failed(unread_[i].key, failure_of(session_.cluster(), replies[i])));
      } else if (replies[i].outcome == Outcome::hit) {
        unread_[i].about.cas = replies[i].cas.value;
        print(unread_[i].key, unread_[i].about, &replies[i]);
        enough();
      }
    }
    unread_.clear();
  }

  bool enough() {
    done_ = options_.count && ++printed_ >= *options_.count;
    return !done_;
  }

  bool take_name(std::string_view key, std::size_t server) {
    const auto name = structure_named(key);
    if (!name || name->structure != *options_.names || !name->is_root) return true;
    std::string id = std::to_string(name->copies) + ':' + std::string(name->name);
    if (names_.contains(id)) return true;
    if (names_.size() == most_names) {
      more_names_.add({.hash = key_hash::xxh3(id), .server = static_cast<std::uint32_t>(server)}, key);
      return true;
    }
    names_.insert(std::move(id));
    return print_name(*name, server);
  }

  bool print_name(const StructureName& name, std::size_t server) {
    JsonObject line(name.structure, name.name);
    add_number_of_copies(line, name.copies);
    line.bytes("server", session_.server_address(server));
    session_.output().answer_key(line, name.name);
    return enough();
  }

  void print(std::string_view key, const LiveKey& about, const Reply* read = nullptr) {
    const std::int64_t now = times_[about.server].now;
    ItemAge age;
    age.ttl =
        std::chrono::seconds(about.expires_at < 0 ? -1 : std::max<std::int64_t>(about.expires_at - now, 0));
    age.idle = std::chrono::seconds(std::max<std::int64_t>(now - about.last_accessed_at, 0));
    line_.cut(0);
    line_.bytes("key", key).number("size_bytes", about.size_bytes);
    add_age(line_, age);
    if (read != nullptr) {
      line_.number("flags", read->flags).bytes("digest", md5_hex(read->value));
      if (about.expires_at >= 0) line_.time("expires_at", WallTime(std::chrono::seconds(about.expires_at)));
    }
    line_.bytes("cas", std::to_string(about.cas)).bytes("server", session_.server_address(about.server));
    if (const auto& life = times_[about.server].life)
      line_.number("server_pid", life->process).time("server_started_at", life->started_at());
    session_.output().answer_key(line_, key);
  }

  void print_rest() {
    read_values();
    for (auto& [rank, listed] : first_) {
      if (options_.digest)
        unread_.push_back(std::move(listed));
      else
        print(listed.key, listed.about);
    }
    read_values();
    more_names_.for_each([this](std::span<const Listing> group, const std::string& key) {
      if (!done_) print_name(*structure_named(key), group.front().server);
    });
    print_sums();
  }

  void print_sums() {
    std::vector<std::pair<std::string, Sum>> sums(sums_.begin(), sums_.end());
    std::ranges::stable_sort(sums, std::greater{}, [](const auto& one) { return one.second.bytes; });
    for (const auto& [prefix, sum] : sums) {
      JsonObject line("prefix", prefix);
      session_.output().answer_key(sum.add_to(line), prefix);
      if (!enough()) break;
    }
    if (rest_.keys == 0) return;
    JsonObject line;
    session_.output().detail(rest_.add_to(line.raw("prefix", "null").boolean("rest", true)));
    session_.output().warning("only the first " + std::to_string(most_prefixes) +
                              " prefixes have sums of their own; the keys of all others are one sum; "
                              "--prefix narrows the list");
  }

  Session& session_;
  const ItemOptions& options_;
  const KeySelection selection_;
  const Pool& pool_;
  const std::optional<std::size_t> on_;
  std::vector<ServerTime> times_;
  std::multimap<std::int64_t, ListedKey> first_;  // with --sort, by rank
  std::map<std::string, Sum, std::less<>> sums_;  // by the text up to the first colon
  Sum rest_;                                      // of those that have none there
  std::unordered_set<std::string> names_;         // that were printed
  Listings more_names_;                           // the keys of others
  std::vector<ListedKey> unread_;                 // of --digest
  std::uint64_t printed_ = 0;
  ExitStatus status_ = ExitStatus::ok;
  bool done_ = false;
  JsonObject line_;
};

}  // namespace

ExitStatus item_list(Session& session, const ItemOptions& options) {
  check_listing(options);
  return Lister(session, options).list();
}

}  // namespace mcds
