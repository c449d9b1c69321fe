#include <poll.h>

#include <numeric>
#include <set>

#include "common/cluster/decorators.hpp"
#include "common/cluster/wire/greeting.hpp"
#include "common/cluster/wire/socket.hpp"

namespace mcds {

namespace {

using Kind = ReplyFailure::Kind;

constexpr Duration probe_interval = std::chrono::milliseconds(100);
constexpr int max_doublings = 6;

bool of_the_server(const Reply& reply) {
  return reply.is(Kind::unreachable) || (reply.unknown() && !reply.failure->relayed);
}

// Returns true for increments only: they commute with later requests, so a late retry does no harm.
bool only_counts(std::span<const Request> batch) {
  return std::ranges::all_of(batch, [](const Request& request) { return request.op == Op::incr_or_create; });
}

// Sends `version` (in the binary protocol, a request for SASL mechanisms) to one server on a separate
// connection, without blocking, to see whether it answers again.
class HealthProbe {
 public:
  // `tls` is nullptr for a server that is reached without it.
  HealthProbe(const Server& server, const tls::Context* tls, bool binary)
      : question_(binary ? meta::binary_question : "version\r\n"),
        socket_(server, tls),
        failed_(!socket_.start(Duration::zero())) {}

  enum class State { waiting, answered, failed };
  State look() {
    using Connection = meta::Socket::State;
    if (!failed_ && socket_.state() == Connection::connecting) {
      pollfd ready{socket_.descriptor(), POLLOUT, 0};
      if (poll(&ready, 1, 0) == 0) return State::waiting;
      failed_ = socket_.finish_connecting() == Connection::closed;
      if (!failed_ && socket_.state() == Connection::connecting) return State::waiting;
    }
    if (failed_ || (!sent_ && !send())) return State::failed;
    const std::ptrdiff_t size = socket_.receive(answer_);
    if (answer_.starts_with('\x81')) return State::answered;
    const std::size_t end = answer_.find('\n');
    // A CLIENT_ERROR comes from a server that requires a login; it is healthy too.
    const bool healthy = answer_.starts_with("VERSION ") || answer_.starts_with("CLIENT_ERROR ");
    if (end != std::string::npos) return healthy ? State::answered : State::failed;
    return size < 0 || answer_.size() > 4096 ? State::failed : State::waiting;
  }
  // Return the descriptor and the events to poll for before the next look().
  int descriptor() const { return socket_.descriptor(); }
  short events() const { return socket_.state() == meta::Socket::State::open && sent_ ? POLLIN : POLLOUT; }

 private:
  bool send() {
    const std::ptrdiff_t size = socket_.send(question_.data(), question_.size());
    sent_ = size == static_cast<std::ptrdiff_t>(question_.size());
    return size >= 0;
  }

  std::string_view question_;
  meta::Socket socket_;
  bool sent_ = false;
  bool failed_ = false;
  std::string answer_;
};

class HealthGuard final : public Decorator {
 public:
  HealthGuard(std::unique_ptr<Cluster> inner, const ConnectOptions& options)
      : Decorator(std::move(inner)), options_(options), servers_(placement().pool().size()) {}

  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override {
    if (stands_aside()) return inner().execute(batch);
    if (options_.run->over(clock_.steady())) {
      std::vector<Reply> replies;
      for (const Request& request : batch)
        replies.push_back(Reply::failed_with(Kind::unreachable, "not sent: " + options_.run->why_over(),
                                             server_of(request)));
      return replies;
    }
    std::vector<Reply> replies;
    Places sent;
    if (watched_ == 0) {
      replies = inner().execute(batch);
    } else {
      replies.resize(batch.size());
      sent = send_to_the_well(batch, replies);
      if (sent.empty()) return replies;
    }
    settle(batch, sent, replies, true);
    return replies;
  }

  std::unique_ptr<Pending> begin(std::vector<Request> batch) override {
    if (stands_aside()) return inner().begin(std::move(batch));
    if (watched_ > 0 || options_.run->over(clock_.steady())) return Decorator::begin(std::move(batch));
    return settled_later(inner().begin(std::move(batch)),
                         [this](std::span<const Request> begun, std::vector<Reply>& replies) {
                           if (begun.size() == replies.size()) settle(begun, {}, replies, only_counts(begun));
                         });
  }

 private:
  using Places = std::vector<std::size_t>;  // indexes into a batch
  struct Server {
    bool unhealthy = false;
    bool suspected = false;  // its connection failed once; the next request decides
    bool proven = true;      // it has answered a request since it was last unhealthy
    int relapses = 0;        // times it became unhealthy again without answering a request in between
    std::string cause;
    SteadyTime held_until{};
    SteadyTime next_probe{};
    SteadyTime probe_until{};
    std::unique_ptr<HealthProbe> probe;
  };

  bool stands_aside() const { return options_.run->unhealthy() == RunLimits::UnhealthyPolicy::try_always; }

  // Sends the requests for healthy servers and returns their indexes; the others fail.
  Places send_to_the_well(std::span<const Request> batch, std::vector<Reply>& replies) {
    std::set<std::size_t> involved;
    for (const Request& request : batch) involved.insert(server_of(request));
    for (const std::size_t server : involved) look_at(server);
    if (options_.run->unhealthy() == RunLimits::UnhealthyPolicy::hold) hold_for(involved);
    Places places;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const std::size_t server = server_of(batch[i]);
      if (servers_[server].unhealthy) {
        replies[i] = Reply::failed_with(Kind::unreachable, servers_[server].cause, server);
      } else {
        places.push_back(i);
      }
    }
    execute_at(places, inner(), batch, replies);
    return places;
  }

