#include <poll.h>

#include "common/base/bounds.hpp"
#include "common/base/bytes.hpp"
#include "common/cluster/transport.hpp"
#include "common/cluster/wire/lane.hpp"

namespace mcds {

namespace {

using meta::IncrForm;
using meta::Lane;

// A batch of at least this many incr_or_create and nothing else is sent as plain incrs, and a second trip
// creates what was missing:
// where the keys exist that halves the server's work. Between the two a rival may create a key; its
// increments and ours commute (`created` may then be wrong for one whose rival began at the same number).
constexpr std::size_t enough_to_try = 64;

// What one batch waits for: a lane, and how many answers of it.
struct Awaited {
  Lane* lane;
  std::uint64_t answers;
  bool done() const { return lane->answered() >= answers; }
};
using Trip = std::vector<Awaited>;

bool is_done(const Trip& trip) {
  return std::ranges::all_of(trip, &Awaited::done);
}

class WireTransport final : public Transport {
 public:
  WireTransport(std::shared_ptr<const Placement> placement, const ConnectOptions& options)
      : placement_(std::move(placement)),
        options_(options),
        lanes_(placement_->pool().size()),
        not_greeted_(Lane::ungreeted(options)) {}

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
    const bool counts = std::ranges::any_of(batch, creates_numbers);
    if (counts && !in_two_trips(batch)) return Cluster::begin(std::move(batch));
    return std::make_unique<Begun>(*this, std::move(batch));
  }

  const Placement& placement() const override { return *placement_; }
  const Dialect& dialect(std::size_t server) const override {
    return lanes_[server] == nullptr ? not_greeted_ : lanes_[server]->dialect();
  }

 private:
  class Begun final : public Pending {
   public:
    Begun(WireTransport& transport, std::vector<Request> batch)
        : transport_(transport),
          batch_(std::move(batch)),
          replies_(transport.unsent(batch_)),
          counts_(in_two_trips(batch_)),
          trip_(transport.start(batch_, replies_, counts_ ? IncrForm::incr_only : IncrForm::whole,
                                not_refused)) {}
    // The lanes would write to replies that are gone.
    ~Begun() override {
      for (const Awaited& one : trip_) {
        if (!one.done()) one.lane->drop();
      }
    }
    Begun(const Begun&) = delete;
    Begun& operator=(const Begun&) = delete;

    std::span<const Request> batch() const override { return batch_; }
    std::vector<Reply> finish() override {
      transport_.wait_for(trip_);
      if (counts_) transport_.create_missing(batch_, replies_);
      return std::move(replies_);
    }

   private:
    WireTransport& transport_;
    std::vector<Request> batch_;
    std::vector<Reply> replies_;
    bool counts_;
    Trip trip_;
  };

  static bool in_two_trips(std::span<const Request> batch) {
    const auto creates = [](const Request& request) { return creates_numbers(request) && request.creates; };
    return batch.size() >= enough_to_try && std::ranges::all_of(batch, creates);
  }

  // The second of two trips, for what the first did not find. Nothing else is in flight meanwhile: a lane
  // sends all incr_or_create in one form.
  void create_missing(std::span<const Request> batch, std::vector<Reply>& replies) {
    const auto missing = [](const Reply& reply) { return reply.outcome == Outcome::not_found; };
    if (std::ranges::none_of(replies, missing)) return;
    finish_others();
    wait_for(start(batch, replies, IncrForm::create, missing));
  }

  static bool creates_numbers(const Request& request) { return request.op == Op::incr_or_create; }

  // While the answer to the `mg` in front is in transit, 1.6.18 to 1.6.42 cannot change the item in its
  // place; under -M they refuse if there is no room for a second one. Nothing refers to it any more.
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

  // Servers count text up that begins with digits; the `mg` in front has seen what it was.
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

  // Replies that know their servers, and what must not be sent.
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

  // Hands the requests whose replies are `wanted` to their lanes, which send what the kernel takes at once.
  template <typename Wanted>
  Trip start(std::span<const Request> batch, std::vector<Reply>& replies, IncrForm incr_form, Wanted wanted) {
    std::vector<Lane*> involved(lanes_.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (!wanted(replies[i])) continue;
      Lane*& lane = involved[replies[i].server];
      if (lane == nullptr) {
        lane = &lane_of(replies[i].server);
        lane->begin(incr_form);
      }
      if (replies[i].outcome != Outcome::failed || replies[i].failure)
        replies[i] = Reply::of(Outcome::failed, replies[i].server);
      lane->add(batch[i], replies[i]);
    }
    Trip trip;
    for (Lane* lane : involved) {
      if (lane == nullptr) continue;
      trip.push_back({lane, lane->added()});
      lane->start(clock_.steady());
    }
    return trip;
  }

  Lane& lane_of(std::size_t server) {
    if (lanes_[server] == nullptr)
      lanes_[server] = std::make_unique<Lane>(placement_->pool()[server], server, options_,
                                              tls_.of(placement_->pool()[server]));
    return *lanes_[server];
  }

  void finish_others() {
    Trip others;
    for (const auto& lane : lanes_) {
      if (lane != nullptr) others.push_back({lane.get(), lane->added()});
    }
    wait_for(others);
  }

  // All servers at once, those of other batches too: writing and reading are interleaved, so neither side can
  // block the other.
  void wait_for(const Trip& trip) {
    const SteadyTime begun = clock_.steady();
    for (const auto& lane : lanes_) {
      if (lane != nullptr && lane->busy()) lane->expect_by(begun);
    }
    const std::uint64_t most = heard_bytes() + largest_answers;
    std::vector<pollfd> waiting;
    std::vector<Lane*> busy;
    while (!is_done(trip)) {
      waiting.clear();
      busy.clear();
      SteadyTime soonest = SteadyTime::max();
      for (const auto& lane : lanes_) {
        if (lane == nullptr || !lane->busy()) continue;
        busy.push_back(lane.get());
        waiting.push_back({lane->descriptor(), lane->events(), 0});
        soonest = std::min(soonest, lane->deadline());
      }
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(soonest - clock_.steady()).count();
      const int ready =
          poll(waiting.data(), waiting.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, 60000)));
      const SteadyTime now = clock_.steady();
      for (std::size_t i = 0; i < busy.size(); ++i)
        busy[i]->proceed(ready > 0 ? waiting[i].revents : short{0}, now);
      if (heard_bytes() <= most) continue;
      for (Lane* lane : busy) {
        if (lane->busy()) lane->give_up_flood();
      }
    }
  }

  std::uint64_t heard_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& lane : lanes_) sum += lane == nullptr ? 0 : lane->heard_bytes();
    return sum;
  }

  std::shared_ptr<const Placement> placement_;
  ConnectOptions options_;
  SystemClock clock_;
  tls::Contexts tls_;  // made before anything is sent to a server that needs one
  std::vector<std::unique_ptr<Lane>> lanes_;
  Dialect not_greeted_;
};

}  // namespace

std::unique_ptr<Transport> make_transport(std::shared_ptr<const Placement> placement,
                                          const ConnectOptions& options) {
  return std::make_unique<WireTransport>(std::move(placement), options);
}

}  // namespace mcds
