// Tests of how the servers are configured.
#include <algorithm>
#include <array>

#include "common/operations/doctor/check_functions.hpp"

namespace mcds::doctor {

namespace {

constexpr std::uint64_t mebibyte = 1 << 20;
constexpr std::uint64_t default_memory = 64 * mebibyte, default_connections = 1024,
                        very_few_connections = 100;

struct Setting {
  const char* name;    // in `stats settings`
  const char* option;  // of memcached
  // Servers with other weights may have another value, because it depends on the machine.
  bool by_weight = false;
  // Other versions may have another default.
  bool by_version = false;
};

constexpr std::array compared_settings{
    Setting{"item_size_max", "-I"},
    Setting{"cas_enabled", "-C"},
    Setting{"evictions", "-M"},
    Setting{"growth_factor", "-f"},
    Setting{"chunk_size", "-n"},
    Setting{"ssl_enabled", "-Z"},
    Setting{"auth_enabled_ascii", "-Y"},
    Setting{"maxconns", "-c", true},
    Setting{"num_threads", "-t", true},
    Setting{"flush_enabled", "-F"},
    Setting{"reqs_per_event", "-R"},
    Setting{"tcp_backlog", "-b"},
    Setting{"binding_protocol", "-B"},
    Setting{"idle_timeout", "-o idle_timeout"},
    Setting{"slab_automove", "-o slab_automove", false, true},
    Setting{"slab_reassign", "-o slab_reassign", false, true},
    Setting{"lru_crawler", "-o lru_crawler", false, true},
    Setting{"lru_segmented", "-o lru_segmented", false, true},
    Setting{"maxconns_fast", "-o maxconns_fast", false, true},
    Setting{"slab_chunk_max", "-o slab_chunk_max", false, true},
};

// Compares one setting within a group. The value that most servers have is the usual one; a tie has none.
void compare(const Setting& setting, const Examination& seen, const std::vector<std::size_t>& group,
             Diagnosis& diagnosis) {
  std::map<std::string, std::vector<std::size_t>> values;
  for (const std::size_t server : group) {
    if (const auto value = seen.snapshots[server].before.settings.word(setting.name))
      values[std::string(*value)].push_back(server);
  }
  if (values.size() < 2) return;
  const auto more = [](const auto& one, const auto& other) {
    return one.second.size() < other.second.size();
  };
  const auto usual = std::ranges::max_element(values, more);
  const bool tie = std::ranges::count_if(values, [&](const auto& value) {
                     return value.second.size() == usual->second.size();
                   }) > 1;
  std::vector<std::size_t> odd;
  JsonObject counts;
  for (const auto& [value, servers] : values) {
    counts.number(value, servers.size());
    if (tie || value != usual->first) odd.insert(odd.end(), servers.begin(), servers.end());
  }
  JsonObject evidence =
      JsonObject("setting", setting.name).bytes("option", setting.option).object("values", counts);
  if (!tie) evidence.bytes("usual", usual->first);
  diagnosis.add_one(odd, evidence, warning);
}

bool listens_here_only(const StatisticsReply& settings) {
  const std::string_view inter = settings.word("inter").value_or("");
  const std::string_view socket = settings.word("domain_socket").value_or("NULL");
  return socket != "NULL" || inter.starts_with("127.") || inter == "::1" || inter == "localhost";
}

}  // namespace

void drift(const Examination& seen, Diagnosis& diagnosis) {
  for (const Setting& setting : compared_settings) {
    std::map<std::string, std::vector<std::size_t>> groups;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (!seen.snapshots[i].before.settings.known()) continue;
      std::string group;
      if (setting.by_weight) group += std::to_string(seen.pool()[i].weight);
      if (setting.by_version) group += seen.snapshots[i].version;
      groups[group].push_back(i);
    }
    for (const auto& [key, group] : groups) compare(setting, seen, group, diagnosis);
  }
}

void limits_low(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  const StatisticsReply& set = snapshot.before.settings;
  const auto memory = set.number("maxbytes"), connections = set.number("maxconns");
  const bool few = connections && *connections < default_connections;
  if (!few && !(memory && *memory < default_memory)) return;
  JsonObject evidence;
  if (memory && *memory < default_memory) evidence.number("maxbytes", *memory);
  if (few) evidence.number("maxconns", *connections);
  const bool very_few = few && *connections < very_few_connections;
  diagnosis.add(evidence, very_few ? warning : note);
}

