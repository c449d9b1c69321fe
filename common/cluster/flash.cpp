
#include "common/cluster/decorators.hpp"
#include "common/cluster/statistics.hpp"

namespace mcds {

namespace {

using Kind = ReplyFailure::Kind;

constexpr const char* kept_changing =
    "other clients keep changing this key, and the server moves it to flash in between; nothing was changed; "
    "try again";

bool appends(Op op) {
  return op == Op::append || op == Op::append_or_create;
}

bool counts(Op op) {
  return op == Op::incr || op == Op::decr || op == Op::incr_or_create;
}

// Returns the write of the changed item. If it returns nullopt, `reply` is the result.
std::optional<Request> changed(const Request& request, Reply item, WallTime now, Reply& reply) {
  if (item.cas.value == 0 || !item.age.ttl) return std::nullopt;
  const auto number = parse_padded_u64(item.value);
  if (counts(request.op) && !number) {
    reply = Reply::of_text(std::move(item.value), item.server);
    return std::nullopt;
  }
  const Exptime exptime = Exptime::of_ttl(*item.age.ttl, now);
  std::string value = std::move(item.value);
  if (appends(request.op)) {
    value += request.value;
  } else {
    const std::uint64_t less = *number - std::min(*number, request.delta);
    reply.number = request.op == Op::decr ? less : *number + request.delta;
    value = std::to_string(reply.number);
  }
  Request write = Request::compare_and_set(request.key, std::move(value), exptime, item.cas);
  write.flags = item.flags;
  return std::move(write).on(item.server);
}

}  // namespace

FlashItems::FlashItems(std::unique_ptr<Cluster> inner)
    : Decorator(std::move(inner)), flash_(placement().pool().size()) {}

std::vector<Reply> FlashItems::execute(std::span<const Request> batch) {
  std::vector<Reply> replies = inner().execute(batch);
  settle(batch, replies);
  return replies;
}

std::unique_ptr<Pending> FlashItems::begin(std::vector<Request> batch) {
  const bool changes = std::ranges::any_of(
      batch, [](const Request& request) { return appends(request.op) || counts(request.op); });
  auto pending = inner().begin(std::move(batch));
  if (!changes) return pending;
  return settled_later(std::move(pending), [this](std::span<const Request> begun,
                                                  std::vector<Reply>& replies) { settle(begun, replies); });
}

bool FlashItems::has_flash(std::size_t server) {
  if (flash_[server]) return *flash_[server];
  const Reply reply = inner().execute(Request::stats(server));
  const bool has = statistic(reply.value, "extstore_limit_maxbytes").has_value();
  if (reply.outcome == Outcome::hit || reply.is(Kind::refused)) flash_[server] = has;
  return has;
}

bool FlashItems::may_be_on_flash(const Request& request, const Reply& reply) {
  if (reply.protocol != Reply::Protocol::meta) return false;
  if (appends(request.op)) return reply.outcome == Outcome::not_stored && has_flash(reply.server);
  // If the reply has the value, it must be a number; otherwise the failure is genuine.
  return counts(request.op) && reply.is(Kind::not_a_number) &&
         (reply.value.empty() || parse_padded_u64(reply.value)) && has_flash(reply.server);
}

void FlashItems::settle(std::span<const Request> batch, std::vector<Reply>& replies) {
  Places places;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (may_be_on_flash(batch[i], replies[i])) places.push_back(i);
  }
  for (int round = 0; !places.empty(); ++round) {
    if (round == max_rounds) {
      for (const std::size_t place : places)
        replies[place] = Reply::failed_with(Kind::refused, kept_changing, replies[place].server);
      return;
    }
    places = write_back(batch, places, replies);
    execute_at(places, inner(), batch, replies);
    std::erase_if(places, [&](std::size_t place) { return !may_be_on_flash(batch[place], replies[place]); });
  }
}

FlashItems::Places FlashItems::write_back(std::span<const Request> batch, const Places& places,
                                          std::vector<Reply>& replies) {
  std::vector<Request> looks;
  for (const std::size_t place : places)
    looks.push_back(Request::probe(batch[place].key, replies[place].server));
  std::vector<Reply> items = inner().execute(looks);
  Places again, written;
  std::vector<Request> writes;
  for (std::size_t k = 0; k < places.size(); ++k) {
    const std::size_t place = places[k];
    Reply& reply = replies[place];
    if (items[k].outcome == Outcome::miss) {
      if (counts(batch[place].op)) again.push_back(place);
    } else if (items[k].failed()) {
      reply = std::move(items[k]);
    } else if (auto write = changed(batch[place], std::move(items[k]), clock_.wall(), reply)) {
      writes.push_back(std::move(*write));
      written.push_back(place);
    }
  }
  std::vector<Reply> answers = inner().execute(writes);
  for (std::size_t k = 0; k < written.size(); ++k) {
    Reply& reply = replies[written[k]];
    Reply& answer = answers[k];
    if (answer.outcome == Outcome::exists || answer.outcome == Outcome::not_found) {
      again.push_back(written[k]);
      continue;
    }
    // The server refuses a write that is too long or for which it has no memory. The reply of append in these
    // cases is not_stored, which `reply` already is.
    if (answer.is(Kind::refused) && appends(batch[written[k]].op)) continue;
    answer.number = reply.number;
    reply = std::move(answer);
  }
  std::ranges::sort(again);
  return again;
}

}  // namespace mcds
