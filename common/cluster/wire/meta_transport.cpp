#include <poll.h>

#include "common/base/bounds.hpp"
#include "common/base/bytes.hpp"
#include "common/cluster/wire/server_connection.hpp"

namespace mcds {

namespace {

using meta::IncrForm;
using meta::ServerConnection;

// A batch of at least this many incr_or_create and nothing else is sent as plain incrs, and a second trip
// creates the missing items. If most keys exist, this halves the server's work. Another client may create a
// key between the two trips; increments commute, but `created` may be wrong if that client used the same
// initial number.
constexpr std::size_t min_to_try = 64;

// One connection that a batch waits for, and the number of answered requests at which it is done.
struct BatchProgress {
  ServerConnection* connection;
  std::uint64_t answers;
  bool done() const { return connection->answered() >= answers; }
};
using Trip = std::vector<BatchProgress>;

bool is_done(const Trip& trip) {
  return std::ranges::all_of(trip, &BatchProgress::done);
}

class WireTransport final : public Transport {
 public:
  WireTransport(std::shared_ptr<const Placement> placement, const ConnectOptions& options)
      : placement_(std::move(placement)),
        options_(options),
        connections_(placement_->pool().size()),
        not_greeted_(meta::Handshake::ungreeted(options)) {}

  using Cluster::execute;

  std::vector<Reply> execute(std::span<const Request> batch) override {
    std::vector<Reply> replies = unsent(batch);
    if (!in_two_trips(batch)) {
      const bool counts = std::ranges::any_of(batch, creates_numbers);
      if (counts) finish_others();
      wait_for(start(batch, replies, IncrForm::whole, not_refused));
      if (counts) {
        count_without_room(batch, replies);
        put_back_texts(batch, replies);
      }
      return replies;
    }
    finish_others();
    wait_for(start(batch, replies, IncrForm::incr_only, not_refused));
    create_missing(batch, replies);
    return replies;
  }

  std::unique_ptr<Pending> begin(std::vector<Request> batch) override {
    const bool two_trips = in_two_trips(batch);
    if (!two_trips && std::ranges::any_of(batch, creates_numbers)) return Cluster::begin(std::move(batch));
    const auto flight = std::make_shared<InFlight>(unsent(batch));
    flight->trip =
        start(batch, flight->replies, two_trips ? IncrForm::incr_only : IncrForm::whole, not_refused);
    return std::make_unique<Pending>(std::move(batch),
                                     [this, flight, two_trips](std::span<const Request> begun) {
                                       wait_for(flight->trip);
                                       if (two_trips) create_missing(begun, flight->replies);
                                       return std::move(flight->replies);
                                     });
  }

  const Placement& placement() const override { return *placement_; }
  const ServerProtocol& protocol(std::size_t server) const override {
    return connections_[server] == nullptr ? not_greeted_ : connections_[server]->protocol();
  }

 private:
  struct InFlight {
    explicit InFlight(std::vector<Reply> unsent) : replies(std::move(unsent)) {}
    // Requests in flight would write to replies that no longer exist.
    ~InFlight() {
      for (const BatchProgress& one : trip) {
        if (!one.done()) one.connection->drop();
      }
    }
    InFlight(const InFlight&) = delete;
    InFlight& operator=(const InFlight&) = delete;

    std::vector<Reply> replies;
    Trip trip = {};
  };

  static bool in_two_trips(std::span<const Request> batch) {
    const auto creates = [](const Request& request) { return creates_numbers(request) && request.creates; };
    return batch.size() >= min_to_try && std::ranges::all_of(batch, creates);
  }

  // Makes the second of two trips, for items that the first did not find. Nothing else is in flight
  // meanwhile, because a connection sends all incr_or_create in one form.
  void create_missing(std::span<const Request> batch, std::vector<Reply>& replies) {
    const auto missing = [](const Reply& reply) { return reply.outcome == Outcome::not_found; };
    if (std::ranges::none_of(replies, missing)) return;
    finish_others();
    wait_for(start(batch, replies, IncrForm::create, missing));
  }

  static bool creates_numbers(const Request& request) { return request.op == Op::incr_or_create; }

  // Retries increments that were refused for lack of room. While the answer to the preceding `mg` is in
  // transit, 1.6.18 to 1.6.42 cannot change the item in place; under -M they refuse if there is no room for a
  // second item. The answer has arrived by then and no longer refers to the item.
  void count_without_room(std::span<const Request> batch, std::vector<Reply>& replies) {
    const std::vector<Reply> before = replies;
    const auto wanted = [](const Reply& reply) {
      return reply.is(ReplyFailure::Kind::refused) && parse_padded_u64(reply.value);
    };
    if (std::ranges::none_of(replies, wanted)) return;
    wait_for(start(batch, replies, IncrForm::incr_only, wanted));
    for (std::size_t i = 0; i < replies.size(); ++i) {
      if (wanted(before[i]) && replies[i].outcome == Outcome::not_found) replies[i] = before[i];
    }
  }

