// Putting a counter into another number of copies: the steps of common/primitives/several/recopying.hpp. The
// counter is one piece: it is held in every old copy, merged, named in the mark as the record of a counter
// with several copies, removed from the old keys by compare-and-delete, and begun under the new ones with its
// value: held, so that no client changes it there, until the mark says that it was begun. What is missing
// then was removed by clients, and is not begun again.
//
// Counters that versions before 0.3 kept in several copies, under the key of one, are read here and nowhere
// else:
//   plain   Digits in every copy, of which the largest counts. The flags are the number of its life, which
//           every set began anew: only copies of the newest count, and 0 is the first or any. 0 or nothing
//           with flags of 0x80000000 more was removed.
//   exact   C2, or C1: each life counts as the copy has it that knows most changes of it; one of 2^63 changes
//           or more is over. The flags as above.
#include <algorithm>
#include <utility>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/primitives/key_names.hpp"
#include "common/primitives/several/copies.hpp"
#include "common/structures/counter/copies.hpp"
#include "common/structures/counter/record.hpp"

namespace mcds {

namespace {

constexpr const char* begun = "B";  // in the mark
constexpr std::uint32_t life_bits = 0x7fffffff;

using Base = CounterRecord::Base;

std::uint32_t life_of(std::uint32_t flags) {
  return std::max<std::uint32_t>(flags & life_bits, 1);
}

class CounterMove {
 public:
  CounterMove(Recopying& recopying, const Context& context, const std::string& name)
      : recopying_(recopying),
        context_(context),
        name_(name),
        from_(context.in_copies(recopying.mark().from.unmarked ? 1 : recopying.mark().from.copies)),
        old_key_(from_.key_of(name)),
        old_servers_(copy_servers(context.cluster.placement(), recopying.mark().from.copies, old_key_)) {
    const std::string_view moving = recopying.mark().moving;
    is_plain_ = moving.starts_with("P ");
    is_begun_ = moving == begun;
    if (moving.size() > 2) staged_ = CounterRecord::parse(moving.substr(2));
  }

  void run() {
    recopying_.settle();
    if (!is_begun_) {
      in_rounds("the counter", [this] { return !read() || (hold() && stage()); });
      if (staged_ && staged_->exists()) publish();
    }
    if (is_begun_) in_rounds("the counter", [this] { return release(); });
    recopying_.finish();
  }

 private:
  // False: nothing is there any more.
  bool read() {
    std::vector<Request> batch;
    for (const std::size_t server : old_servers_) batch.push_back(Request::probe(old_key_, server));
    old_.clear();
    for (Reply& copy : context_.cluster.execute(batch)) {
      expect_read(context_.cluster, copy);
      auto held = HeldCounter::parse(copy.value);
      if (copy.outcome == Outcome::hit) old_.push_back({std::move(copy), std::move(held)});
    }
    return !old_.empty();
  }

  // False: what is held now is to be read.
  bool hold() {
    std::vector<Request> batch;
    expect_counters();
    for (const auto& [copy, held] : old_) {
      if (!held) batch.push_back(holding(copy));
    }
    if (batch.empty()) return true;
    for (const Reply& reply : context_.cluster.execute(batch)) expect(context_.cluster, reply);
    return false;
  }

  // What no record can hold stays as it is; if nothing was moved yet, so does the counter.
  void expect_counters() {
    const auto wrong = attempt([&] {
      for (const auto& [copy, held] : old_) {
        const std::string& value = held ? held->value : copy.value;
        const auto record = record_in(value);
        const std::string server = context_.cluster.address_of(copy.server);
        if (!record && !is_removal(value, flags_of(copy)))
          throw CorruptData(no_counter_message(name_, value), server);
        if (const auto number = parse_padded_u64(value); number && (*number >> 63) != 0)
          throw CorruptData("the counter '" + name_ +
                                "' is 2^63 or more, which several copies cannot count; set it to less",
                            server);
      }
    });
    if (!wrong.failure()) return;
    const auto is_held = [](const auto& copy) { return copy.second.has_value(); };
    if (!staged_ && std::ranges::none_of(old_, is_held)) recopying_.finish();
    raise(*wrong.failure());
  }

  std::optional<CounterRecord> record_in(std::string_view value) const {
    return from_.server_counts() ? CounterRecord::parse_of_before(value) : from_.record_in(value);
  }
  // Of unmarked copies.
  std::uint32_t flags_of(const Reply& copy) const { return recopying_.mark().from.unmarked ? copy.flags : 0; }

  // As its item ends, so does what takes its place.
  Request holding(const Reply& copy) const {
    const WallTime now = context_.clock.wall();
    HeldCounter held{copy.value};
    const auto record = from_.record_in(copy.value);
    if (copy.age.ttl && copy.age.ttl->count() >= 0)
      held.expires_at = expiry_second(std::max(*copy.age.ttl, std::chrono::seconds(1)), now);
    else if (record && !copy.age.ttl)
      held.expires_at = record->base.expires_at;
    return write_over(context_, old_key_, true, copy.cas, {held.text(), held.exptime(now), copy.flags},
                      copy.server);
  }

