#include "common/cluster/decorators.hpp"

#include <array>
#include <set>

#include "common/base/bytes.hpp"

namespace mcds {

namespace {

// One request of the batch; `step` is the primitive to send next.
class Progress {
 public:
  Progress(const Request& request, bool composite)
      : request_(&request), composite_(composite), step_(request.op) {
    if (!composite) return;
    if (request.op == Op::incr_or_create) step_ = request.checked ? Op::get : Op::incr;
    if (request.op == Op::append_or_create) step_ = request.seems_missing ? Op::add : Op::append;
  }

  bool done() const { return done_; }
  bool composite() const { return composite_; }
  const Request& request() const { return *request_; }
  Reply take() { return std::move(answer_); }

  Request primitive() const {
    if (!composite()) return *request_;
    Request primitive{.op = step_,
                      .key = request_->key,
                      .flags = request_->flags,
                      .server = request_->server,
                      .with = request_->with};
    primitive.must_expire = step_ != Op::get && request_->must_expire;
    primitive.must_compare = step_ == Op::add && request_->must_compare;
    if (step_ == Op::incr) primitive.delta = request_->delta;
    if (step_ == Op::append) primitive.value = request_->value;
    if (step_ == Op::add) {
      primitive.value = request_->op == Op::incr_or_create ? std::to_string(request_->initial)
                                                           : request_->prefix + request_->value;
      primitive.exptime = request_->exptime;
    }
    return primitive;
  }

  void absorb(Reply reply) {
    if (!composite()) return finish(std::move(reply));
    if (request_->op == Op::probe) return absorb_probe(std::move(reply));
    if (step_ == Op::add) return absorb_add(std::move(reply));
    if (step_ == Op::get) return request_->op == Op::incr_or_create ? absorb_look(reply) : absorb_get(reply);
    const bool absent = reply.outcome == (step_ == Op::incr ? Outcome::not_found : Outcome::not_stored);
    if (!absent || !request_->creates) return finish(std::move(reply));
    step_ = Op::add;
  }

 private:
  void absorb_probe(Reply reply) {
    const bool lacks_gets = step_ == Op::probe && reply.is(ReplyFailure::Kind::refused) &&
                            reply.protocol == Reply::Protocol::classic;
    if (!lacks_gets) return finish(std::move(reply));
    step_ = Op::get;
  }

  void absorb_add(Reply reply) {
    ++rounds_;
    if (reply.outcome == Outcome::stored) {
      reply.created = true;
      if (request_->op == Op::incr_or_create) reply.number = request_->initial;
      return finish(std::move(reply));
    }
    if (reply.outcome == Outcome::not_stored) return again(std::move(reply));
    if (request_->op == Op::incr_or_create || !reply.is(ReplyFailure::Kind::refused))
      return finish(std::move(reply));
    answer_ = std::move(reply);
    step_ = Op::get;
  }

  // Checks the value before an incr, which would treat text that starts with digits as a number.
  void absorb_look(const Reply& reply) {
    if (reply.failed()) return finish(reply);
    if (reply.outcome != Outcome::hit && !request_->creates)
      return finish(Reply::of(Outcome::not_found, reply.server));
    step_ = reply.outcome == Outcome::hit ? Op::incr : Op::add;
    if (step_ == Op::add || parse_padded_u64(reply.value)) return;
    finish(Reply::of_text(reply.value, reply.server));
  }

  // Finishes after an add that was refused: the get shows whether the item exists. An item that seemed
  // missing may exist now, with room for an append that was not tried yet.
  void absorb_get(const Reply& reply) {
    if (reply.outcome == Outcome::hit && request_->seems_missing && rounds_ == 1) {
      step_ = Op::append;
      return;
    }
    if (reply.outcome == Outcome::hit) {
      answer_ = Reply::of(Outcome::not_stored, reply.server);
      answer_.protocol = reply.protocol;
    }
    done_ = true;
  }

  void again(Reply not_added) {
    if (request_->op == Op::append_or_create && rounds_ == 2) return finish(std::move(not_added));
    if (rounds_ == Composites::max_rounds)
      return finish(Reply::failed_with(
          ReplyFailure::Kind::refused,
          "other clients keep creating and removing this key; nothing was changed; try again",
          not_added.server));
    step_ = request_->op != Op::incr_or_create ? Op::append : request_->checked ? Op::get : Op::incr;
  }

