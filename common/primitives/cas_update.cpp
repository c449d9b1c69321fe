#include "common/primitives/cas_update.hpp"

namespace mcds {

namespace {

// After this many rejections in a row of writes over an unchanged item, no concurrent writer is to blame: the
// server does not store it.
constexpr int max_baseless = 10;
// The number of failed reads after a write without reply, before its outcome is reported as unknown.
constexpr int max_read_failures = 3;

}  // namespace

void expect_cas(const Cluster& cluster, std::size_t server, CasUnique cas) {
  if (cas.value == 0)
    throw NotApplied(ErrorCode::refused, "the server does not support cas; start memcached without -C",
                     cluster.address_of(server));
}

Request write_over(const Context& context, const std::string& key, bool found, CasUnique cas,
                   const Write& write, std::size_t server) {
  if (write.removes) return removal_of(key, cas).on(server);
  if (found) expect_cas(context.cluster, server, cas);
  Request request = found ? Request::compare_and_set(key, write.value, write.exptime, cas)
                          : Request::add(key, write.value, write.exptime).relying_on_cas();
  request.must_expire = write.exptime != Exptime::never();
  request.flags = write.flags;
  return std::move(request).on(server);
}

Request removal_of(std::string key, CasUnique seen) {
  return seen.value == 0 ? Request::remove(std::move(key)) : Request::remove_if(std::move(key), seen);
}

void Rejections::expect_rival(const Context& context, std::size_t server, bool found, CasUnique cas) {
  baseless_ = last_ && last_->found == found && last_->cas == cas ? baseless_ + 1 : 0;
  if (baseless_ < max_baseless) return;
  throw NotApplied(ErrorCode::refused,
                   std::string("the server refused: ") +
                       (last_->outcome == Outcome::exists ? "EXISTS" : "NOT_STORED") +
                       ", though nothing had changed",
                   context.cluster.address_of(server));
}

CasUpdateResult cas_update(const Context& context, const std::string& key, const Decide& decide,
                           int attempts) {
  bool uncertain = false;
  int silent = 0;
  Rejections rejections;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    back_off(context, attempt);
    Request ask = Request::probe(key, 0);
    ask.server.reset();
    Reply there = context.cluster.execute(ask);
    if (there.failed()) {
      if (!uncertain) expect_read(context.cluster, there);
      if (++silent < max_read_failures) continue;
      throw UnknownOutcome(
          "no reply to a write, which may have been applied, nor to any read since; read the value before "
          "you retry",
          context.cluster.address_of(there.server));
    }
    const Observed observed{there.outcome == Outcome::hit,
                            std::move(there.value),
                            there.flags,
                            there.cas,
                            there.age.ttl,
                            there.server,
                            uncertain};
    if (!uncertain) rejections.expect_rival(context, observed.server, observed.found, observed.cas);
    const auto write = decide(observed);
    if (!write) return {false, observed.server};
    Request request = write_over(context, key, observed.found, observed.cas, *write, observed.server);
    request.server.reset();
    const Reply reply = context.cluster.execute(request);
    if (reply.outcome == Outcome::stored || reply.outcome == Outcome::deleted) return {true, reply.server};
    if (reply.failed() && !reply.unknown()) {
      if (!uncertain) expect(context.cluster, reply);
      throw UnknownOutcome(
          "an earlier write got no reply and may have been applied, then: " + reply.failure->message,
          context.cluster.address_of(reply.server));
    }
    if (reply.unknown())
      uncertain = true;
    else
      rejections.add(reply, observed.found, observed.cas);
  }
  if (uncertain)
    throw UnknownOutcome(
        "no reply to a write, which may have been applied, and other clients kept changing the item since; "
        "read its value before you retry");
  throw Contention("other clients kept changing the item; try again");
}

Decide unless_applied(std::function<std::optional<Write>(const Observed& observed)> decide,
                      std::string what) {
  auto before = std::make_shared<Observed>();
  return [decide = std::move(decide), what = std::move(what), before](const Observed& observed) {
    const bool same = observed.found == before->found && observed.cas == before->cas;
    if (observed.uncertain && !same) {
      throw UnknownOutcome(
          "no reply to " + what +
          ", which may have been applied, and the value has changed since; read it before you retry");
    }
    *before = observed;
    return decide(observed);
  };
}

void back_off(const Context& context, int attempt, const BackOff& pauses) {
  if (attempt == 0) return;
  const Duration longest = std::min(pauses.max_pause, pauses.first_pause * (1 << std::min(attempt, 20)));
  context.clock.sleep_for(Duration(context.random.below(static_cast<std::uint64_t>(longest.count()) + 1)));
}

std::vector<Reply> store(Cluster& cluster, std::span<const Request> items, Op first) {
  constexpr int rounds = 6;
  std::vector<Reply> replies(items.size());
  std::vector<std::size_t> left(items.size());
  for (std::size_t i = 0; i < left.size(); ++i) left[i] = i;
  Op op = first;
  for (int round = 0; round < rounds && !left.empty(); ++round) {
    std::vector<Request> batch;
    for (const std::size_t i : left) batch.emplace_back(items[i]).op = op;
    std::vector<Reply> answers = cluster.execute(batch);
    for (std::size_t i = 0; i < left.size(); ++i) replies[left[i]] = std::move(answers[i]);
    std::erase_if(left, [&](std::size_t i) { return replies[i].outcome != Outcome::not_stored; });
    op = op == Op::add ? Op::replace : Op::add;
  }
  for (const std::size_t i : left)
    replies[i] =
        Reply::failed_with(ReplyFailure::Kind::refused,
                           "other clients keep storing and removing the item; try again", replies[i].server);
  return replies;
}

}  // namespace mcds
