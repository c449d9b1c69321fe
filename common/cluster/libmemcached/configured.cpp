#include "common/cluster/libmemcached/configured.hpp"

#include <strings.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <array>
#include <mutex>
#include <unordered_map>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/sanitizers.hpp"
#include "common/base/text.hpp"
#include "common/cluster/libmemcached/library.hpp"
#include "common/placement/pools/pool.hpp"
#include "common/placement/profiles/profile.hpp"

namespace mcds::libmemcached {

namespace {

// Checks of a configuration string before the library sees it. The string is untrusted: the library obeys
// words that end its program or read other files, and aborts on unexpected numbers.

constexpr std::size_t max_text_length = std::size_t{64} << 10;
constexpr std::size_t max_servers = 100;  // the library aborts with more
constexpr std::uint64_t max_port = 65535;

bool is_of_host(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' || c == '-';
}

// Scans the text as the library's scanner does: a statement begins at the start and after each space; a
// quoted text or a comment is one token.
class TextReader {
 public:
  explicit TextReader(std::string_view text) : text_(text) {}

  // Returns the servers as they are written, with their weights and ports, which the library does not report.
  // Statements that the library would refuse may be missing. Throws Failure(configuration) for texts that the
  // library must not get: a word that does not start like an option (RESET, INCLUDE, ERROR …),
  // --CONFIGURE-FILE, more than 100 servers, a port above 65535, an unterminated quotation, more than 64 KiB,
  // a NUL.
  Pool run() {
    if (text_.size() > max_text_length)
      throw bad_configuration("the string for libmemcached is longer than 64 KiB");
    if (text_.find('\0') != std::string_view::npos)
      throw bad_configuration("the string for libmemcached has a NUL in it");
    while (at_ < text_.size()) step();
    if (servers_.size() > max_servers)
      throw bad_configuration("libmemcached supports at most 100 servers, and the string has " +
                              std::to_string(servers_.size()));
    return std::move(servers_);
  }

  // Returns the offset and length of each number after /?.
  const std::vector<std::pair<std::size_t, std::size_t>>& weights() const { return weights_; }

 private:
  void step() {
    const char c = text_[at_];
    if (c == '#' && (at_ == 0 || text_[at_ - 1] == '\n') && text_.find('\n', at_) != std::string_view::npos) {
      at_ = text_.find('\n', at_);
    } else if (c == ' ') {
      starts_ = true;
      ++at_;
    } else if (c == '\t' || c == '\r' || c == '\n') {
      ++at_;
    } else if (std::exchange(starts_, false)) {
      statement();
    } else if (c == '"') {
      static_cast<void>(quoted());
    } else if (!valid_port()) {
      ++at_;
    }
  }

  bool takes(std::string_view word) {
    const bool is =
        text_.size() - at_ >= word.size() && strncasecmp(&text_[at_], word.data(), word.size()) == 0;
    if (is) at_ += word.size();
    return is;
  }

  void statement() {
    if (takes("--SERVER=")) return server(run_of(is_of_host), {});
    if (takes("--SOCKET="))
      return server({}, text_.substr(at_).starts_with('"') ? quoted() : run_of(is_of_host));
    if (takes("--CONFIGURE-FILE"))
      throw bad_configuration("--CONFIGURE-FILE is not supported; copy that file's options into the string");
    if (text_.substr(at_).starts_with("--")) return;
    const std::string word(run_of([](char c) { return c != ' ' && c != '\n' && c != '\r' && c != '\t'; }));
    if (strcasecmp(word.c_str(), "END") == 0) {  // the library ignores the rest
      at_ = text_.size();
      return;
    }
    throw bad_configuration(
        "word " +
        std::to_string(std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), ' ') + 1) +
        " of the string for libmemcached does not begin with --; write options only (the word may hold a "
        "password and is not shown)");
  }

  template <typename Is>
  std::string_view run_of(Is is) {
    const std::size_t from = at_;
    while (at_ < text_.size() && is(text_[at_])) ++at_;
    return text_.substr(from, at_ - from);
  }

