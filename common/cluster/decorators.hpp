// Clusters around a cluster.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "common/cluster/cluster.hpp"

namespace mcds {

// Forwards everything; the others change execute(). A batch that is begun is executed at once, so that none
// bypasses them.
class Decorator : public Cluster {
 public:
  explicit Decorator(Cluster& inner) : inner_(inner) {}
  explicit Decorator(std::unique_ptr<Cluster> inner) : owned_(std::move(inner)), inner_(*owned_) {}
  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override { return inner_.execute(batch); }
  const Placement& placement() const override { return inner_.placement(); }

 protected:
  Cluster& inner() { return inner_; }

 private:
  std::unique_ptr<Cluster> owned_;
  Cluster& inner_;
};

// The same batch, whose replies `settle` may change before they are given out.
using Settle = std::function<void(std::span<const Request> batch, std::vector<Reply>& replies)>;
std::unique_ptr<Pending> settled_later(std::unique_ptr<Pending> pending, Settle settle);

// Executes the requests at these places of a batch; their replies go to the same places.
void execute_at(const std::vector<std::size_t>& places, Cluster& cluster, std::span<const Request> batch,
                std::vector<Reply>& replies);

// incr_or_create and append_or_create in terms of primitives, for servers without meta commands.
//
// incr_or_create:   incr; missing → add; exists by now → incr again.
// append_or_create: append; not stored (missing, full or no memory, which it does not distinguish) → add,
//                   which distinguishes missing from the rest; exists → append again. Not stored once more:
//                   the item is full → not_stored. An add that is refused is followed by a get: an existing
//                   item is full (not_stored), a missing one cannot be created (refused: no memory, too
//                   large).
// probe:            gets without meta commands; refused (MemcacheDB has no gets) → get, whose cas is 0.
//
// Round trips: 1 steady, 2 to create, 4 to find an item full; all composites of a batch advance together, so
// a batch costs what its slowest member costs. Bounded: max_rounds, then incr_or_create is refused. An
// unknown outcome ends the composite as unknown: nothing that may have been applied is sent again.
//
// Order: requests of one key take effect in batch order (those behind an unfinished composite of their key
// wait for it, one trip at least for each). Between keys of one server a composite that must create comes
// later than requests of other keys behind it: what must not overtake it belongs in the next execute().
class Composites final : public Decorator {
 public:
  // append_only: the inner cluster does probe and incr_or_create by itself, in one trip, unless it is to be
  // created with flags.
  enum class Expand { both, append_only };
  explicit Composites(Cluster& inner, Expand expand = Expand::both) : Decorator(inner), expand_(expand) {}
  explicit Composites(std::unique_ptr<Cluster> inner, Expand expand = Expand::both)
      : Decorator(std::move(inner)), expand_(expand) {}
  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override;
  // Composites included: they may take several trips.
  std::unique_ptr<Pending> begin(std::vector<Request> batch) override;

  static constexpr int max_rounds = 6;

 private:
  bool expands(const Request& request) const;
  bool expands_any(std::span<const Request> batch) const;
  Expand expand_;
};

// Reports each request, its server and its reply.
class Tracing final : public Decorator {
 public:
  using Callback = std::function<void(const TracedRequest&)>;
  Tracing(std::unique_ptr<Cluster> inner, Callback callback);
  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override;

 private:
  SystemClock clock_;
  Callback callback_;
};

// The command that carries it: `ma`, `gets`, `delete`.
std::string_view wire_name(Op op, Reply::Protocol protocol);

// `stored`, `miss`, … or, of a failure, its kind: `unreachable`, `refused`, `not_a_number`, `unknown`.
std::string_view word_of(const Reply& reply);

}  // namespace mcds
