#include "common/cluster/libmemcached/configured.hpp"

#include <strings.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <array>
#include <mutex>
#include <unordered_map>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/text.hpp"
#include "common/cluster/libmemcached/library.hpp"
#include "common/placement/pools/pool.hpp"

namespace mcds::libmemcached {

namespace {

// What is known of a configuration string of libmemcached before the library sees it: it is foreign text,
// and the library obeys words that end its program or read other files, and aborts at numbers that it does
// not expect.

constexpr std::size_t longest_text = std::size_t{64} << 10;
constexpr std::size_t most_servers = 100;  // the library aborts with more
constexpr std::uint64_t largest_port = 65535;

bool is_digit_of_text(char c) {
  return c >= '0' && c <= '9';
}

bool is_of_host(char c) {
  return is_digit_of_text(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' ||
         c == '-';
}

// Walks the text in the steps of the library's scanner, as far as that takes: a statement begins at the
// start and behind each space, and what is quoted or a comment is one piece.
class TextReader {
 public:
  explicit TextReader(std::string_view text) : text_(text) {}

  // The servers as they are written, for their weights and whether they have a port: the library shows
  // neither. Statements that it would refuse may be missing. Throws Failure(configuration) for what it must
  // not be given: anything that begins like a word instead of an option (RESET, INCLUDE, ERROR …),
  // --CONFIGURE-FILE, more than 100 servers, ports above 65535, a quotation mark without its end, more than
  // 64 KiB, a NUL.
  Pool run() {
    if (text_.size() > longest_text)
      throw bad_configuration("the string for libmemcached is longer than 64 KiB");
    if (text_.find('\0') != std::string_view::npos)
      throw bad_configuration("the string for libmemcached has a NUL in it");
    while (at_ < text_.size()) step();
    if (servers_.size() > most_servers)
      throw bad_configuration("libmemcached takes no more than 100 servers; the string has " +
                              std::to_string(servers_.size()));
    return std::move(servers_);
  }

  // The places of what follows each /?, and how long that is.
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
      throw bad_configuration("--CONFIGURE-FILE reads another file: write out what it has");
    if (text_.substr(at_).starts_with("--")) return;
    const std::string word(run_of([](char c) { return c != ' ' && c != '\n' && c != '\r' && c != '\t'; }));
    if (strcasecmp(word.c_str(), "END") == 0) {  // nothing behind it is read
      at_ = text_.size();
      return;
    }
    throw bad_configuration(
        "a string for libmemcached has options, which begin with --; word " +
        std::to_string(std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), ' ') + 1) +
        " does not, and is not shown, because it may hold a password");
  }

  template <typename Is>
  std::string_view run_of(Is is) {
    const std::size_t from = at_;
    while (at_ < text_.size() && is(text_[at_])) ++at_;
    return text_.substr(from, at_ - from);
  }

  // Without its quotation marks.
  std::string_view quoted() {
    const std::size_t from = ++at_;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') return text_.substr(from, at_++ - from);
      if (text_[at_] == '\\' && (++at_ == text_.size() || text_[at_] == '\n')) break;
    }
    throw bad_configuration("the string for libmemcached has a quotation mark without its end");
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

  // The number behind these characters, five digits at most as the scanner has it.
  std::optional<std::uint64_t> numbered(std::string_view mark) {
    if (!text_.substr(at_).starts_with(mark)) return std::nullopt;
    std::size_t digits = 0;
    const std::size_t from = at_ + mark.size();
    while (digits < 5 && from + digits < text_.size() && is_digit_of_text(text_[from + digits])) ++digits;
    if (digits == 0) return std::nullopt;
    if (mark == "/?") weights_.emplace_back(from, digits);
    at_ = from + digits;
    return parse_u64(text_.substr(from, digits));
  }

