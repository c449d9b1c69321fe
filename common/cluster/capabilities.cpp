#include <array>
#include <map>

#include "common/base/random.hpp"
#include "common/cluster/decorators.hpp"

namespace mcds {

namespace {

using Kind = ReplyFailure::Kind;

constexpr const char* no_expiry =
    "items do not expire on this server (MemcacheDB): a lock, a cache entry or an item with a ttl would stay "
    "forever; use a memcached server";
constexpr const char* no_cas =
    "the server does not support cas (memcached -C, pogocache without --cas, MemcacheDB): this could not be "
    "changed safely; start it without -C, or use another server; plain counters and journals of arrays need "
    "no cas";

struct Capabilities {
  std::optional<bool> expiry;
  std::optional<bool> cas;
};

// Returns true for changes that set the item's expiry; all others leave it unchanged.
bool is_new_item(Op op, const Reply& reply) {
  return op == Op::add || op == Op::set || op == Op::replace || op == Op::cas || reply.created;
}

class CapabilityGate final : public Cluster {
 public:
  explicit CapabilityGate(std::unique_ptr<Transport> transport)
      : transport_(std::move(transport)), known_(transport_->placement().pool().size()) {}

  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override {
    if (std::ranges::none_of(batch, [&](const Request& one) { return relies(one); }))
      return transport_->execute(batch);
    if (can_all(batch)) return transport_->execute(batch);
    prove_before(batch);
    std::vector<Reply> replies = send(batch);
    prove_stored(batch, replies);
    take_back(batch, replies);
    return replies;
  }

  std::unique_ptr<Pending> begin(std::vector<Request> batch) override {
    const bool any = std::ranges::any_of(batch, [&](const Request& one) { return relies(one); });
    return any && !can_all(batch) ? Cluster::begin(std::move(batch)) : transport_->begin(std::move(batch));
  }

  const Placement& placement() const override { return transport_->placement(); }

 private:
  using Refusal = std::optional<std::string>;

  bool relies(const Request& request) const { return request.must_expire || request.must_compare; }

  // Records what the greeting shows about this server.
  void read_protocol(std::size_t server) {
    const ServerProtocol& protocol = transport_->protocol(server);
    if (protocol.words == ServerProtocol::CommandSet::meta || protocol.is_memcached())
      known_[server].expiry = true;
  }

  // Returns true if an ability that the request needs is unknown and will not show in the exchange itself.
  bool is_open(std::size_t server, const Request& request) const {
    const Capabilities& known = known_[server];
    if (request.must_expire && !known.expiry) return true;
    // If the version proves expiry, a gets in the same trip shows cas.
    return request.must_compare && !known.cas && !known.expiry;
  }

  // Checks the server, with a probe key if its version is not enough. Returns the failure of the check.
  std::optional<Reply> prove(std::size_t server) {
    const ServerProtocol& protocol = transport_->protocol(server);
    if (protocol.version.empty() && !protocol.proxy) {
      Reply reply = transport_->execute(Request::version(server));
      if (reply.failed() && !reply.is(Kind::refused)) return reply;
      ServerProtocol said;
      said.take_version(reply.value);
      known_[server].expiry = said.is_memcached() ? std::optional(true) : std::nullopt;
      if (said.is_memcached()) return std::nullopt;
    }
    const std::string key = "mcds:probe:" + random_.token();
    const auto minute = Exptime::after(std::chrono::minutes(1), SystemClock().wall());
    const std::array probe{Request::set(key, "1", minute).on(server), Request::gets(key).on(server),
                           Request::set(key, "1", Exptime::gone()).on(server), Request::get(key).on(server),
                           Request::remove(key).on(server)};
    std::vector<Reply> replies = transport_->execute(probe);
    if (replies[0].outcome != Outcome::stored) return std::move(replies[0]);
    if (replies[1].outcome == Outcome::hit || replies[1].is(Kind::refused))
      known_[server].cas = replies[1].cas.value != 0;
    if (replies[3].failed()) return std::move(replies[3]);
    if (replies[2].outcome == Outcome::stored) known_[server].expiry = replies[3].outcome == Outcome::miss;
    return std::nullopt;
  }

  // Returns true if every server is known to have the abilities that any of these requests needs. Then the
  // servers of the single requests do not matter.
  bool can_all(std::span<const Request> batch) {
    const bool compare = std::ranges::any_of(batch, &Request::must_compare);
    for (std::size_t server = 0; server < known_.size(); ++server) {
      read_protocol(server);
      if (known_[server].expiry != true || (compare && known_[server].cas != true)) return false;
    }
    return true;
  }