  // Returns the text between quotation marks.
  std::string_view quoted() {
    const std::size_t from = ++at_;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') return text_.substr(from, at_++ - from);
      if (text_[at_] == '\\' && (++at_ == text_.size() || text_[at_] == '\n')) break;
    }
    throw bad_configuration("the string for libmemcached has a quotation mark that is not closed");
  }

  void server(std::string_view host, std::string_view path) {
    Server found{.host = std::string(host), .socket_path = std::string(path), .has_port = false};
    if (const auto port = valid_port()) {
      found.port = *port == 0 ? default_port : static_cast<std::uint16_t>(*port);
      found.has_port = true;
    }
    if (const auto weight = numbered("/?")) found.weight = static_cast<std::uint32_t>(*weight);
    servers_.push_back(std::move(found));
  }

  // Returns the number after `mark`: at most five digits, as in the library's scanner.
  std::optional<std::uint64_t> numbered(std::string_view mark) {
    if (!text_.substr(at_).starts_with(mark)) return std::nullopt;
    std::size_t digits = 0;
    const std::size_t from = at_ + mark.size();
    while (digits < 5 && from + digits < text_.size() && is_digit(text_[from + digits])) ++digits;
    if (digits == 0) return std::nullopt;
    if (mark == "/?") weights_.emplace_back(from, digits);
    at_ = from + digits;
    return parse_u64(text_.substr(from, digits));
  }

  std::optional<std::uint64_t> valid_port() {
    const auto port = numbered(":");
    if (port && *port > max_port)
      throw bad_configuration("port " + std::to_string(*port) + " is above 65535");
    return port;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool starts_ = true;
  Pool servers_;
  std::vector<std::pair<std::size_t, std::size_t>> weights_;
};

// Replaces each weight by 1 (/?1).
std::string with_equal_weights(std::string_view text) {
  TextReader reader(text);
  static_cast<void>(reader.run());
  std::string result;
  std::size_t from = 0;
  for (const auto& [at, size] : reader.weights()) {
    result += std::string(text.substr(from, at - from)) + '1';
    from = at + size;
  }
  return result + std::string(text.substr(from));
}

constexpr std::size_t remembered_places = 8192;
constexpr std::size_t keys_at_once = 256;  // these and the reply fit into a socket buffer
constexpr Duration max_answer = std::chrono::seconds(5);

struct Answered {
  std::uint32_t hash, server;
};

// The child's side.

// Gives up the right to open files and create processes.
void renounce() {
  prctl(PR_SET_DUMPABLE, 0);
  for (const auto limit : {RLIMIT_NOFILE, RLIMIT_FSIZE, RLIMIT_CORE, RLIMIT_NPROC}) {
    constexpr rlimit none{0, 0};
    setrlimit(limit, &none);
  }
#ifndef MCDS_UNDER_ASAN
  constexpr rlimit memory{std::size_t{4} << 30, std::size_t{4} << 30};
  setrlimit(RLIMIT_AS, &memory);
#endif
}

std::string error_of(const std::string& text) {
  std::array<char, 1024> error{};
  library().check_configuration(text.data(), text.size(), error.data(), error.size());
  return "libmemcached refuses the string: " +
         (error[0] == '\0' ? "no reason was given" : plain_words(error.data()));
}

std::string prefix_of(memcached_st* client) {
  memcached_return_t ignored{};
  const void* const prefix = library().callback_get(client, MEMCACHED_CALLBACK_PREFIX_KEY, &ignored);
  return prefix == nullptr ? "" : static_cast<const char*>(prefix);
}

void describe(memcached_st* client, const Line& line) {
  const Library& call = library();
  const std::uint64_t binary = call.behavior_get(client, MEMCACHED_BEHAVIOR_BINARY_PROTOCOL);
  const std::uint64_t replicas = call.behavior_get(client, MEMCACHED_BEHAVIOR_NUMBER_OF_REPLICAS);
  line.send_text(prefix_of(client));
  line.send_value(binary != 0 ? replicas + 1 : std::uint64_t{1});  // the text protocol has no replicas
  const std::uint32_t count = call.server_count(client);
  line.send_value(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const memcached_instance_st* const server = call.server_at(client, i);
    line.send_text(call.server_name(server));
    line.send_value(std::uint16_t{call.server_port(server)});
  }
}