  std::optional<std::uint64_t> valid_port() {
    const auto port = numbered(":");
    if (port && *port > largest_port)
      throw bad_configuration("port " + std::to_string(*port) + " is above 65535");
    return port;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool starts_ = true;
  Pool servers_;
  std::vector<std::pair<std::size_t, std::size_t>> weights_;
};

// With /?1 in place of each weight.
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
constexpr std::size_t keys_at_once = 256;  // their bytes and the answer fit into a socket's buffer
constexpr Duration longest_answer = std::chrono::seconds(5);

struct Answered {
  std::uint32_t hash, server;
};

// The child's side.

// It can neither open files nor make processes.
void renounce() {
  prctl(PR_SET_DUMPABLE, 0);
  for (const auto limit : {RLIMIT_NOFILE, RLIMIT_FSIZE, RLIMIT_CORE, RLIMIT_NPROC}) {
    constexpr rlimit none{0, 0};
    setrlimit(limit, &none);
  }
#ifndef __SANITIZE_ADDRESS__
  constexpr rlimit memory{std::size_t{4} << 30, std::size_t{4} << 30};
  setrlimit(RLIMIT_AS, &memory);
#endif
}

std::string error_of(const std::string& text) {
  std::array<char, 1024> error{};
  library().check_configuration(text.data(), text.size(), error.data(), error.size());
  return "libmemcached refuses the string: " +
         (error[0] == '\0' ? "it does not say why" : plain_words(error.data()));
}

void describe(const memcached_st* client, const Line& line) {
  const Library& call = library();
  auto* const writable = const_cast<memcached_st*>(client);
  memcached_return_t ignored{};
  const auto* const prefix =
      static_cast<const char*>(call.callback_get(writable, MEMCACHED_CALLBACK_PREFIX_KEY, &ignored));
  const std::uint64_t binary = call.behavior_get(writable, MEMCACHED_BEHAVIOR_BINARY_PROTOCOL);
  const std::uint64_t replicas = call.behavior_get(writable, MEMCACHED_BEHAVIOR_NUMBER_OF_REPLICAS);
  line.send_text(prefix == nullptr ? "" : prefix);
  line.send_value(binary != 0 ? replicas + 1 : std::uint64_t{1});  // in text it keeps none
  const std::uint32_t count = call.server_count(client);
  line.send_value(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const memcached_instance_st* const server = call.server_at(client, i);
    line.send_text(call.server_name(server));
    line.send_value(std::uint16_t{call.server_port(server)});
  }
}

// Places keys until the parent has no more.
void answer(memcached_st* client, const Line& line) {
  const Library& call = library();
  const auto hash = static_cast<memcached_hash_t>(call.behavior_get(client, MEMCACHED_BEHAVIOR_HASH));
  memcached_return_t ignored{};
  const auto* const prefix =
      static_cast<const char*>(call.callback_get(client, MEMCACHED_CALLBACK_PREFIX_KEY, &ignored));
  const bool hashes_prefix =
      prefix != nullptr && call.behavior_get(client, MEMCACHED_BEHAVIOR_HASH_WITH_PREFIX_KEY) != 0;
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
      const std::string hashed = (hashes_prefix ? prefix : "") + std::string(key);
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
    child_.wait_no_longer_than(std::min(longest, longest_answer));
    learn();
    child_.wait_no_longer_than(longest_answer);
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
    return std::make_shared<Configured>(libmemcached::with_equal_weights(text_), longest_answer);
  }

 private:
  [[noreturn]] static void no_answer() {
    throw bad_configuration(
        "libmemcached crashed or did not answer in time: the string is one that it cannot handle");
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

  // With the weight that it was written with.
  Server server_named(const std::string& name, std::uint16_t port) {
    Server server;
    if (name.starts_with('/')) server.socket_path = name;
    if (!server.is_unix()) server.host = name, server.port = port;
    if (!server.is_unix() && !is_address(name) && !is_host_name(name))
      throw bad_configuration("server " + std::to_string(servers_.size() + 1) +
                              " has no name of a host; it is not shown, because it may hold a password");
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
  Pool written_;  // those that the library has not shown yet
  Child child_;
  Pool servers_;
  std::string prefix_;
  std::size_t copies_ = 1;
  mutable std::mutex mutex_;  // `lock run` renews in a thread
  mutable std::unordered_map<std::string, Placement::Place> known_;
};

}  // namespace

std::shared_ptr<const AskedClient> configured_client(const std::string& text, Duration longest) {
  if (text.empty()) throw bad_configuration("the string for libmemcached is empty");
  return std::make_shared<Configured>(text, longest);
}

}  // namespace mcds::libmemcached