  // Checks the servers whose protocol is already known, before anything is sent.
  void prove_before(std::span<const Request> batch) {
    silent_.clear();
    for (const Request& request : batch) {
      if (!relies(request)) continue;
      const std::size_t server = server_of(request);
      read_protocol(server);
      // A replace cannot be undone, so its server is always checked first.
      const bool greeted = transport_->protocol(server).words != ServerProtocol::CommandSet::unknown ||
                           request.op == Op::replace;
      if (!greeted || !is_open(server, request) || silent_.contains(server)) continue;
      if (auto failure = prove(server)) silent_.emplace(server, std::move(*failure));
    }
  }

  void prove_stored(std::span<const Request> batch, std::span<const Reply> replies) {
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (!relies(batch[i]) || replies[i].outcome != Outcome::stored) continue;
      const std::size_t server = replies[i].server;
      read_protocol(server);
      if (is_open(server, batch[i])) static_cast<void>(prove(server));
    }
  }

  Refusal refusal_of(const Request& request) const {
    if (!relies(request)) return std::nullopt;
    const Capabilities& known = known_[server_of(request)];
    if (request.must_expire && known.expiry == false) return no_expiry;
    if (request.must_compare && known.cas == false) return no_cas;
    return std::nullopt;
  }

  // Sends the batch without the requests whose server lacks an ability or did not answer its check. Adds a
  // gets after each first add that will be compared.
  std::vector<Reply> send(std::span<const Request> batch) {
    std::vector<Request> sent;
    std::vector<std::size_t> places;  // index in the batch; batch.size() marks an added gets
    std::vector<Reply> replies(batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const std::size_t server = server_of(batch[i]);
      if (auto refusal = refusal_of(batch[i])) {
        replies[i] = Reply::failed_with(Kind::refused, std::move(*refusal), server);
        continue;
      }
      if (const auto silent = silent_.find(server); relies(batch[i]) && silent != silent_.end()) {
        const bool spoke = silent->second.is(Kind::refused) || silent->second.is(Kind::denied);
        replies[i] =
            Reply::failed_with(spoke ? silent->second.failure->kind : Kind::unreachable,
                               "not sent: " + (silent->second.failure ? silent->second.failure->message
                                                                      : std::string("no answer")),
                               server);
        continue;
      }
      sent.push_back(batch[i]);
      places.push_back(i);
      if (!batch[i].must_compare || known_[server].cas) continue;
      sent.push_back(Request::gets(batch[i].key).on(server));
      places.push_back(batch.size());
    }
    std::vector<Reply> answers = transport_->execute(sent);
    for (std::size_t k = 0; k < sent.size(); ++k) {
      const bool look = places[k] == batch.size();
      if (!look) {
        replies[places[k]] = std::move(answers[k]);
        continue;
      }
      std::optional<bool>& cas = known_[answers[k].server].cas;
      if (answers[k].outcome == Outcome::hit) cas = answers[k].cas.value != 0;
      // The item that was just stored has this token. A proxy's is not kept: behind it a server may restart
      // unnoticed, and number another item alike.
      Reply& stored = replies[places[k - 1]];
      if (stored.outcome == Outcome::stored && answers[k].value == sent[k - 1].value &&
          transport_->protocol(answers[k].server).is_memcached())
        stored.cas = answers[k].cas;
    }
    return replies;
  }

  // Removes items that were stored on a server that cannot keep their promise, and refuses their requests.
  void take_back(std::span<const Request> batch, std::vector<Reply>& replies) {
    std::vector<Request> removals;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      auto refusal = refusal_of(batch[i]);
      if (!refusal || replies[i].outcome != Outcome::stored) continue;
      if (!is_new_item(batch[i].op, replies[i])) continue;
      removals.push_back(Request::remove(batch[i].key).on(replies[i].server));
      replies[i] = Reply::failed_with(Kind::refused, std::move(*refusal), replies[i].server);
    }
    if (!removals.empty()) static_cast<void>(transport_->execute(removals));
  }

  std::unique_ptr<Transport> transport_;
  SystemRandom random_;
  std::vector<Capabilities> known_;
  std::map<std::size_t, Reply> silent_;  // failed checks of this batch
};

}  // namespace

std::unique_ptr<Cluster> gated(std::unique_ptr<Transport> transport) {
  return std::make_unique<CapabilityGate>(std::move(transport));
}

}  // namespace mcds
