// Implements mcds item list: every key that the servers of the pool hold now.
#include <bit>

#include "common/operations/listings.hpp"
#include "common/operations/removal.hpp"
#include "common/placement/key_hash.hpp"
#include "tools/commands/item/options.hpp"

namespace mcds {

namespace {

constexpr std::uint64_t usual_first = 20;
constexpr std::size_t keys_per_trip = 256;
// Prefixes that have a sum of their own: the first ones that are listed. Servers list keys in hash order, so
// a prefix that one key in a thousand has is among them.
constexpr std::size_t max_prefixes = 10'000;
// Names that are printed as soon as they are listed.
constexpr std::size_t max_names = 20'000;
constexpr std::size_t bar_width = 20;

// A copy of a LiveKey.
struct ListedKey {
  std::string key;  // without the namespace
  LiveKey about;    // its `key` is not valid
};

// Counts numbers, exactly below 64, otherwise in classes whose width is 1/32 of the number.
class Distribution {
 public:
  void add(std::uint64_t number) { ++counts_[class_of(number)]; }
  // Returns the middle of the class that contains the quantile.
  std::uint64_t quantile(double share) const {
    std::uint64_t all = 0, seen = 0;
    for (const auto& [place, count] : counts_) all += count;
    for (const auto& [place, count] : counts_) {
      seen += count;
      if (static_cast<double>(seen) >= share * static_cast<double>(all)) return middle_of(place);
    }
    return 0;
  }

 private:
  static std::uint16_t class_of(std::uint64_t number) {
    const int shift = std::max(static_cast<int>(std::bit_width(number)) - 6, 0);
    return static_cast<std::uint16_t>((shift << 6) + static_cast<int>(number >> shift));
  }
  static std::uint64_t middle_of(std::uint16_t place) {
    const int shift = place >> 6;
    return (std::uint64_t{place & 63U} << shift) + (shift > 0 ? (std::uint64_t{1} << (shift - 1)) : 0);
  }
  std::map<std::uint16_t, std::uint64_t> counts_;
};

// The sums over items whose keys have one prefix.
struct Sum {
  std::uint64_t keys = 0, bytes = 0, largest = 0, never_expire = 0;
  Distribution sizes = {}, idle_seconds = {};

  void add(const LiveKey& key, std::int64_t now) {
    ++keys;
    bytes += key.size_bytes;
    largest = std::max(largest, key.size_bytes);
    never_expire += key.expires_at < 0 ? 1 : 0;
    sizes.add(key.size_bytes);
    idle_seconds.add(static_cast<std::uint64_t>(std::max<std::int64_t>(now - key.last_accessed_at, 0)));
  }
};

// The sums over items whose chunks have one size.
struct SlabSum {
  std::uint64_t keys = 0, bytes = 0, chunk = 0, free = 0;
};
constexpr std::uint64_t several_chunks = UINT64_MAX;

// Returns the rank of an item: the largest first, the longest unused first, or the first to expire.
std::int64_t rank_of(std::string_view order, const LiveKey& about) {
  if (order == "size") return -static_cast<std::int64_t>(about.size_bytes);
  if (order == "idle") return about.last_accessed_at;
  return about.expires_at < 0 ? INT64_MAX : about.expires_at;
}

void check_listing(const ItemOptions& options) {
  const bool sums = options.by_prefix || options.histogram;
  const int forms =
      options.sort.has_value() + options.by_prefix + options.histogram + options.names.has_value();
  if (forms > 1) throw InvalidInput("--sort, --by-prefix, --histogram and --names cannot be combined");
  options.selected.check();
  if (options.older_than && *options.older_than <= Duration::zero())
    throw InvalidInput("--older-than must be longer than 0");
  if (options.digest && (sums || options.names))
    throw InvalidInput("--digest cannot be combined with --by-prefix, --histogram or --names");
  if (options.count == 0) throw InvalidInput("-n must be at least 1");
}

class Lister {
 public:
  Lister(Session& session, const ItemOptions& options)
      : session_(session),
        options_(options),
        selection_(options.selected.of(session)),
        pool_(session.placement()->pool()),
        on_(server_of(session, options)),
        larger_than_(options.larger_than ? parse_size(*options.larger_than, "--larger-than") : 0) {}

