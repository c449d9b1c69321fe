#include "common/cluster/libmemcached/configured.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "common/base/errors.hpp"
#include "common/base/text.hpp"
#include "common/cluster/libmemcached/child.hpp"
#include "common/cluster/libmemcached/configuration_text.hpp"
#include "common/cluster/libmemcached/library.hpp"

namespace mcds::libmemcached {

namespace {

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
        written_(read_configuration_text(text)),
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
      throw bad_configuration("not the name of a host: " + visible(name));
    const auto same = std::find_if(written_.begin(), written_.end(),
                                   [&](const Server& one) { return one.address() == server.address(); });
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