// Answers requests for places until the parent closes the connection.
void answer(memcached_st* client, const Line& line) {
  const Library& call = library();
  const auto hash = static_cast<memcached_hash_t>(call.behavior_get(client, MEMCACHED_BEHAVIOR_HASH));
  const bool hashes_prefix = call.behavior_get(client, MEMCACHED_BEHAVIOR_HASH_WITH_PREFIX_KEY) != 0;
  const std::string prefix = hashes_prefix ? prefix_of(client) : "";
  std::vector<Answered> answers;
  for (std::uint32_t count = 0; line.receive_value(count);) {
    const auto keys = line.receive_text();
    if (!keys) return;
    answers.clear();
    std::size_t at = 0;
    for (; count > 0; --count) {
      std::uint32_t size = 0;
      std::memcpy(&size, &(*keys)[at], sizeof size);
      const std::string_view key = std::string_view(*keys).substr(at + sizeof size, size);
      at += sizeof size + size;
      const std::string hashed = prefix + std::string(key);
      answers.push_back({call.generate_hash_value(hashed.data(), hashed.size(), hash),
                         call.generate_hash(client, key.data(), key.size())});
    }
    if (!line.send(answers.data(), answers.size() * sizeof(Answered))) return;
  }
}

void serve_places(const std::string& text, const Line& line) {
  std::string error;
  memcached_st* client = nullptr;
  try {
    static_cast<void>(library());
    renounce();
    client = library().configured(text.data(), text.size());
    if (client == nullptr) error = error_of(text);
    if (client != nullptr && library().server_count(client) == 0)
      error = "the string for libmemcached has no servers; add them as --SERVER=HOST:PORT";
    if (client != nullptr &&
        library().behavior_get(client, MEMCACHED_BEHAVIOR_DISTRIBUTION) == MEMCACHED_DISTRIBUTION_RANDOM)
      error = "--DISTRIBUTION=RANDOM does not place keys on fixed servers";
  } catch (const Failure& failure) {
    error = failure.what();
  }
  if (!line.send_text(error) || !error.empty()) return;
  describe(client, line);
  answer(client, line);
}

// The parent's side.

class Configured final : public AskedClient {
 public:
  Configured(const std::string& text, Duration longest)
      : text_(text),
        written_(TextReader(text).run()),
        child_("mcds-placing", [&](const Line& line) { serve_places(text_, line); }) {
    child_.wait_no_longer_than(std::min(longest, max_answer));
    learn();
    child_.wait_no_longer_than(max_answer);
  }

  const Pool& servers() const override { return servers_; }
  const std::string& key_prefix() const override { return prefix_; }
  std::size_t copies() const override { return copies_; }

  Placement::Place place_of(std::string_view key) const override {
    const std::lock_guard guard(mutex_);
    const std::string text(key);
    if (!known_.contains(text)) ask({text});
    return known_.at(text);
  }

  void expect(const std::vector<std::string>& keys) const override {
    const std::lock_guard guard(mutex_);
    for (std::size_t from = 0; from < keys.size(); from += keys_at_once) {
      const auto first = keys.begin() + static_cast<std::ptrdiff_t>(from);
      ask({first, first + static_cast<std::ptrdiff_t>(std::min(keys_at_once, keys.size() - from))});
    }
  }

  std::shared_ptr<const AskedClient> with_equal_weights() const override {
    return std::make_shared<Configured>(libmemcached::with_equal_weights(text_), max_answer);
  }

 private:
  [[noreturn]] static void no_answer() {
    throw bad_configuration("libmemcached crashed or did not answer in time; give another string");
  }

  template <typename Value>
  Value received() const {
    Value value{};
    if (!line().receive_value(value)) no_answer();
    return value;
  }
  std::string received_text() const {
    auto text = line().receive_text();
    if (!text) no_answer();
    return *std::move(text);
  }
  Line line() const { return child_.line(); }

