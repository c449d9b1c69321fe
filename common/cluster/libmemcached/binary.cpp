#include "common/cluster/libmemcached/binary.hpp"

#include <cstdlib>
#include <set>
#include <unordered_set>

#include "common/base/bytes.hpp"
#include "common/cluster/credentials.hpp"

namespace mcds::libmemcached {

namespace {

using Kind = ReplyFailure::Kind;

constexpr std::string_view absent_key = "mcds:what-server-is-this";
constexpr std::uint32_t creates_nothing = 0xffffffff;  // as the exptime of incr and decr: do not create

// A request to the child, followed by the key and the value.
struct Question {
  Op op;
  std::uint32_t flags;
  std::int64_t exptime;
  std::uint64_t delta, cas;
  std::int32_t timeout_ms;
};

// The child's reply, followed by the value.
struct Answer {
  memcached_return_t said;
  bool is_text = false;  // incr, decr: the value is not a number, so the server was not asked
  std::uint32_t flags = 0;
  std::uint64_t number = 0, cas = 0;
};

// The results of a connection's first two requests, followed by the version and the library's message.
struct Beginning {
  memcached_return_t version, look;
};

// Caller runs in the child and executes the parent's requests with libmemcached.

class Caller {
 public:
  Caller(const Server& server, const Duration& connect_timeout, const Line& line)
      : call_(library()), line_(line), client_(call_.create(nullptr)) {
    const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(connect_timeout).count();
    set(MEMCACHED_BEHAVIOR_BINARY_PROTOCOL, 1);
    set(MEMCACHED_BEHAVIOR_SUPPORT_CAS, 1);
    set(MEMCACHED_BEHAVIOR_TCP_NODELAY, 1);
    set(MEMCACHED_BEHAVIOR_CONNECT_TIMEOUT,
        static_cast<std::uint64_t>(std::max<std::int64_t>(milliseconds, 1)));
    if (server.is_unix()) call_.add_unix_socket(client_, server.socket_path.c_str());
    if (!server.is_unix()) call_.add_server(client_, server.host.c_str(), server.port);
    const auto& login = credentials_of(server).login;
    if (login) call_.set_sasl_auth_data(client_, login->user.c_str(), login->password.c_str());
  }

  void run(std::int32_t timeout_ms) {
    wait_no_longer_than(timeout_ms);
    Beginning beginning{call_.version(client_), MEMCACHED_FAILURE};
    const std::string why = call_.last_error_message(client_);
    if (beginning.version == MEMCACHED_SUCCESS)
      beginning.look = call_.append(client_, absent_key.data(), absent_key.size(), "", 0, 0, 0);
    line_.send_value(beginning);
    line_.send_text(version());
    line_.send_text(why);
    Question question{};
    while (line_.receive_value(question)) {
      const auto key = line_.receive_text();
      const auto value = line_.receive_text();
      if (!key || !value) return;
      wait_no_longer_than(question.timeout_ms);
      std::string found;
      const Answer answer = ask(question, *key, *value, found);
      line_.send_value(answer);
      line_.send_text(found);
    }
  }

 private:
  void set(memcached_behavior_t which, std::uint64_t value) { call_.behavior_set(client_, which, value); }
  void wait_no_longer_than(std::int32_t ms) {
    set(MEMCACHED_BEHAVIOR_POLL_TIMEOUT, static_cast<std::uint64_t>(ms));
  }

  std::string version() const {
    const memcached_instance_st* const server = call_.server_at(client_, 0);
    return std::to_string(call_.major_version(server)) + '.' + std::to_string(call_.minor_version(server)) +
           '.' + std::to_string(call_.micro_version(server));
  }

  Answer get(const std::string& key, std::string& found) {
    Answer answer{};
    std::size_t size = 0;
    char* const value = call_.get(client_, key.data(), key.size(), &size, &answer.flags, &answer.said);
    if (value != nullptr) found.assign(value, size);
    std::free(value);
    answer.cas = client_->result.item_cas;
    return answer;
  }

