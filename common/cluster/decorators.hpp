// Decorators: clusters that wrap another cluster.
#pragma once

#include "common/cluster/cluster.hpp"
#include "common/cluster/transport.hpp"

namespace mcds {

// Base class that forwards everything to the wrapped cluster; subclasses override execute(). begin() executes
// its batch at once, so that no request bypasses a subclass.
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

// Returns `pending` with replies that `settle` may change when it finishes.
std::unique_ptr<Pending> settled_later(std::unique_ptr<Pending> pending, Pending::Settle settle);

// Executes the requests of `batch` at these indexes and stores their replies at the same indexes.
void execute_at(const std::vector<std::size_t>& places, Cluster& cluster, std::span<const Request> batch,
                std::vector<Reply>& replies);

// Implements incr_or_create and append_or_create by primitives, for servers without meta commands.
//
// incr_or_create:   incr; missing → add; if it exists by then → incr again.
// append_or_create: append; not stored (missing, full or no memory, which append does not distinguish) → add,
//                   which distinguishes a missing item; exists → append again. Not stored a second time: the
//                   item is full → not_stored. A refused add is followed by a get: an existing item is full
//                   (not_stored), a missing one cannot be created (refused: no memory, too large). An item
//                   that the caller has just seen missing is added before the first append.
// probe:            gets on servers without meta commands; refused (MemcacheDB lacks gets) → get, with cas 0.
//
// Round trips: 1 steady, 2 to create, 4 to find that an item is full. All composites of a batch advance
// together, so a batch takes as many trips as its slowest member. After max_rounds, incr_or_create is
// refused. An unknown outcome ends the composite as unknown: a request that may be applied is not resent.
//
// Order: requests for one key take effect in batch order; those after an unfinished composite of their key
// wait for it, for at least one trip each. Between keys of one server, a composite that must create the item
// comes later than requests for other keys that follow it. A request that must come after a creation
// therefore belongs in the next execute().
class Composites final : public Decorator {
 public:
  // append_only: the inner cluster executes probe and incr_or_create itself, in one trip. Exceptions are
  // incr_or_create requests whose item is to have flags.
  enum class Expand { both, append_only };
  explicit Composites(Cluster& inner, Expand expand = Expand::both) : Decorator(inner), expand_(expand) {}
  explicit Composites(std::unique_ptr<Cluster> inner, Expand expand = Expand::both)
      : Decorator(std::move(inner)), expand_(expand) {}
  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override;
  // A batch with composites is executed at once, since these may take several trips.
  std::unique_ptr<Pending> begin(std::vector<Request> batch) override;

  static constexpr int max_rounds = 6;

 private:
  bool expands(const Request& request) const;
  bool expands_any(std::span<const Request> batch) const;
  Expand expand_;
};

// Calls `callback` for each request, with its server and reply.
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

// Returns the memcached command that carries the operation: `ma`, `gets`, `delete`.
std::string_view wire_name(Op op, Reply::Protocol protocol);

// Returns the outcome's name, such as `stored` or `miss`, or the kind of a failure, such as `unreachable`.
std::string_view word_of(const Reply& reply);

// Returns a cluster that checks the abilities of each server before a request depends on them. Requests state
// these as Request::must_expire and must_compare. If a server lacks one, the request is `refused` without
// effect.
//
// A greeting that shows memcached 1.4 or later proves that items expire. Support for cas (absent with -C)
// shows only in a fetched item. A `gets` therefore travels with the first add that will be compared later; if
// it returns no cas token, the add is undone. Other servers, and servers behind a proxy, are checked once
// with a probe key. It must have a cas token and be gone once it has expired. The check precedes the request,
// except for the first request of a connection, which is undone if the check that follows it fails.
std::unique_ptr<Cluster> gated(std::unique_ptr<Transport> transport);

// Wraps a transport so that a server that does not answer costs one timeout per run instead of one per batch.
//
// After a timeout or a failed connection, a server is unhealthy. Requests to it fail at once, unsent, with
// the original cause, until it answers a health probe on a separate connection. With UnhealthyPolicy::hold
// they are first held for at most one timeout from the beginning of the sickness, so that a short pause fails
// no request. A server that answers health probes but no requests is tried less and less often.
//
// After a connection that failed before the timeout, one more request is sent. That request may be the read
// that finds out whether a change was applied, and a second failure shows quickly. Only if it fails too does
// the server become unhealthy. With UnhealthyPolicy::hold, requests are held instead until a health probe
// succeeds.
//
// Requests that provably had no effect are retried once on a new connection: reads, and changes that were not
// sent at all. A request is not retried after one for the same key with an unknown outcome, nor if it failed
// because the server was unhealthy; after a timeout, only once a health probe has succeeded. In batches
// started with begin(), only reads are retried, because later batches may already have executed. A begun
// batch of increments alone is also retried, since increments commute.

// `options.run` must be set.
std::unique_ptr<Cluster> guarded(std::unique_ptr<Cluster> inner, const ConnectOptions& options);

// Makes in-place changes work on items on flash: memcached with extstore (-o ext_path=FILE).
//
// Such a server moves idle items to a file. Reads, cas, touch and removals work as usual, but changes in
// place do not: append answers NOT_STORED, as if the item were missing or full, and incr and decr report that
// the value is not a number. FlashItems then reads the item and writes the changed value by cas:
//
//   a concurrent write: the cas fails and the request is sent again; the item is in memory by then.
//   the item vanishes: an append is not_stored; an increment is sent again.
//   the reply to the cas is lost: the outcome is unknown, as for the original request.
//   no room for the longer value: not_stored.
//   a concurrent touch is undone: the ttl that was read is written back, in whole seconds.
// Servers before 1.6 do not report the ttl. Nothing is written back there: the item counts as full, or as not
// a number.
//
// Round trips: none more where append stores. The first not_stored on a server with meta commands costs one,
// which checks for extstore. With extstore, every not_stored costs one more, or two if the item exists.
class FlashItems final : public Decorator {
 public:
  explicit FlashItems(std::unique_ptr<Cluster> inner);
  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override;
  std::unique_ptr<Pending> begin(std::vector<Request> batch) override;

  static constexpr int max_rounds = 6;

 private:
  using Places = std::vector<std::size_t>;  // indexes into a batch

  bool has_flash(std::size_t server);
  bool may_be_on_flash(const Request& request, const Reply& reply);
  void settle(std::span<const Request> batch, std::vector<Reply>& replies);
  // Returns the indexes of the requests that must be sent again.
  Places write_back(std::span<const Request> batch, const Places& places, std::vector<Reply>& replies);

  SystemClock clock_;
  std::vector<std::optional<bool>> flash_;
};

}  // namespace mcds