  void finish(Reply reply) {
    answer_ = std::move(reply);
    done_ = true;
  }

  const Request* request_;
  bool composite_;
  Op step_;
  int rounds_ = 0;
  bool done_ = false;
  Reply answer_;
};

}  // namespace

std::unique_ptr<Pending> settled_later(std::unique_ptr<Pending> pending, Pending::Settle settle) {
  pending->then(std::move(settle));
  return pending;
}

void execute_at(const std::vector<std::size_t>& places, Cluster& cluster, std::span<const Request> batch,
                std::vector<Reply>& replies) {
  if (places.empty()) return;
  std::vector<Request> part;
  part.reserve(places.size());
  for (const std::size_t place : places) part.push_back(batch[place]);
  std::vector<Reply> answers = cluster.execute(part);
  for (std::size_t i = 0; i < places.size(); ++i) replies[places[i]] = std::move(answers[i]);
}

bool Composites::expands(const Request& request) const {
  if (request.op == Op::append_or_create) return true;
  if (request.op == Op::probe) return expand_ == Expand::both;
  return request.op == Op::incr_or_create && (expand_ == Expand::both || request.flags != 0);
}

bool Composites::expands_any(std::span<const Request> batch) const {
  return std::ranges::any_of(batch, [&](const Request& request) { return expands(request); });
}

std::unique_ptr<Pending> Composites::begin(std::vector<Request> batch) {
  return expands_any(batch) ? Decorator::begin(std::move(batch)) : inner().begin(std::move(batch));
}

std::vector<Reply> Composites::execute(std::span<const Request> batch) {
  if (!expands_any(batch)) return inner().execute(batch);
  std::vector<Progress> all;
  all.reserve(batch.size());
  for (const Request& request : batch) all.emplace_back(request, expands(request));
  while (true) {
    std::vector<Progress*> sent;
    std::vector<Request> trip;
    std::set<std::pair<std::size_t, std::string_view>> unfinished;
    for (Progress& one : all) {
      if (one.done()) continue;
      const std::pair<std::size_t, std::string_view> key{server_of(one.request()), one.request().key};
      if (unfinished.contains(key)) continue;
      if (one.composite()) unfinished.insert(key);
      sent.push_back(&one);
      trip.push_back(one.primitive());
    }
    if (sent.empty()) break;
    std::vector<Reply> replies = inner().execute(trip);
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i]->absorb(std::move(replies[i]));
  }
  std::vector<Reply> replies;
  replies.reserve(all.size());
  for (Progress& one : all) replies.push_back(one.take());
  return replies;
}

Tracing::Tracing(std::unique_ptr<Cluster> inner, Callback callback)
    : Decorator(std::move(inner)), callback_(std::move(callback)) {}

std::vector<Reply> Tracing::execute(std::span<const Request> batch) {
  const SteadyTime before = clock_.steady();
  std::vector<Reply> replies = inner().execute(batch);
  const auto elapsed = std::chrono::duration_cast<std::chrono::microseconds>(clock_.steady() - before);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const std::size_t server = replies[i].server;
    const std::string address = address_of(server);
    callback_({server, address, batch[i], replies[i], replies[i].round_trip.value_or(elapsed)});
  }
  return replies;
}

std::string_view wire_name(Op op, Reply::Protocol protocol) {
  const bool meta = protocol == Reply::Protocol::meta;
  switch (op) {
    case Op::probe: return meta ? "mg" : "gets";
    case Op::remove: return "delete";
    case Op::remove_if: return meta ? "md" : "cas";
    case Op::incr_or_create: return meta ? "ma" : "incr";
    case Op::append_or_create: return "append";
    case Op::add_and_get: return "add";
    default: return name_of(op);
  }
}

std::string_view word_of(const Reply& reply) {
  if (!reply.failure) return name_of(reply.outcome);
  constexpr std::array words{"unreachable", "refused", "denied", "not_a_number", "unknown"};
  static_assert(words.size() == static_cast<std::size_t>(ReplyFailure::Kind::unknown) + 1);
  return words[static_cast<std::size_t>(reply.failure->kind)];
}

}  // namespace mcds