void small_items_only(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  const auto largest = snapshot.before.settings.number("item_size_max");
  if (largest && *largest < mebibyte)
    diagnosis.add(JsonObject().number("item_size_max", *largest), warning, -static_cast<double>(*largest));
}

void no_cas(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  if (snapshot.before.settings.on("cas_enabled") == false) diagnosis.add({}, note);
}

void dump_off(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  if (snapshot.before.settings.on("dump_enabled") != false) return;
  const bool elsewhere = std::ranges::any_of(diagnosis.seen().snapshots, [](const ServerSnapshot& other) {
    return other.before.settings.on("dump_enabled") == true;
  });
  diagnosis.add(JsonObject().boolean("on_for_others", elsewhere), warning);
}

void stats_off(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  if (!snapshot.up() || snapshot.before.stats.known() || snapshot.before.silence.empty()) return;
  const bool elsewhere = std::ranges::any_of(
      diagnosis.seen().snapshots, [](const ServerSnapshot& other) { return other.before.stats.known(); });
  if (elsewhere) diagnosis.add(JsonObject("error", snapshot.before.silence), warning);
}

namespace {

// Returns when a flush_all takes or took effect, in seconds from now, accurate to a second or two. Unlike
// uptime, `oldest` counts from a minute before the start.
std::optional<std::int64_t> flush_in(const ServerSnapshot& snapshot) {
  constexpr std::int64_t minute = 60;
  const auto oldest = snapshot.before.settings.number("oldest"),
             uptime = snapshot.before.stats.number("uptime");
  if (!oldest || !uptime || *oldest == 0) return std::nullopt;
  return static_cast<std::int64_t>(*oldest) - static_cast<std::int64_t>(*uptime) - minute;
}

}  // namespace

void flush_scheduled(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  constexpr std::int64_t inexact = 5;
  const auto in = flush_in(snapshot);
  if (in && *in > inexact)
    diagnosis.add(JsonObject().number("in_s", static_cast<std::uint64_t>(*in)), problem);
}

void flushed(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  if (const std::uint64_t times = snapshot.rise("cmd_flush"); times > 0) {
    diagnosis.add(JsonObject().number("flushes", times), warning);
    return;
  }
  const auto in = flush_in(snapshot);
  if (!in || *in > 0 || -*in >= static_cast<std::int64_t>(hour_s)) return;
  diagnosis.add(JsonObject().number("flushed_ago_s", static_cast<std::uint64_t>(-*in)), note);
}

void udp_open(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  const StatisticsReply& set = snapshot.before.settings;
  const auto port = set.number("udpport");
  if (!port || *port == 0 || set.word("domain_socket").value_or("NULL") != "NULL") return;
  diagnosis.add(JsonObject().number("udpport", *port), listens_here_only(set) ? note : warning);
}

void detail_on(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  if (snapshot.before.settings.on("detail_enabled") == true) diagnosis.add({}, warning);
}

void verbose(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  const auto level = snapshot.before.settings.number("verbosity");
  if (level && *level > 0)
    diagnosis.add(JsonObject().number("verbosity", *level), *level > 1 ? warning : note);
}

void no_crawler(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  constexpr std::uint32_t on_by_default = 10500;
  if (snapshot.before.settings.on("lru_crawler") != false) return;
  const std::uint64_t expired = snapshot.count("reclaimed") + snapshot.count("expired_unfetched");
  const bool switched_off = release_of(snapshot) >= on_by_default;
  diagnosis.add(JsonObject().number("reclaimed_late", expired), switched_off ? warning : note);
}

void proxy_among_servers(const Examination& seen, Diagnosis& diagnosis) {
  std::vector<std::size_t> proxies, servers;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const ServerSnapshot& snapshot = seen.snapshots[i];
    const bool closes = snapshot.before.up && snapshot.before.silence.find("closed") != std::string::npos;
    if (snapshot.is_proxy() || (closes && snapshot.after.up)) proxies.push_back(i);
    if (snapshot.reported() && !snapshot.is_proxy()) servers.push_back(i);
  }
  if (proxies.empty()) return;
  diagnosis.add_one(proxies, JsonObject().number("proxies", proxies.size()).number("servers", servers.size()),
                    servers.empty() ? note : warning);
}

}  // namespace mcds::doctor