  ExitStatus list() {
    read_times();
    if (options_.histogram) read_slab_classes();
    session_.output().buffered(true);
    if (options_.sort)
      session_.output().keep_column(*options_.sort + (options_.sort == "size" ? "_bytes" : "_s"));
    const auto results = list_keys_on(session_, on_, [this](const LiveKey& key) { return take(key); });
    const ExitStatus status = report_unlisted(session_, pool_, results);
    print_rest();
    session_.output().report_errors();
    return worse(status, status_);
  }

 private:
  bool wanted(const LiveKey& key) const {
    return selection_.has(key.key) && (larger_than_ == 0 || key.size_bytes > larger_than_) &&
           (!options_.never_expires || key.expires_at < 0) &&
           (!options_.older_than ||
            std::chrono::seconds(times_[key.server].now - key.last_accessed_at) >= *options_.older_than);
  }

  // Takes a key. Returns false if no more keys are wanted.
  bool take(const LiveKey& key) {
    const std::string& prefix = session_.key_prefix();
    if (done_) return false;
    if (!wanted(key)) return true;
    const std::string_view name = key.key.substr(prefix.size());
    if (options_.names) return take_name(name, key.server);
    if (options_.by_prefix) {
      sum_of(name).add(key, times_[key.server].now);
    } else if (options_.histogram) {
      add_to_class(key);
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

  Sum& sum_of(std::string_view key) {
    const std::string_view prefix = key.substr(0, key.find(':') + 1);  // empty if there is no colon
    auto found = sums_.find(prefix);
    if (found == sums_.end() && sums_.size() < max_prefixes) found = sums_.emplace(prefix, Sum()).first;
    return found == sums_.end() ? rest_ : found->second;
  }

  void read_times() {
    const HalfTime half(session_);
    times_ = server_times(session_.cluster(), session_.clock(), on_);
  }

  // Reads the chunk sizes of each server and the numbers of free chunks: `1:chunk_size 96`.
  void read_slab_classes() {
    const HalfTime half(session_);
    chunks_.resize(pool_.size());
    for (const Reply& reply : session_.cluster().execute(requests_for_stats(session_, options_, "slabs"))) {
      if (reply.failed()) continue;  // its keys, if it lists them, belong to no class
      std::map<std::string, std::uint64_t, std::less<>> sizes;
      for_each_statistic(reply.value, [&](std::string_view name, std::string_view value) {
        const std::string_view number = name.substr(0, name.find(':') + 1);
        const std::string_view about = name.substr(number.size());
        const std::uint64_t metric = parse_u64(value).value_or(0);
        if (about == "chunk_size") chunks_[reply.server].insert(sizes[std::string(number)] = metric);
        if (about == "free_chunks")
          classes_[sizes[std::string(number)]].free += metric * sizes[std::string(number)];
      });
    }
  }

  void add_to_class(const LiveKey& key) {
    const std::set<std::uint64_t>& chunks = chunks_[key.server];
    if (chunks.empty()) without_classes_.insert(key.server);
    const auto chunk = chunks.lower_bound(key.size_bytes);
    SlabSum& sum = classes_[chunk == chunks.end() ? several_chunks : *chunk];
    ++sum.keys;
    sum.bytes += key.size_bytes;
    sum.chunk += chunk == chunks.end() ? 0 : *chunk;
  }

  void keep_if_first(std::string_view key, const LiveKey& about) {
    const std::size_t most = options_.count.value_or(usual_first);
    const std::int64_t rank = rank_of(*options_.sort, about);
    if (first_.size() == most && rank >= first_.rbegin()->first) return;
    first_.emplace(rank, ListedKey{std::string(key), about});
    if (first_.size() > most) first_.erase(std::prev(first_.end()));
  }

  // Reads the items that are listed but unread, and prints those that still exist.
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
    if (names_.size() == max_names) {
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
    if (const auto& start = times_[about.server].start)
      line_.number("server_pid", start->process).time("server_started_at", start->started_at());
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
    print_classes();
  }

  void add_share(JsonObject& line, std::uint64_t bytes, std::uint64_t all) const {
    const double share = all == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(all);
    line.raw("share", format_fixed(share, 4));
    if (session_.output().mode() == OutputMode::text) line.bytes("bar", bar(share, bar_width));
  }

  void add_sum(JsonObject& line, const Sum& sum, std::uint64_t all) const {
    line.number("keys", sum.keys).number("size_bytes", sum.bytes);
    add_share(line, sum.bytes, all);
    line.number("size_median_bytes", std::min(sum.sizes.quantile(0.5), sum.largest))
        .number("size_p99_bytes", std::min(sum.sizes.quantile(0.99), sum.largest))
        .number("size_max_bytes", sum.largest)
        .number("idle_median_s", sum.idle_seconds.quantile(0.5));
    line.raw("never_expires_share",
             format_fixed(static_cast<double>(sum.never_expire) / static_cast<double>(sum.keys), 4));
  }

  void print_sums() {
    std::vector<std::pair<std::string, Sum>> sums(sums_.begin(), sums_.end());
    std::ranges::stable_sort(sums, std::greater{}, [](const auto& one) { return one.second.bytes; });
    std::uint64_t all = rest_.bytes;
    for (const auto& [prefix, sum] : sums) all += sum.bytes;
    for (const auto& [prefix, sum] : sums) {
      JsonObject line("prefix", prefix);
      add_sum(line, sum, all);
      session_.output().answer_key(line, prefix);
      if (!enough()) break;
    }
    if (rest_.keys == 0) return;
    JsonObject line;
    line.raw("prefix", "null").boolean("rest", true);
    add_sum(line, rest_, all);
    session_.output().detail(line);
    session_.output().warning("only the first " + std::to_string(max_prefixes) +
                              " prefixes have sums of their own; the keys of all others are one sum; "
                              "--prefix narrows the list");
  }

  void print_classes() {
    for (const std::size_t server : without_classes_)
      session_.output().warning(
          session_.server_address(server) +
          " does not report its slab classes; its items are among those of several chunks");
    std::uint64_t all = 0;
    for (const auto& [chunk, sum] : classes_) all += sum.bytes;
    for (const auto& [chunk, sum] : classes_) {
      if (sum.keys == 0 && sum.free == 0) continue;
      JsonObject line;
      const bool one_chunk = chunk != several_chunks;
      line.raw("chunk_bytes", one_chunk ? std::to_string(chunk) : "null");
      line.number("keys", sum.keys).number("size_bytes", sum.bytes);
      add_share(line, sum.bytes, all);
      const std::uint64_t wasted = one_chunk ? sum.chunk - sum.bytes : 0;
      const double share = sum.chunk == 0 ? 0 : static_cast<double>(wasted) / static_cast<double>(sum.chunk);
      line.raw("wasted_bytes", one_chunk ? std::to_string(wasted) : "null");
      line.raw("wasted_share", one_chunk ? format_fixed(share, 4) : "null");
      session_.output().answer(line.number("free_bytes", sum.free), one_chunk ? std::to_string(chunk) : "-");
      if (!enough()) break;
    }
  }

  Session& session_;
  const ItemOptions& options_;
  const KeySelection selection_;
  const Pool& pool_;
  const std::optional<std::size_t> on_;
  const std::uint64_t larger_than_;
  std::vector<ServerTime> times_;
  std::multimap<std::int64_t, ListedKey> first_;  // with --sort, by rank
  std::map<std::string, Sum, std::less<>> sums_;  // by the text up to the first colon
  Sum rest_;                                      // over items without a prefix of their own
  std::vector<std::set<std::uint64_t>> chunks_;   // with --histogram: chunk sizes of each server
  std::map<std::uint64_t, SlabSum> classes_;      // by chunk size
  std::set<std::size_t> without_classes_;         // servers that list keys but not their classes
  std::unordered_set<std::string> names_;         // names already printed
  Listings more_names_;                           // names found later
  std::vector<ListedKey> unread_;                 // keys to read for --digest
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
