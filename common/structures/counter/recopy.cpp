#include "common/structures/counter/recopy.hpp"

#include <algorithm>
#include <utility>

#include "common/base/errors.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/primitives/key_names.hpp"
#include "common/primitives/several/copies.hpp"
#include "common/primitives/several/kept.hpp"
#include "common/structures/counter/counter.hpp"
#include "common/structures/counter/failures.hpp"
#include "common/structures/counter/held.hpp"

namespace mcds {

namespace {

constexpr int most_holds = 100;
constexpr std::size_t as_staged = 2;  // as a record is written in the mark

std::string counter_key(Context context, std::size_t copies, const std::string& name) {
  context.copies = copies;
  return copied_key(context, "counter", name);
}

class CounterMove {
 public:
  CounterMove(Recopying& recopying, const Context& context, const std::string& name)
      : recopying_(recopying),
        context_(context),
        name_(name),
        from_(recopying.mark().from_unmarked ? 1 : recopying.mark().from),
        old_key_(counter_key(context, from_, name)),
        old_servers_(copy_servers(context.cluster.placement(), recopying.mark().from, old_key_)),
        staged_(read_staged(recopying.mark().moving)) {}

  void run() {
    recopying_.settle();
    for (int round = 0; hold(); ++round) {
      if (round == most_holds) throw Contention("other clients keep changing the counter; try again");
      recopying_.write(staged_ ? (is_plain_ ? "P " : "E ") + staged_->text() : std::string());
      if (let_go()) break;
    }
    if (staged_ && staged_->exists()) publish();
    recopying_.finish();
  }

 private:
  std::optional<CounterRecord> read_staged(const std::string& moving) {
    if (moving.size() < 2) return std::nullopt;
    is_plain_ = moving.starts_with("P ");
    return CounterRecord::parse(std::string_view(moving).substr(2), as_staged);
  }

  std::vector<Reply> probe() const {
    std::vector<Request> batch;
    for (const std::size_t server : old_servers_) batch.push_back(Request::probe(old_key_, server));
    auto replies = context_.cluster.execute(batch);
    for (const Reply& reply : replies) expect_read(context_.cluster, reply);
    return replies;
  }

  // False: nothing is there any more. Where every old copy is there, they alone say what the counter is; what
  // was staged is what those had that are gone.
  bool hold() {
    for (int attempts = 0;; ++attempts) {
      if (attempts == most_holds) throw Contention("other clients keep changing the counter; try again");
      back_off(context_, attempts);
      held_ = probe();
      std::vector<Request> batch;
      for (const Reply& copy : held_) {
        if (is_hit(copy) && !HeldCounter::parse(copy.value)) batch.push_back(holding(copy));
      }
      if (batch.empty()) break;
      for (const Reply& reply : context_.cluster.execute(batch)) expect(context_.cluster, reply);
    }
    const auto found = std::count_if(held_.begin(), held_.end(), is_hit);
    if (found == 0) return false;
    const bool all = static_cast<std::size_t>(found) == held_.size();
    const auto before = all ? std::nullopt : std::exchange(staged_, std::nullopt);
    staged_ = merged();
    if (before && staged_) staged_->learn(*before);
    if (before && !staged_) staged_ = before;
    return true;
  }

  // As its item ends, so does what takes its place.
  Request holding(const Reply& copy) const {
    const WallTime now = context_.clock.wall();
    HeldCounter held{copy.value};
    const auto record = CounterRecord::parse(copy.value, from_);
    if (copy.age.ttl && copy.age.ttl->count() >= 0)
      held.expires_at = expiry_second(std::max(*copy.age.ttl, std::chrono::seconds(1)), now);
    else if (record && !copy.age.ttl)
      held.expires_at = record->base.expires_at;
    return write_over(context_, old_key_, true, copy.cas, {held.text(), held.exptime(now), copy.flags},
                      copy.server);
  }

  std::optional<CounterRecord> merged() {
    std::vector<CounterCopyOfBefore> before;
    CounterRecord all;
    std::optional<std::int64_t> expires_at;
    for (const Reply& copy : held_) {
      if (!is_hit(copy)) continue;
      const auto held = HeldCounter::parse(copy.value);
      expires_at = held->expires_at;
      if (from_ == 1) {
        before.push_back({held->value, recopying_.mark().from == 1 ? 0 : copy.flags});
      } else if (const auto record = CounterRecord::parse(held->value, from_)) {
        all.learn(*record);
      } else {
        throw CorruptData(no_counter_message(name_, held->value), context_.cluster.address_of(copy.server));
      }
    }
    is_plain_ = !before.empty() && std::all_of(before.begin(), before.end(), [](const auto& copy) {
      return plain_number(copy.value).has_value();
    });
    if (from_ > 1) return with_life(all);
    auto record = record_of_before(name_, before);
    if (!record) return std::nullopt;
    if (!record->base.expires_at) record->base.expires_at = expires_at;
    record->base.mark = context_.random.token();
    return with_life(*record);
  }

  CounterRecord with_life(const CounterRecord& known) const {
    CounterRecord record = CounterRecord::of_new_life(as_staged, context_.random);
    record.learn(known);
    return record;
  }

  // False: one was changed.
  bool let_go() {
    std::vector<Request> batch;
    for (const Reply& copy : held_) {
      if (is_hit(copy)) batch.push_back(Request::remove_if(old_key_, copy.cas).on(copy.server));
    }
    bool all = true;
    for (const Reply& reply : context_.cluster.execute(batch))
      all = expect(context_.cluster, reply).outcome == Outcome::deleted && all;
    return all;
  }

  // What is there already was published by a mover before this one.
  void publish() {
    const std::size_t copies = recopying_.mark().to;
    if (copies == 0) return;
    // The old roots may have been removed by who took over, who knew more.
    recopying_.check();
    const std::string key = counter_key(context_, copies, name_);
    std::vector<Request> batch;
    const CounterRecord::Base base{.number = staged_->base.number + 1,
                                   .kind = CounterRecord::Base::Kind::set,
                                   .value = staged_->sum(),
                                   .mark = context_.random.token(),
                                   .expires_at = staged_->base.expires_at,
                                   .plain = is_plain_};
    for (const std::size_t server : copy_servers(context_.cluster.placement(), copies, key)) {
      const CounterRecord copy = CounterRecord::begun(copies, context_.random, base);
      batch.push_back(Request::add(key, copy.text(), copy.exptime(context_.clock.wall())).on(server));
    }
    for (const Reply& reply : context_.cluster.execute(batch)) expect(context_.cluster, reply);
  }

  Recopying& recopying_;
  const Context& context_;
  const std::string& name_;
  std::size_t from_;  // as the old key says it
  std::string old_key_;
  std::vector<std::size_t> old_servers_;
  bool is_plain_ = false;
  std::optional<CounterRecord> staged_;  // in the mark
  std::vector<Reply> held_;
};

}  // namespace

void move_counter(Recopying& change, const Context& context, const std::string& name) {
  CounterMove(change, context, name).run();
}

Counter::Recopied Counter::recopy(const Context& context, const std::string& name) {
  return kept(context, name).recopy();
}

}  // namespace mcds
