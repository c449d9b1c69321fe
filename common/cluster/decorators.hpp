// Clusters around a cluster.
#pragma once

#include "common/cluster/cluster.hpp"
#include "common/cluster/transport.hpp"

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

// A gate that learns the abilities of servers before anything relies on them.
//
// memcached from 1.4 on expires items; if the greeting shows such a version, that is proof enough. Whether a
// server supports cas (not if started with -C) shows only when an item is fetched: a `gets` goes in the same
// trip as the first add that will be compared later, and if it returns no cas unique, the add is undone.
// Other servers, and those behind a proxy, are asked once with a probe key that must have a cas unique and
// must be gone when it has expired. This happens before anything that relies on it is sent, or, for the first
// request of a connection, right after it, and then that request is undone.
//
// Requests state what they rely on (Request::must_expire, must_compare). What a server cannot do is
// `refused`, and nothing of it is left behind.
std::unique_ptr<Cluster> gated(std::unique_ptr<Transport> transport);

// Around a transport: a server that does not answer costs one timeout per run, not one per batch.
//
// After a timeout or a failed connection a server is sick. Requests to it fail at once, unsent, with the
// original cause, until it answers a trial on a separate connection. In batches (Sick::hold) they are first
// held back for at most one timeout from the beginning of the sickness, so a short pause fails none. A server
// that answers trials and nothing else is tried less and less often.
//
// A connection that failed before the timeout leaves the server in doubt for one more request: what comes
// next may be the look that settles whether a change was applied, and another connection shows it at once.
// Only when that fails too is the server sick. Not in batches: those are held instead, until a trial
// succeeds, and lose nothing by it.
//
// Requests that provably had no effect are tried once more on a new connection: reads, and changes of which
// nothing was sent. Never after a request for the same key whose outcome is unknown, never for what sickness
// failed, and after a timeout only once a trial has succeeded. Of batches that were begun, only reads, for
// later batches may have overtaken their changes; a begun batch of nothing but increments is tried again too,
// since increments give the same sum in any order.

// `options.run` must be set.
std::unique_ptr<Cluster> guarded(std::unique_ptr<Cluster> inner, const ConnectOptions& options);

// Items that a server keeps on flash: memcached with extstore (-o ext_path=FILE).
//
// Such a server moves idle items to a file. Reads, cas, touch and removals work on them as on all others.
// Requests that change a value in place do not: append answers NOT_STORED, as if the item were missing or
// full, and incr and decr answer that the value is not a number. Here the item is read then, and written back
// by cas with the change.
//
//   a rival's write in between: the cas fails, and the request is sent again. The item is in memory now.
//   the item goes in between: an append is not_stored, a count is sent again.
//   the cas's reply is lost: unknown, as the change's own would have been.
//   there is no room for the longer value: not_stored.
//   a touch in between is undone. What is left of the ttl is written back, in whole seconds.
// Nothing is written back on a server that does not tell the ttl (before 1.6): the item counts as full, or as
// no number.
//
// Round trips: none where append stores. The first not_stored on a server with meta commands costs one, which
// asks whether it has such a file. If it has, every not_stored costs one more, and two if the item is there.
class FlashItems final : public Decorator {
 public:
  explicit FlashItems(std::unique_ptr<Cluster> inner);
  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override;
  std::unique_ptr<Pending> begin(std::vector<Request> batch) override;

  static constexpr int most_rounds = 6;

 private:
  using Places = std::vector<std::size_t>;  // in a batch

  bool has_flash(std::size_t server);
  bool may_be_on_flash(const Request& request, const Reply& reply);
  void settle(std::span<const Request> batch, std::vector<Reply>& replies);
  // Returns the places of the requests that are to be sent again.
  Places write_back(std::span<const Request> batch, const Places& places, std::vector<Reply>& replies);

  SystemClock clock_;
  std::vector<std::optional<bool>> flash_;
};

}  // namespace mcds