  void learn() {
    if (const std::string error = received_text(); !error.empty()) throw bad_configuration(visible(error));
    prefix_ = received_text();
    copies_ = static_cast<std::size_t>(received<std::uint64_t>());
    for (auto left = received<std::uint32_t>(); left > 0; --left) {
      const std::string name = received_text();
      servers_.push_back(server_named(name, received<std::uint16_t>()));
    }
  }

  // Returns the server with its weight from the configuration string.
  Server server_named(const std::string& name, std::uint16_t port) {
    Server server;
    if (name.starts_with('/')) server.socket_path = name;
    if (!server.is_unix()) server.host = name, server.port = port;
    if (!server.is_unix() && !is_address(name) && !is_host_name(name))
      throw bad_configuration(
          "server " + std::to_string(servers_.size() + 1) +
          " of the string for libmemcached has no valid host name (it may hold a password and is not shown)");
    const auto same =
        std::ranges::find_if(written_, [&](const Server& one) { return one.address() == server.address(); });
    if (same == written_.end()) return server;
    server.weight = same->weight;
    server.has_port = same->has_port;
    written_.erase(same);
    return server;
  }

  void ask(const std::vector<std::string>& keys) const {
    if (!child_.is_ours()) throw Failure(ErrorCode::internal, "libmemcached belongs to another process");
    std::string message;
    for (const std::string& key : keys) {
      const auto size = static_cast<std::uint32_t>(key.size());
      message.append(reinterpret_cast<const char*>(&size), sizeof size).append(key);
    }
    std::vector<Answered> answers(keys.size());
    const bool answered = line().send_value(static_cast<std::uint32_t>(keys.size())) &&
                          line().send_text(message) &&
                          line().receive(answers.data(), answers.size() * sizeof(Answered));
    if (!answered) no_answer();
    if (known_.size() + keys.size() > remembered_places) known_.clear();
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (answers[i].server >= servers_.size()) no_answer();
      known_.insert_or_assign(keys[i], Placement::Place{answers[i].hash, answers[i].server});
    }
  }

  std::string text_;
  Pool written_;  // servers that the library has not yet reported
  Child child_;
  Pool servers_;
  std::string prefix_;
  std::size_t copies_ = 1;
  mutable std::mutex mutex_;  // needed because `lock run` renews in a thread
  mutable std::unordered_map<std::string, Placement::Place> known_;
};

// The installed library beside the profiles.

struct Setting {
  std::string_view name;  // as profiles write it
  memcached_behavior_t behavior;
  std::uint64_t value;
};
constexpr Setting settings[] = {
    {"KETAMA=1", MEMCACHED_BEHAVIOR_KETAMA, 1},
    {"KETAMA_WEIGHTED=1", MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, 1},
    {"SORT_HOSTS=1", MEMCACHED_BEHAVIOR_SORT_HOSTS, 1},
    {"DISTRIBUTION=CONSISTENT", MEMCACHED_BEHAVIOR_DISTRIBUTION, MEMCACHED_DISTRIBUTION_CONSISTENT},
    {"HASH=DEFAULT", MEMCACHED_BEHAVIOR_HASH, MEMCACHED_HASH_DEFAULT},
    {"HASH=MD5", MEMCACHED_BEHAVIOR_HASH, MEMCACHED_HASH_MD5},
    {"HASH=CRC", MEMCACHED_BEHAVIOR_HASH, MEMCACHED_HASH_CRC},
    {"HASH=FNV1_64", MEMCACHED_BEHAVIOR_HASH, MEMCACHED_HASH_FNV1_64},
    {"HASH=FNV1A_64", MEMCACHED_BEHAVIOR_HASH, MEMCACHED_HASH_FNV1A_64},
    {"HASH=FNV1_32", MEMCACHED_BEHAVIOR_HASH, MEMCACHED_HASH_FNV1_32},
    {"HASH=FNV1A_32", MEMCACHED_BEHAVIOR_HASH, MEMCACHED_HASH_FNV1A_32},
    {"HASH=MURMUR", MEMCACHED_BEHAVIOR_HASH, MEMCACHED_HASH_MURMUR},
    {"HASH=MURMUR3", MEMCACHED_BEHAVIOR_HASH, MEMCACHED_HASH_MURMUR3},
    {"HASH=JENKINS", MEMCACHED_BEHAVIOR_HASH, MEMCACHED_HASH_JENKINS},
};
constexpr std::size_t asked_keys = 100;
std::string asked_key(std::size_t index) {
  return "key:" + std::to_string(index);
}