  Answer count(const Question& question, const std::string& key, std::string& found) {
    Answer answer = get(key, found);
    if (answer.said != MEMCACHED_SUCCESS) return answer;
    answer.is_text = !parse_padded_u64(found);
    if (answer.is_text) return answer;
    found.clear();
    const auto counts = question.op == Op::incr ? call_.increment : call_.decrement;
    answer.said = counts(client_, key.data(), key.size(), question.delta, 0, creates_nothing, &answer.number);
    return answer;
  }

  static memcached_return_t add_line(const memcached_instance_st*, const char* key, std::size_t key_size,
                                     const char* value, std::size_t size, void* lines) {
    append_all(*static_cast<std::string*>(lines), {{key, key_size}, " ", {value, size}, "\n"});
    return MEMCACHED_SUCCESS;
  }

  Answer ask(const Question& question, const std::string& key, const std::string& value, std::string& found) {
    const auto store = [&](auto function) {
      return Answer{function(client_, key.data(), key.size(), value.data(), value.size(), question.exptime,
                             question.flags)};
    };
    switch (question.op) {
      case Op::add: return store(call_.add);
      case Op::set: return store(call_.set);
      case Op::replace: return store(call_.replace);
      case Op::append: return store(call_.append);
      case Op::cas:
      case Op::remove_if:
        return {call_.cas(client_, key.data(), key.size(), value.data(), value.size(), question.exptime,
                          question.flags, question.cas)};
      case Op::incr:
      case Op::decr: return count(question, key, found);
      case Op::touch: return {call_.touch(client_, key.data(), key.size(), question.exptime)};
      case Op::remove: return {call_.remove(client_, key.data(), key.size(), 0)};
      case Op::version: found = version(); return {call_.version(client_)};
      case Op::stats: return {call_.stats(client_, key.empty() ? nullptr : key.c_str(), add_line, &found)};
      default: return get(key, found);
    }
  }

  const Library& call_;
  Line line_;
  memcached_st* client_;
};

// Everything below runs in the parent.

Asked asked_by(Op op) {
  switch (op) {
    case Op::get:
    case Op::gets:
    case Op::probe:
    case Op::add_and_get: return Asked::read;
    case Op::add: return Asked::add;
    case Op::replace: return Asked::replace;
    case Op::append: return Asked::append;
    case Op::cas:
    case Op::remove_if: return Asked::compare;
    default: return Asked::other;
  }
}

Outcome success_of(Op op) {
  const bool shows = asked_by(op) == Asked::read || op == Op::version || op == Op::stats;
  const bool removes = op == Op::remove || op == Op::remove_if;
  return shows ? Outcome::hit : removes ? Outcome::deleted : Outcome::stored;
}

// The connection to one server, in its own child process.
class BinaryConnection {
 public:
  BinaryConnection(const Server& server, std::size_t index, const ConnectOptions& options)
      : server_(server), index_(index), options_(options) {}

  const ServerProtocol& protocol() const { return protocol_; }

  Reply execute(const Request& request) {
    if (auto refusal = refusal_of(request))
      return Reply::failed_with(Kind::refused, std::move(*refusal), index_);
    if (!credentials_of(server_).withheld.empty())
      return Reply::failed_with(Kind::denied, credentials_of(server_).withheld, index_);
    bool opened = false;
    if (child_ == nullptr) {
      if (auto failure = open()) return *std::move(failure);
      opened = true;
    }
    const bool compares = asked_by(request.op) == Asked::compare;
    if (compares && !seen_cas_tokens_.contains(request.cas.value)) return Reply::of(Outcome::exists, index_);
    Reply reply = request.op == Op::add_and_get ? add_and_get(request) : ask(request);
    reply.opened = opened;
    reply.protocol = Reply::Protocol::classic;
    return reply;
  }

 private:
  std::optional<std::string> refusal_of(const Request& request) const {
    if (auto refusal = refusal_before_sending(request)) return refusal;
    if (server_.tls) return "libmemcached has no TLS; omit --protocol binary for tls:// servers";
    if (server_.is_unix() && credentials_of(server_).login)
      return "libmemcached logs in by TCP only; give the server's HOST:PORT";
    if (request.op == Op::incr_or_create || request.op == Op::append_or_create)
      return "the binary protocol has no such command";
    return std::nullopt;
  }