  // False: one was changed. Where every old copy is there, they alone say what the counter is; what was
  // staged is what those had that are gone.
  bool stage() {
    auto now = merged();
    const bool all_there = old_.size() == old_servers_.size();
    if (!all_there && now && staged_) now->learn(*staged_);
    if (all_there || now) staged_ = std::move(now);
    recopying_.write(staged_ ? (is_plain_ ? "P " : "E ") + staged_->text() : std::string());
    std::vector<Request> batch;
    for (const auto& [copy, held] : old_)
      batch.push_back(Request::remove_if(old_key_, copy.cas).on(copy.server));
    bool all = true;
    for (const Reply& reply : context_.cluster.execute(batch))
      all = expect(context_.cluster, reply).outcome == Outcome::deleted && all;
    return all;
  }

  // All that is held; nullopt: no counter. Of unmarked ones those of the newest life.
  std::optional<CounterRecord> merged() {
    std::uint32_t newest = 0;
    for (const auto& [copy, held] : old_) newest = std::max(newest, life_of(flags_of(copy)));
    CounterRecord all = CounterRecord::of_new_life(false, context_.random);
    std::optional<std::int64_t> expires_at;
    const WallTime now = context_.clock.wall();
    is_plain_ = from_.server_counts();
    for (const auto& [copy, held] : old_) {
      const std::string& value = held->value;
      const bool is_number = parse_padded_u64(value).has_value();
      is_plain_ = is_plain_ && is_number;
      expires_at = held->expires_at;
      const std::uint32_t flags = flags_of(copy);
      const bool is_older = life_of(flags) != newest && (flags != 0 || is_number);
      if (is_older || is_removal(value, flags)) continue;
      auto record = record_in(value);
      if (!record)
        throw CorruptData(no_counter_message(name_, value), context_.cluster.address_of(copy.server));
      if (expires_at) record->read_clock(seconds_until(*expires_at, now), now);
      all.learn(*record);
    }
    if (all.base.number == 0) return std::nullopt;
    all.keep_our_clock();
    if (!from_.server_counts()) return all;
    if (!all.base.expires_at) all.base.expires_at = expires_at;
    all.base.mark = context_.random.token();
    return all;
  }

  // What is there already was published by a mover before this one.
  void publish() {
    if (recopying_.mark().to == 0) return;
    // The old roots may have been removed by who took over, who knew more.
    recopying_.check();
    const Counter to = moved();
    const std::string key = to.key_of(name_);
    const std::string mark = context_.random.token();
    std::vector<Request> batch;
    for (const std::size_t server : copy_servers(to.context(), key)) {
      CounterRecord copy = CounterRecord::of_new_life(to.server_counts(), context_.random);
      copy.begin({.number = staged_->base.number + 1,
                  .kind = Base::Kind::set,
                  .value = staged_->sum(),
                  .mark = mark,
                  .expires_at = staged_->base.expires_at,
                  .plain = is_plain_});
      // One in which nothing was counted is none.
      if (copy.is_single()) copy.count(0, context_.random.token());
      const HeldCounter held{copy.text(), staged_->base.expires_at};
      batch.push_back(Request::add(key, held.text(), copy.exptime(context_.clock.wall())).on(server));
    }
    for (const Reply& reply : context_.cluster.execute(batch)) expect(context_.cluster, reply);
    recopying_.write(begun);
    is_begun_ = true;
  }

  // False: what was held is to be read again.
  bool release() const {
    const Counter to = moved();
    const std::string key = to.key_of(name_);
    std::vector<Request> probes, batch;
    for (const std::size_t server : copy_servers(to.context(), key))
      probes.push_back(Request::probe(key, server));
    const WallTime now = context_.clock.wall();
    for (const Reply& copy : context_.cluster.execute(probes)) {
      const auto held = HeldCounter::parse(expect_read(context_.cluster, copy).value);
      if (!held) continue;
      const auto record = to.record_in(held->value);
      const Exptime exptime = record && !record->base.plain ? record->exptime(now) : held->exptime(now);
      batch.push_back(write_over(context_, key, true, copy.cas, {held->value, exptime}, copy.server));
    }
    for (const Reply& reply : context_.cluster.execute(batch)) expect(context_.cluster, reply);
    return batch.empty();
  }

  Counter moved() const { return Counter(context_.in_copies(recopying_.mark().to)); }

  Recopying& recopying_;
  const Context& context_;
  const std::string& name_;
  Counter from_;  // as the old key says it
  std::string old_key_;
  std::vector<std::size_t> old_servers_;
  bool is_plain_ = false;
  bool is_begun_ = false;                                          // under the new keys
  std::optional<CounterRecord> staged_;                            // in the mark
  std::vector<std::pair<Reply, std::optional<HeldCounter>>> old_;  // the copies that are there
};

}  // namespace

void move_counter(Recopying& change, const Context& context, const std::string& name) {
  CounterMove(change, context, name).run();
}

}  // namespace mcds
