// What may happen to who puts the hash `h` into another number of copies: it dies and stands still between
// trips, its messages are lost or late, or it makes a mistake.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "common/cluster/decorators.hpp"
#include "common/primitives/several/versions.hpp"
#include "tests/support/simulation.hpp"

namespace mcds::movers {

inline constexpr std::string_view mark_key = "hash0:h";

enum class Mistake {
  none,
  mark_not_looked_for,
  plain_delete,
  nothing_staged,
  no_settling,
  mark_not_compared
};

// What is asked of a schedule. What is not promised is left out of it (recopying.hpp): with a single copy,
// what a mover that dies, stands still or gets no reply in the trip that removes an element, or stores it,
// does to a removal by a client; and what is stored late in a single copy while a mover has the element only
// staged, which the next one cannot tell from a change by a client, if that mover dies then.
struct Kind {
  std::vector<std::size_t> numbers;
  bool removals = true;
  bool mishaps = true;   // to what movers send
  bool anywhere = true;  // movers die and stand still between any two trips
};

struct Died {};

// `hash:h:v:a` begins with "hash:h:v:", whatever the number.
inline bool of_element(const Request& request) {
  return request.key.find(":h:v:") != std::string::npos;
}

// `element`: ":v:a".
inline bool only_staged(MemoryCluster& servers, const std::string& element) {
  for (std::size_t server = 0; server < servers.size(); ++server) {
    for (const char* hash : {"hash:h", "hash2:h", "hash3:h"}) {
      const auto item = servers.server(server).peek(hash + element);
      if (item && !is_removal(item->value, item->flags)) return false;
    }
  }
  return true;
}

// What a mover sees of the servers: it dies and stands still between trips, or makes a mistake.
class MoversCluster final : public Decorator {
 public:
  using Cluster::execute;
  MoversCluster(Context& context, SimulatedClient& client, const Kind& kind, Mistake mistake)
      : Decorator(context.cluster), context_(context), client_(client), kind_(kind), mistake_(mistake) {}

  std::vector<Reply> execute(std::span<const Request> batch) override {
    const auto any = [&](const auto& test) { return std::any_of(batch.begin(), batch.end(), test); };
    const bool removes = any([](const Request& request) {
      return request.op == Op::remove_if && request.key.starts_with("hash:h:v:");
    });
    const bool stores = any([](const Request& request) {
      return (request.op == Op::add || request.op == Op::cas) && of_element(request);
    });
    // The new index would be there for good, under a number that is no longer used.
    const bool lists = any([](const Request& request) {
      return request.op != Op::get && request.op != Op::gets && request.key.find("h:i") != std::string::npos;
    });
    const bool may_die = kind_.anywhere || !just_removed_;
    const bool may_stand = !lists && !stores && (kind_.anywhere || !just_removed_);
    just_removed_ = removes;
    const auto chance = context_.random.below(120);
    if (chance == 0 && may_die) throw Died();
    if (chance == 1 && may_stand) client_.sleep_for(std::chrono::milliseconds(context_.random.below(9000)));
    std::vector<Request> requests(batch.begin(), batch.end());
    for (Request& request : requests) spoil(request);
    std::vector<Reply> replies = kind_.mishaps && !batch.empty() && context_.random.below(30) == 0
                                     ? with_mishap(requests, lists)
                                     : inner().execute(requests);
    if (mistake_ == Mistake::mark_not_compared) believe(requests, replies);
    return replies;
  }

 private:
  // One server is not reached, does not answer, or executes what it was sent after the mover gave up.
  std::vector<Reply> with_mishap(const std::vector<Request>& requests, bool lists) {
    const std::size_t server = server_of(requests[context_.random.below(requests.size())]);
    const auto mishap = context_.random.below(lists ? 3 : 4);
    std::vector<Request> passed;
    for (const Request& request : requests) {
      if (mishap == 1 || server_of(request) != server) passed.push_back(request);
    }
    std::vector<Reply> answers = passed.empty() ? std::vector<Reply>() : inner().execute(passed);
    std::vector<Reply> replies;
    std::vector<Request> late;
    std::size_t next = 0;
    for (const Request& request : requests) {
      const bool hit = server_of(request) == server;
      if (!hit || mishap == 1) {
        replies.push_back(answers[next++]);
        if (!hit) continue;
        replies.pop_back();
      }
      using Kind = ReplyFailure::Kind;
      replies.push_back(mishap == 0 ? Reply::failed_with(Kind::unreachable, "cannot connect", server)
                                    : Reply::failed_with(Kind::unknown, "no reply", server));
      late.push_back(request);
    }
    if (mishap == 3) {
      const Duration delay = std::chrono::milliseconds(context_.random.below(8000));
      client_.simulation().client([late, delay](Context& context, SimulatedClient& client) {
        client.sleep_for(delay);
        const bool unpromised = std::any_of(late.begin(), late.end(), [&](const Request& request) {
          return request.op == Op::add && request.key.starts_with("hash:h:v:") &&
                 only_staged(client.simulation().servers(), request.key.substr(6));
        });
        if (!unpromised) context.cluster.execute(late);
      });
    }
    return replies;
  }

  void spoil(Request& request) const {
    if (mistake_ == Mistake::plain_delete && request.op == Op::remove_if && of_element(request))
      request.op = Op::remove;
    if (mistake_ == Mistake::nothing_staged && request.op == Op::set &&
        request.key.starts_with(std::string(mark_key) + ":"))
      request.key = "nowhere";
    if (mistake_ == Mistake::mark_not_compared && request.op == Op::cas && request.key == mark_key)
      request.op = Op::set;
  }

  // That the mark says what this mover wrote last.
  void believe(std::span<const Request> requests, std::vector<Reply>& replies) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const Request& request = requests[i];
      if (request.key != mark_key) continue;
      if (request.op == Op::gets && written_) {
        replies[i].outcome = Outcome::hit;
        replies[i].value = written_->value;
        replies[i].flags = written_->flags;
        replies[i].cas = CasUnique{1};
      } else if (replies[i].outcome == Outcome::stored) {
        written_ = request;
        if (request.value.empty()) written_.reset();
      }
    }
  }

  Context& context_;
  SimulatedClient& client_;
  const Kind& kind_;
  Mistake mistake_;
  bool just_removed_ = false;
  std::optional<Request> written_;
};

class MoversClock final : public Clock {
 public:
  MoversClock(Clock& clock, Mistake mistake) : clock_(clock), mistake_(mistake) {}
  WallTime wall() const override { return clock_.wall(); }
  SteadyTime steady() const override { return clock_.steady(); }
  void sleep_for(Duration duration) override {
    if (mistake_ != Mistake::no_settling || duration < std::chrono::milliseconds(500))
      clock_.sleep_for(duration);
  }

 private:
  Clock& clock_;
  Mistake mistake_;
};

}  // namespace mcds::movers