  // Restores texts that start with digits and were therefore incremented; the preceding `mg` returned them.
  void put_back_texts(std::span<const Request> batch, std::vector<Reply>& replies) {
    std::vector<Request> requests;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const Reply& counted = replies[i];
      if (!counted.is(ReplyFailure::Kind::not_a_number) || counted.number == 0) continue;
      const Exptime exptime =
          Exptime::of_ttl(counted.age.ttl.value_or(std::chrono::seconds(-1)), clock_.wall());
      Request request = Request::compare_and_set(batch[i].key, counted.value, exptime, counted.cas);
      request.flags = counted.flags;
      requests.push_back(std::move(request).on(counted.server));
      places.push_back(i);
    }
    if (requests.empty()) return;
    const std::vector<Reply> answers = execute(requests);
    for (std::size_t k = 0; k < places.size(); ++k) {
      if (answers[k].outcome == Outcome::stored) continue;
      Reply& counted = replies[places[k]];
      std::string text = std::move(counted.value);
      counted = Reply::failed_with(ReplyFailure::Kind::not_a_number,
                                   "the value was not a number but '" + text.substr(0, 40) +
                                       "'; the server made it " + std::to_string(counted.number) +
                                       ", and it could not be put back",
                                   counted.server);
      counted.value = std::move(text);
    }
  }

  static bool not_refused(const Reply& reply) { return reply.failure == nullptr; }

  // Returns replies with their server set. Requests that must not be sent have failed already.
  std::vector<Reply> unsent(std::span<const Request> batch) {
    std::vector<Reply> replies(batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const std::size_t server = server_of(batch[i]);
      static_cast<void>(tls_.of(placement_->pool()[server]));
      replies[i].server = server;
      if (auto refusal = refusal_before_sending(batch[i])) {
        replies[i] = Reply::failed_with(ReplyFailure::Kind::refused, std::move(*refusal), server);
      }
    }
    return replies;
  }

  // Adds the requests whose replies are `wanted` to their connections, which send what the kernel accepts.
  template <typename Wanted>
  Trip start(std::span<const Request> batch, std::vector<Reply>& replies, IncrForm incr_form, Wanted wanted) {
    std::vector<ServerConnection*> involved(connections_.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (!wanted(replies[i])) continue;
      ServerConnection*& connection = involved[replies[i].server];
      if (connection == nullptr) {
        connection = &connection_of(replies[i].server);
        connection->begin(incr_form);
      }
      if (replies[i].outcome != Outcome::failed || replies[i].failure)
        replies[i] = Reply::of(Outcome::failed, replies[i].server);
      connection->add(batch[i], replies[i]);
    }
    Trip trip;
    for (ServerConnection* connection : involved) {
      if (connection == nullptr) continue;
      trip.push_back({connection, connection->added()});
      connection->start(clock_.steady());
    }
    return trip;
  }

  ServerConnection& connection_of(std::size_t server) {
    if (connections_[server] == nullptr)
      connections_[server] = std::make_unique<ServerConnection>(placement_->pool()[server], server, options_,
                                                                tls_.of(placement_->pool()[server]));
    return *connections_[server];
  }

  void finish_others() {
    Trip others;
    for (const auto& connection : connections_) {
      if (connection != nullptr) others.push_back({connection.get(), connection->added()});
    }
    wait_for(others);
  }

  // Serves all connections until the trip is done, also those of other batches. Writing and reading are
  // interleaved, so that neither side can block the other.
  void wait_for(const Trip& trip) {
    const SteadyTime begun = clock_.steady();
    for (const auto& connection : connections_) {
      if (connection != nullptr && connection->busy()) connection->expect_by(begun);
    }
    const std::uint64_t most = received_bytes() + max_answers_size;
    std::vector<pollfd> waiting;
    std::vector<ServerConnection*> busy;
    while (!is_done(trip)) {
      waiting.clear();
      busy.clear();
      SteadyTime soonest = SteadyTime::max();
      for (const auto& connection : connections_) {
        if (connection == nullptr || !connection->busy()) continue;
        busy.push_back(connection.get());
        waiting.push_back({connection->descriptor(), connection->events(), 0});
        soonest = std::min(soonest, connection->deadline());
      }
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(soonest - clock_.steady()).count();
      const int ready =
          poll(waiting.data(), waiting.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, 1000)));
      const SteadyTime now = clock_.steady();
      if (ready == 0 && options_.run) options_.run->report(now);
      for (std::size_t i = 0; i < busy.size(); ++i)
        busy[i]->proceed(ready > 0 ? waiting[i].revents : short{0}, now);
      if (received_bytes() <= most) continue;
      for (ServerConnection* connection : busy) {
        if (connection->busy()) connection->give_up_flood();
      }
    }
  }

  std::uint64_t received_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& connection : connections_)
      sum += connection == nullptr ? 0 : connection->received_bytes();
    return sum;
  }

  std::shared_ptr<const Placement> placement_;
  ConnectOptions options_;
  SystemClock clock_;
  tls::Contexts tls_;  // created before anything is sent to a server that needs one
  std::vector<std::unique_ptr<ServerConnection>> connections_;
  ServerProtocol not_greeted_;
};

}  // namespace

std::unique_ptr<Transport> make_transport(std::shared_ptr<const Placement> placement,
                                          const ConnectOptions& options) {
  return std::make_unique<WireTransport>(std::move(placement), options);
}

}  // namespace mcds
