#include <poll.h>

#include <numeric>
#include <set>

#include "common/cluster/cluster.hpp"
#include "common/cluster/decorators.hpp"
#include "common/cluster/transport.hpp"
#include "common/cluster/wire/socket.hpp"

namespace mcds {

namespace {

constexpr std::string_view question = "version\r\n";

using Kind = ReplyFailure::Kind;

constexpr Duration between_trials = std::chrono::milliseconds(100);
constexpr int most_doublings = 6;

bool of_the_server(const Reply& reply) {
  return reply.is(Kind::unreachable) || (reply.unknown() && !reply.failure->relayed);
}

// These commute with whatever was begun after them; another change would be tried again behind a later one.
bool only_counts(std::span<const Request> batch) {
  return std::ranges::all_of(batch, [](const Request& request) { return request.op == Op::incr_or_create; });
}

// Asks one server for its version on a separate connection, without waiting, to see whether it answers again.
class Trial {
 public:
  // `tls`: for a server that is reached by it.
  Trial(const Server& server, const tls::Context* tls)
      : socket_(server, tls), failed_(!socket_.start(Duration::zero())) {}

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
    const std::size_t end = answer_.find('\n');
    // A server that requires a login is healthy too.
    const bool healthy = answer_.starts_with("VERSION ") || answer_.starts_with("CLIENT_ERROR ");
    if (end != std::string::npos) return healthy ? State::answered : State::failed;
    return size < 0 || answer_.size() > 4096 ? State::failed : State::waiting;
  }
  // What to poll for before the next look.
  int descriptor() const { return socket_.descriptor(); }
  short events() const { return socket_.state() == meta::Socket::State::open && sent_ ? POLLIN : POLLOUT; }

 private:
  bool send() {
    const std::ptrdiff_t size = socket_.send(question.data(), question.size());
    sent_ = size == static_cast<std::ptrdiff_t>(question.size());
    return size >= 0;
  }

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
  using Places = std::vector<std::size_t>;  // in a batch
  struct Server {
    bool sick = false;
    bool doubted = false;  // its connection failed, and nothing was sent since
    bool proven = true;    // it has answered a request since it was sick
    int relapses = 0;      // without having answered one
    std::string cause;
    SteadyTime held_until{};
    SteadyTime next_trial{};
    SteadyTime trial_until{};
    std::unique_ptr<Trial> trial;
  };

  bool stands_aside() const { return options_.run->sick() == RunLimits::Sick::try_always; }

  // What was sent; the rest fails as the server first did.
  Places send_to_the_well(std::span<const Request> batch, std::vector<Reply>& replies) {
    std::set<std::size_t> involved;
    for (const Request& request : batch) involved.insert(server_of(request));
    for (const std::size_t server : involved) look_at(server);
    if (options_.run->sick() == RunLimits::Sick::hold) hold_for(involved);
    Places places;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const std::size_t server = server_of(batch[i]);
      if (servers_[server].sick) {
        replies[i] = Reply::failed_with(Kind::unreachable, servers_[server].cause, server);
      } else {
        places.push_back(i);
      }
    }
    execute_at(places, inner(), batch, replies);
    return places;
  }

  // Settles the replies of what was sent at `places` (all, if it is empty).
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
    if (options_.run->sick() == RunLimits::Sick::hold) {
      std::set<std::size_t> involved;
      for (const std::size_t place : again) involved.insert(replies[place].server);
      hold_for(involved);
      std::erase_if(again, [&](std::size_t place) { return servers_[replies[place].server].sick; });
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

  // What one trip shows of the servers.
  // A server that fell silent may have answered a part before.
  void note(const Places& places, const std::vector<Reply>& replies) {
    std::map<std::size_t, const ReplyFailure*> failed;
    for (const std::size_t place : places) {
      const Reply& reply = replies[place];
      if (of_the_server(reply)) {
        failed.emplace(reply.server, reply.failure.get());
        continue;
      }
      Server& server = servers_[reply.server];
      if ((server.sick || server.doubted || !server.proven) && reply.protocol != Reply::Protocol::none) {
        server = Server{};
        --watched_;
      }
    }
    for (const auto& [server, failure] : failed) fail(servers_[server], *failure);
  }

  void fail(Server& server, const ReplyFailure& failure) {
    if (server.sick) return;
    const bool was_well = server.proven && !server.doubted;
    if (was_well) ++watched_;
    server.doubted = was_well && !failure.late && options_.run->sick() == RunLimits::Sick::skip;
    if (server.doubted) return;
    const SteadyTime now = clock_.steady();
    server.sick = true;
    server.cause = failure.message.substr(0, failure.message.find(may_be_applied));
    server.trial.reset();
    server.held_until = server.proven ? now + options_.timeout : now;
    server.next_trial =
        server.proven ? now : now + options_.timeout * (1 << std::min(server.relapses++, most_doublings));
    server.proven = false;
  }

  // Begins a trial when it is time for one, and ends the sickness when it was answered.
  void look_at(std::size_t index) {
    Server& server = servers_[index];
    if (!server.sick) return;
    const SteadyTime now = clock_.steady();
    if (server.trial == nullptr) {
      if (now < server.next_trial) return;
      const ::mcds::Server& one = placement().pool()[index];
      server.trial = std::make_unique<Trial>(one, tls_.of(one));
      server.trial_until = now + options_.timeout;
    }
    const Trial::State state = server.trial->look();
    if (state == Trial::State::waiting && now < server.trial_until) return;
    server.trial.reset();
    server.next_trial = now + between_trials;
    server.sick = state != Trial::State::answered;
  }

  // Until each of them is well again or was held long enough.
  void hold_for(const std::set<std::size_t>& involved) {
    while (true) {
      const SteadyTime now = clock_.steady();
      SteadyTime next = now + between_trials;
      std::vector<pollfd> waiting;
      bool any = false;
      for (const std::size_t index : involved) {
        const Server& server = servers_[index];
        const SteadyTime until = options_.run->earlier(server.held_until);
        if (!server.sick || now >= until) continue;
        look_at(index);
        if (!server.sick) continue;
        any = true;
        next = std::min(next, until);
        if (server.trial != nullptr)
          waiting.push_back({server.trial->descriptor(), server.trial->events(), 0});
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
  std::size_t watched_ = 0;  // servers that are sick, in doubt or not yet proven well
};

}  // namespace

std::unique_ptr<Cluster> guarded(std::unique_ptr<Cluster> inner, const ConnectOptions& options) {
  return std::make_unique<HealthGuard>(std::move(inner), options);
}

}  // namespace mcds