// Returns false if the library does not have the settings `selected_by`, or refuses a server.
bool set_up(memcached_st* client, std::string_view selected_by, const Pool& listed) {
  const auto add = [&](const Server& server) {
    const auto weight = server.weight;
    const memcached_return_t said =
        server.is_unix() ? library().add_weighted_socket(client, server.socket_path.c_str(), weight)
                         : library().add_weighted_server(client, server.host.c_str(), server.port, weight);
    return said == MEMCACHED_SUCCESS;
  };
  bool added = false;
  for (std::string_view word : split(selected_by, ',')) {
    for (const std::string_view start : {" ", "then "})
      word.remove_prefix(word.starts_with(start) ? start.size() : 0);
    if (word == "servers") added = std::ranges::all_of(listed, add);
    if (word == "servers" || word == "default") continue;
    const auto* setting = std::ranges::find(settings, word, &Setting::name);
    if (setting == std::end(settings) ||
        library().behavior_set(client, setting->behavior, setting->value) != MEMCACHED_SUCCESS)
      return false;
  }
  return added || std::ranges::all_of(listed, add);
}

// Sends the library's version, and an index of `listed` for each key.
void serve_check(std::string_view selected_by, const Pool& listed, const Line& line) {
  try {
    static_cast<void>(library());
  } catch (const Failure&) {
    return;
  }
  renounce();
  memcached_st* client = library().create(nullptr);
  if (client == nullptr || !set_up(client, selected_by, listed)) return;
  std::array<std::uint64_t, asked_keys> places{};
  for (std::size_t i = 0; i < asked_keys; ++i) {
    const std::string key = asked_key(i);
    const auto* server = library().server_at(client, library().generate_hash(client, key.data(), key.size()));
    const auto is_it = [&](const Server& one) {
      return (one.is_unix() ? one.socket_path : one.host) == library().server_name(server) &&
             (one.is_unix() || one.port == library().server_port(server));
    };
    places[i] = static_cast<std::uint64_t>(std::ranges::find_if(listed, is_it) - listed.begin());
  }
  if (line.send_text(library().lib_version())) line.send_value(places);
}

}  // namespace

std::vector<Finding> check_installed(const Pool& listed, const Placement& placement) {
  const Profile& profile = profile_named(placement.profile());
  const bool named = std::ranges::any_of(listed, [](const Server& server) { return !server.name.empty(); });
  if (std::string_view(profile.client->name) != "libmemcached" || named || placement.replicates()) return {};
  const Child child("mcds-checking",
                    [&](const Line& line) { serve_check(profile.selected_by, listed, line); });
  child.wait_no_longer_than(max_answer);
  const auto version = child.line().receive_text();
  std::array<std::uint64_t, asked_keys> places{};
  if (!version || !child.line().receive_value(places)) return {};
  const std::vector<std::size_t> servers = indexes_without_repeats(listed);
  std::size_t elsewhere = 0;
  for (std::size_t i = 0; i < asked_keys; ++i) {
    const bool there = places[i] < listed.size() && servers[places[i]] == placement.server_of(asked_key(i));
    elsewhere += there ? 0 : 1;
  }
  if (elsewhere == 0) return {};
  return {{"installed_differs",
           true,
           "the installed libmemcached " + visible(*version) + " places " + std::to_string(elsewhere) +
               " of 100 keys on other servers than the profile " + std::string(profile.name) +
               ", made from " + profile.client->versions + ": find out which of the two the clients use",
           {}}};
}

std::shared_ptr<const AskedClient> configured_client(const std::string& text, Duration longest) {
  if (text.empty()) throw bad_configuration("the string for libmemcached is empty");
  return std::make_shared<Configured>(text, longest);
}

}  // namespace mcds::libmemcached