  std::int32_t milliseconds_left(Duration longest) const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(options_.left(clock_, longest)).count();
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(left, 0, 3'600'000));
  }

  Reply not_sent(Kind kind, std::string why, bool late = false) {
    child_.reset();
    return Reply::failed_with(kind, std::move(why), index_, late);
  }

  // Returns the failure, or nullopt if the connection is open.
  std::optional<Reply> open() {
    const std::int32_t timeout = milliseconds_left(options_.timeout);
    if (timeout == 0) return not_sent(Kind::unreachable, "not sent: the deadline has passed", true);
    const Duration connect_timeout = options_.left(clock_, options_.connect_timeout);
    seen_cas_tokens_.clear();
    child_ = std::make_unique<Child>(
        "mcds-binary", [&](const Line& line) { Caller(server_, connect_timeout, line).run(timeout); });
    // A login takes three round trips.
    child_->wait_no_longer_than(connect_timeout + 4 * std::chrono::milliseconds(timeout) +
                                std::chrono::seconds(1));
    Beginning beginning{};
    const Line line = child_->line();
    if (!line.receive_value(beginning))
      return not_sent(Kind::unreachable, "libmemcached did not connect in time", true);
    const auto version = line.receive_text(), why = line.receive_text();
    if (!version || !why) return not_sent(Kind::unreachable, "libmemcached ended while connecting");
    return judge(beginning, *version, plain_words(*why));
  }

  std::optional<Reply> judge(const Beginning& beginning, const std::string& version, const std::string& why) {
    const bool logs_in = credentials_of(server_).login.has_value();
    if (beginning.version != MEMCACHED_SUCCESS) {
      const bool late = why.find("TIMEOUT") != std::string::npos;
      const bool connected = !late && why.find("CONNECTION FAILURE") == std::string::npos &&
                             why.find("HOST LOOKUP") == std::string::npos;
      if (logs_in && connected)
        return not_sent(Kind::denied,
                        "the server rejected the SASL login, or does not support SASL (" + why +
                            "); check --user and --password-file, and that the server runs with -S");
      return not_sent(
          Kind::unreachable,
          "no answer in the binary protocol (" + why + "); is the server up, and without -B ascii?", late);
    }
    if (beginning.look == MEMCACHED_AUTH_FAILURE)
      return not_sent(
          Kind::denied,
          "the server requires a SASL login; give --auth sasl, --user NAME and --password-file FILE");
    // A full server refuses the append for lack of memory, in the binary protocol.
    if (beginning.look != MEMCACHED_SUCCESS && word_for(Op::append, beginning.look) == nullptr)
      return not_sent(Kind::unreachable,
                      "the server does not answer in memcached's binary protocol; check the port, and omit "
                      "--protocol binary");
    protocol_.words = ServerProtocol::CommandSet::classic;
    protocol_.take_version(version);
    return std::nullopt;
  }

  // Sends add, then gets. Only the add is a change, so only its unknown outcome is reported.
  Reply add_and_get(const Request& request) {
    Request part = request;
    part.op = Op::add;
    Reply added = ask(part);
    if (added.unknown() || added.is(Kind::denied)) return added;
    if (child_ == nullptr) {
      if (auto failure = open()) return *std::move(failure);
    }
    part.op = Op::gets;
    Reply reply = ask(part);
    reply.created =
        added.outcome == Outcome::stored && reply.outcome == Outcome::hit && reply.value == request.value;
    return reply;
  }