  // Updates the servers' health from the replies at `sent` (all, if it is empty), and retries.
  void settle(std::span<const Request> batch, const Places& sent, std::vector<Reply>& replies,
              bool changes_too) {
    const bool failed = std::ranges::any_of(replies, of_the_server);
    if (!failed && watched_ == 0) return;
    Places places = sent;
    if (places.empty()) {
      places.resize(batch.size());
      std::iota(places.begin(), places.end(), std::size_t{0});
    }
    note(places, replies);
    Places again = tried_again(batch, places, replies, changes_too);
    if (again.empty()) return;
    if (options_.run->unhealthy() == RunLimits::UnhealthyPolicy::hold) {
      std::set<std::size_t> involved;
      for (const std::size_t place : again) involved.insert(replies[place].server);
      hold_for(involved);
      std::erase_if(again, [&](std::size_t place) { return servers_[replies[place].server].unhealthy; });
    } else {
      std::erase_if(again, [&](std::size_t place) { return replies[place].failure->late; });
    }
    execute_at(again, inner(), batch, replies);
    note(again, replies);
  }

  Places tried_again(std::span<const Request> batch, const Places& places, const std::vector<Reply>& replies,
                     bool changes_too) const {
    std::set<std::pair<std::size_t, std::string_view>> unsettled;
    for (const std::size_t place : places) {
      if (replies[place].unknown()) unsettled.emplace(replies[place].server, batch[place].key);
    }
    Places again;
    for (const std::size_t place : places) {
      const Reply& reply = replies[place];
      const bool may = reply.is(Kind::unreachable) && (changes_too || changes_nothing(batch[place].op)) &&
                       !unsettled.contains({reply.server, batch[place].key});
      if (may) again.push_back(place);
    }
    return again;
  }

  // Updates the servers' health from one trip. Failures are applied last, because a server that fell silent
  // may have answered a part of the batch before.
  void note(const Places& places, const std::vector<Reply>& replies) {
    std::map<std::size_t, const ReplyFailure*> failed;
    for (const std::size_t place : places) {
      const Reply& reply = replies[place];
      if (of_the_server(reply)) {
        failed.emplace(reply.server, reply.failure.get());
        continue;
      }
      Server& server = servers_[reply.server];
      if ((server.unhealthy || server.suspected || !server.proven) &&
          reply.protocol != Reply::Protocol::none) {
        server = Server{};
        --watched_;
      }
    }
    for (const auto& [server, failure] : failed) fail(servers_[server], *failure);
  }

  void fail(Server& server, const ReplyFailure& failure) {
    if (server.unhealthy) return;
    const bool was_well = server.proven && !server.suspected;
    if (was_well) ++watched_;
    server.suspected =
        was_well && !failure.late && options_.run->unhealthy() == RunLimits::UnhealthyPolicy::skip;
    if (server.suspected) return;
    const SteadyTime now = clock_.steady();
    server.unhealthy = true;
    server.cause = failure.message.substr(0, failure.message.find(may_be_applied));
    server.probe.reset();
    server.held_until = server.proven ? now + options_.timeout : now;
    server.next_probe =
        server.proven ? now : now + options_.timeout * (1 << std::min(server.relapses++, max_doublings));
    server.proven = false;
  }

  // Starts a health probe when it is due, and marks the server as healthy if it was answered.
  void look_at(std::size_t index) {
    Server& server = servers_[index];
    if (!server.unhealthy) return;
    const SteadyTime now = clock_.steady();
    if (server.probe == nullptr) {
      if (now < server.next_probe) return;
      const ::mcds::Server& one = placement().pool()[index];
      server.probe = std::make_unique<HealthProbe>(one, tls_.of(one),
                                                   options_.protocol == ConnectOptions::Protocol::binary);
      server.probe_until = now + options_.timeout;
    }
    const HealthProbe::State state = server.probe->look();
    if (state == HealthProbe::State::waiting && now < server.probe_until) return;
    server.probe.reset();
    server.next_probe = now + probe_interval;
    server.unhealthy = state != HealthProbe::State::answered;
  }

  // Waits until each of these servers is healthy or its time to recover (held_until) is over.
  void hold_for(const std::set<std::size_t>& involved) {
    while (true) {
      const SteadyTime now = clock_.steady();
      SteadyTime next = now + probe_interval;
      std::vector<pollfd> waiting;
      bool any = false;
      for (const std::size_t index : involved) {
        const Server& server = servers_[index];
        const SteadyTime until = options_.run->earlier(server.held_until);
        if (!server.unhealthy || now >= until) continue;
        look_at(index);
        if (!server.unhealthy) continue;
        any = true;
        next = std::min(next, until);
        if (server.probe != nullptr)
          waiting.push_back({server.probe->descriptor(), server.probe->events(), 0});
      }
      if (!any) return;
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - now).count();
      poll(waiting.data(), waiting.size(), static_cast<int>(std::max<std::int64_t>(left, 1)));
    }
  }

  const ConnectOptions options_;
  SystemClock clock_;
  std::vector<Server> servers_;
  tls::Contexts tls_;
  std::size_t watched_ = 0;  // servers that are unhealthy, doubted or not yet proven
};

}  // namespace

std::unique_ptr<Cluster> guarded(std::unique_ptr<Cluster> inner, const ConnectOptions& options) {
  return std::make_unique<HealthGuard>(std::move(inner), options);
}

}  // namespace mcds