  Reply ask(const Request& request) {
    const std::int32_t timeout = milliseconds_left(options_.timeout);
    if (timeout == 0)
      return Reply::failed_with(Kind::unreachable, "not sent: the deadline has passed", index_, true);
    const bool removes = request.op == Op::remove_if;
    const Question question{.op = request.op,
                            .flags = request.flags,
                            .exptime = removes ? Exptime::gone().wire() : request.exptime.wire(),
                            .delta = request.delta,
                            .cas = request.cas.value,
                            .timeout_ms = timeout};
    const Line line = child_->line();
    child_->wait_no_longer_than(3 * std::chrono::milliseconds(timeout) + std::chrono::seconds(1));
    Answer answer{};
    std::optional<std::string> value;
    if (line.send_value(question) && line.send_text(request.key) &&
        line.send_text(removes ? "" : request.value) && line.receive_value(answer))
      value = line.receive_text();
    if (!value) return lost(request, "libmemcached crashed, or did not answer in time");
    return translated(request, answer, std::move(*value));
  }

  Reply lost(const Request& request, const std::string& why, bool late = true) {
    child_.reset();
    const bool maybe = !changes_nothing(request.op);
    return Reply::failed_with(Kind::unknown, maybe ? why + std::string(may_be_applied) : why, index_, late);
  }

  Reply translated(const Request& request, const Answer& answer, std::string value) {
    if (answer.is_text) return Reply::of_text(std::move(value), index_);
    if (answer.said == MEMCACHED_SUCCESS) {
      Reply reply = Reply::of(success_of(request.op), index_);
      reply.value = std::move(value);
      reply.number = answer.number;
      reply.flags = answer.flags;
      if (asked_by(request.op) == Asked::read && request.op != Op::get) {
        reply.cas = {answer.cas};
        seen_cas_tokens_.insert(answer.cas);
      }
      return reply;
    }
    const Word* const word = word_for(request.op, answer.said);
    if (word == nullptr)
      return lost(
          request,
          "no valid answer in the binary protocol (libmemcached: " + std::to_string(answer.said) + ")",
          answer.said == MEMCACHED_TIMEOUT);
    if (word->outcome != Outcome::failed) return Reply::of(word->outcome, index_);
    return Reply::failed_with(word->kind, word->really, index_);
  }

  const Server& server_;
  std::size_t index_;
  const ConnectOptions& options_;
  SystemClock clock_;
  ServerProtocol protocol_;
  std::unique_ptr<Child> child_;
  std::unordered_set<std::uint64_t> seen_cas_tokens_;  // cas tokens fetched on this connection
};

class BinaryTransport final : public Transport {
 public:
  BinaryTransport(std::shared_ptr<const Placement> placement, const ConnectOptions& options)
      : placement_(std::move(placement)), options_(options) {
    static_cast<void>(library());
    for (const Server& server : placement_->pool())
      connections_.push_back(std::make_unique<BinaryConnection>(server, connections_.size(), options_));
  }

  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override {
    std::vector<Reply> replies;
    std::set<std::size_t> silent;  // servers that let a request of this batch wait for too long
    for (const Request& request : batch) {
      const SteadyTime before = clock_.steady();
      const std::size_t server = server_of(request);
      if (silent.contains(server)) {
        replies.push_back(Reply::failed_with(
            Kind::unreachable, "not sent: the server did not answer an earlier request", server, true));
        continue;
      }
      replies.push_back(connections_[server]->execute(request));
      if (replies.back().failed() && replies.back().failure->late) silent.insert(server);
      replies.back().round_trip =
          std::chrono::duration_cast<std::chrono::microseconds>(clock_.steady() - before);
    }
    return replies;
  }
  const Placement& placement() const override { return *placement_; }
  const ServerProtocol& protocol(std::size_t server) const override {
    return connections_[server]->protocol();
  }

 private:
  std::shared_ptr<const Placement> placement_;
  ConnectOptions options_;
  SystemClock clock_;
  std::vector<std::unique_ptr<BinaryConnection>> connections_;
};

}  // namespace

const Word* word_for(Op op, memcached_return_t said) {
  const Asked asked = asked_by(op);
  for (const Word& word : words) {
    const bool of_all = word.outcome == Outcome::failed;
    if (word.said == said && (of_all || word.asked == asked)) return &word;
  }
  return nullptr;
}

std::unique_ptr<Transport> make_binary_transport(std::shared_ptr<const Placement> placement,
                                                 const ConnectOptions& options) {
  return std::make_unique<BinaryTransport>(std::move(placement), options);
}

}  // namespace mcds::libmemcached
