#include "common/structures/counter/replicated.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "common/base/errors.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/replication/copy_count_guard.hpp"
#include "common/replication/quorum.hpp"
#include "common/replication/versions.hpp"

namespace mcds {

namespace {

constexpr int most_counts = 200;
constexpr int most_silences = 3;  // of a server that owes a reply, before the outcome is called unknown
constexpr int most_spreads = 50;
constexpr std::int64_t ends_soon = CounterRecord::most_late.count();

using Base = CounterRecord::Base;
using Kind = Base::Kind;

bool is_in_doubt(const std::optional<Failure>& failure) {
  return failure && failure->code() == ErrorCode::unknown_outcome;
}

class CounterOperation final : public CounterCopies {
 public:
  CounterOperation(const Counter& counter, const std::string& name, const std::string& window,
                   std::span<const Reply> first)
      : counter_(counter),
        context_(counter.context()),
        name_(name),
        window_(window),
        key_(counter.key_of(name) + window),
        first_(first) {
    for (const std::size_t server : copy_servers(context_, key_)) copies_.push_back({.server = server});
  }

  Counted count(const Added& added, const IncrOptions& how, bool new_expiry) override {
    bool existed = false;
    const std::string id = context_.random.token();
    const auto make = [&](const Copy& first) -> std::optional<Change> {
      existed = known_.exists();
      if (existed && how.exact && known_.base.plain) {
        throw InvalidInput("the counter '" + name_ +
                           "' exists and is plain; omit --exact, or remove it first");
      }
      const auto sum = added(existed, existed ? known_.sum() : how.initial);
      if (!sum) return std::nullopt;
      Change change{base_for(first), id, first.ttl};
      CounterRecord& next = change.next;
      if (!existed) {
        next.begin({.number = known_.base.number + 1,
                    .kind = Kind::begun,
                    .value = how.initial,
                    .mark = context_.random.token(),
                    .plain = !how.exact});
      }
      if (!existed || new_expiry) {
        next.base.expires_at = expiry_second(how.ttl, context_.clock.wall());
        next.base.ahead = {};
        change.ttl.reset();
      }
      change.has_new_base = !existed;
      next.count(*sum, id);
      return change;
    };
    if (!change(make)) return {answer(existed, known_.sum())};
    const CounterRecord ours = known_;
    spread();
    // Most of several copies have what it was counted on, too; of two, one may have lost that meanwhile.
    const auto done = attempt([&] { expect(Part::changing, copies_.size() == 2 ? mine_ : ours); });
    if (done.failure() && (doubt_ || !known_.covers(ours)))
      throw may_be_counted(name_, context_.cluster.address_of(made_->server));
    done.value();
    confirm_creation(ours);
    Counted counted{answer(true, made_->next.sum()), true, known_.sum()};
    counted.server = made_->server;
    counted.created = !existed;
    return counted;
  }

  CounterAnswer get() override {
    look();
    answer_unchanged();
    return answer(known_.exists(), known_.sum());
  }

  std::optional<CounterAnswer> get_at_once() override {
    read();
    const bool open = any([this](const Copy& copy) {
      return lacks(copy) || (counter_.has_copy_counts() && copy.is_missing());
    });
    if (open) return std::nullopt;
    rely();
    return answer(known_.exists(), known_.sum());
  }

  // An only copy has no base, so that it is a change like others.
  CounterAnswer set(std::uint64_t value, std::optional<Duration> ttl, bool if_absent) override {
    if (counter_.server_counts()) {
      const auto added = [&](bool exists, std::uint64_t now) {
        return if_absent && exists ? std::nullopt : std::optional(value - now);
      };
      Counted counted = count(added, {.ttl = ttl}, true);
      counted.done = counted.made;
      return counted;
    }
    const Base base{
        .kind = Kind::set, .value = value, .expires_at = expiry_second(ttl, context_.clock.wall())};
    const bool stored = if_absent ? claim(base, false) : set_anyway(base);
    if (stored) confirm_creation(known_);
    return answer(stored, stored ? value : known_.sum());
  }

  CounterAnswer remove() override {
    const auto until = expiry_second(CounterRecord::remembered_for, context_.clock.wall());
    const bool removed = claim({.kind = Kind::removed, .value = static_cast<std::uint64_t>(*until)}, true);
    return answer(removed, 0);
  }

 private:
  // One copy as last read, or written since.
  struct Copy {
    std::size_t server = 0;
    bool found = false;
    CasUnique cas = {};
    std::optional<std::chrono::seconds> ttl = {};  // of its item, if the protocol tells and it has one
    std::optional<CounterRecord> record = {};
    std::optional<Failure> failure = {};  // it did not answer, or a write to it is in doubt
    bool refused = false;                 // a change, once: it cannot be counted on

    bool is_missing() const { return !failure && !found; }
  };

  // What is to be stored in one copy, and then told to the others. One that got no reply may yet be executed:
  // what follows it must be a cas on the same item, so that only one of them can count.
  struct Change {
    CounterRecord next;
    std::string id = {};                           // of what is counted; empty: it resets the counter
    std::optional<std::chrono::seconds> ttl = {};  // of the item, which a plain one keeps
    std::size_t server = 0;                        // of the copy, and what was there
    bool found = false;
    CasUnique cas = {};
    bool may_be_spread = false;  // it counts once, whether it is executed or told by others
    bool has_new_base = false;

    // What is true whatever the copies have lost since: not the base that it found, nor what that took away.
    CounterRecord own() const {
      if (has_new_base) return next;
      CounterRecord own;
      own.lives[next.life].made = next.lives.at(next.life).made;
      return own;
    }
  };

  // nullopt: nothing is to be made.
  using Making = std::function<std::optional<Change>(const Copy& first)>;

  bool any(const auto& test) const { return std::ranges::any_of(copies_, test); }

  // Returns nullptr if the counter can have no other copy count.
  CopyCountGuard* guard() {
    if (!guard_ && counter_.has_copy_counts()) guard_.emplace(Counter::guard(context_, name_, window_));
    return guard_ ? &*guard_ : nullptr;
  }

  void check_copy_count() {
    if (guard() != nullptr) guard()->check();
  }
  // A copy that is missing is not to be written while the counter exists with another copy count.
  void check_if_missing() {
    if (any([](const Copy& copy) { return copy.is_missing(); })) check_copy_count();
  }

  void read() {
    auto replies = std::exchange(first_, {});
    std::vector<Reply> asked;
    if (replies.empty()) {
      std::vector<Request> batch;
      for (const Copy& copy : copies_) batch.push_back(Request::probe(key_, copy.server));
      replies = asked = context_.cluster.execute(batch);
    }
    for (std::size_t i = 0; i < copies_.size(); ++i) take(copies_[i], replies[i]);
    // What has ended by our clock is asked for what its server says is left.
    const WallTime now = context_.clock.wall();
    const auto may_have_ended = [now](const Copy& copy) {
      return copy.record && copy.record->has_expired(now);
    };
    if (asked.empty() && any(may_have_ended)) return read();
    end_those_before();
    for (const Copy& copy : copies_) {
      if (copy.record) known_.learn(*copy.record);
    }
  }

  void take(Copy& copy, const Reply& reply) {
    const bool in_doubt = is_in_doubt(copy.failure);
    copy = {.server = copy.server, .refused = copy.refused};
    copy.failure = attempt([&] { expect_read(context_.cluster, reply); }).failure();
    const std::string server = context_.cluster.address_of(copy.server);
    if (copy.failure && in_doubt) copy.failure = UnknownOutcome("no reply to a write", server);
    if (copy.failure) return;
    copy.found = reply.outcome == Outcome::hit;
    copy.cas = reply.cas;
    if (!copy.found) return;
    copy.record = counter_.record_in(reply.value);
    if (!copy.record) throw CorruptData(no_counter_message(name_, reply.value), server);
    if (!reply.age.ttl || reply.age.ttl->count() < 0) return;
    copy.ttl = reply.age.ttl;
    copy.record->read_clock(*copy.ttl, context_.clock.wall());
  }

  // What was left by a counter before: it ends soon, another does not, and it knows nothing of that one.
  void end_those_before() {
    const WallTime now = context_.clock.wall();
    const auto expiry = [](const CounterRecord& record) {
      return record.base.expires_at.value_or(std::numeric_limits<std::int64_t>::max() / 2) -
             record.base.ahead.count();
    };
    const CounterRecord* latest = nullptr;
    for (Copy& copy : copies_) {
      if (copy.record && !copy.record->age(now)) copy.record.reset();
      if (!copy.record || !copy.record->exists()) continue;
      if (latest == nullptr || expiry(*copy.record) > expiry(*latest)) latest = &*copy.record;
    }
    for (Copy& copy : copies_) {
      const bool ends = copy.record && copy.record->exists() &&
                        copy.record->has_expired(now + std::chrono::seconds(ends_soon)) &&
                        expiry(*copy.record) + ends_soon < expiry(*latest);
      if (ends && copy.record->is_strange_to(*latest)) copy.record.reset();
    }
  }

  // Reads all copies. What was known before may be lost by now. Throws if too few answered.
  void look() {
    known_ = {};
    read();
    check_if_missing();
    if (!known_.exists()) check_copy_count();
    if (!doubt_) was_nowhere_ = !known_.exists();
    rely();
  }

  void rely() const {
    const auto has_record = [](const Copy& copy) { return copy.record.has_value(); };
    if (const auto failure = failure_of(Part::reading, copies_, has_record)) raise(*failure);
  }

  static bool has(const Copy& copy, const CounterRecord& wanted) {
    return copy.record ? copy.record->covers(wanted) : wanted.says_nothing();
  }
  bool lacks(const Copy& copy) const { return !copy.failure && !has(copy, known_); }

  // The first copy that answers; null when none does. All clients that see the same servers count on the same
  // copy.
  Copy* leader() {
    for (Copy& copy : copies_) {
      if (!copy.failure && !copy.refused && (!doubt_ || doubt_->server == copy.server)) return &copy;
    }
    return nullptr;
  }

  // After a lost reply: whether the change was made, or may be reported as made. False: it is to be made
  // again, with the same id. Throws UnknownOutcome if the copy does not tell: what has no ids does by being
  // as it was.
  bool settle_doubt() {
    const Change& change = *doubt_;
    if (change.may_be_spread) {
      known_.learn(known_.base.number == 0 ? change.next : change.own());
      return take_as_made(change);
    }
    const Copy* copy = leader();
    if (copy == nullptr) return false;
    const bool same = copy->found == change.found && copy->cas == change.cas;
    const bool has_ids = copy->record && !copy->record->base.plain && !change.id.empty();
    const auto told =
        has_ids ? copy->record->tells(change.id, change.next.life, change.next.changes() - 1) : std::nullopt;
    if (has_ids ? !told : !same) give_up();
    if (told.value_or(false)) return take_as_made(change);
    // Overtaken, it will never be executed.
    if (!same) doubt_.reset();
    return false;
  }

  bool take_as_made(const Change& change) {
    made_ = change;
    mine_ = change.own();
    return sent_ = true;
  }

  // False: nothing was to be made, and that can be answered. Else it was, in one copy.
  bool change(const Making& make) {
    int silent = 0;
    for (int attempts = 0; attempts < most_counts; ++attempts) {
      back_off(context_, attempts);
      const auto looked = attempt([&] { look(); });
      if (!doubt_) looked.value();
      if (!looked.failure() && doubt_ && settle_doubt()) return true;
      Copy* first = looked.failure() ? nullptr : leader();
      if (first == nullptr && !doubt_) raise(*refusal_);
      if (first == nullptr && ++silent == most_silences) give_up();
      if (first == nullptr) continue;
      auto change = attempt([&] { return make(*first); });
      if (doubt_ && (change.failure() || !change.value())) give_up();
      if (!change.value()) return answer_unchanged(), false;
      if (store(*first, std::move(*change.value()))) return true;
    }
    if (doubt_) give_up();
    throw Contention("other clients kept changing '" + name_ + "'; try again");
  }

  // False: it was not stored, or that is in doubt.
  bool store(Copy& copy, Change change) {
    if (!doubt_) rejections_.expect_rival(context_, copy.server, copy.found, copy.cas);
    std::tie(change.server, change.found, change.cas) = std::tie(copy.server, copy.found, copy.cas);
    change.may_be_spread = !change.next.is_single() && (!copy.record || change.id.empty());
    const auto request = attempt([&] { return write(copy, change.next, change.ttl); });
    const Reply reply = request.failure() ? Reply() : context_.cluster.execute(request.value());
    if (reply.outcome == Outcome::stored || reply.outcome == Outcome::deleted) {
      copy.record = known_ = change.next;
      copy.found = true;
      return take_as_made(change);
    }
    if (reply.unknown()) {
      doubt_ = std::move(change);
    } else if (reply.failed()) {
      copy.refused = true;
      refusal_ = request.failure() ? request.failure() : copy_outcome(context_, reply).failure;
      if (!doubt_ && leader() == nullptr) raise(*refusal_);
    } else {
      rejections_.add(reply, copy.found, copy.cas);
    }
    return false;
  }

  // What to start from on this copy: its own life, or a new one, and all that is known.
  CounterRecord base_for(const Copy& copy) const {
    CounterRecord base =
        copy.record ? *copy.record : CounterRecord::of_new_life(counter_.server_counts(), context_.random);
    base.learn(known_);
    base.lives[base.life];
    return base;
  }

  // What `base` takes away, with its number. One that could not be seen must not count as newer; an increment
  // may have begun anew where it could not be seen either.
  CounterRecord reset_to(Base base) const {
    const bool in_doubt =
        known_.base.number <= 1 && any([](const Copy& copy) { return copy.failure.has_value(); });
    if (known_.base.number + 1 >= CounterRecord::most_bases)
      throw CorruptData("'" + name_ + "' cannot be set again; remove its keys");
    base.number = in_doubt ? first_in_doubt : known_.base.number + 1;
    base.mark = context_.random.token();
    if (base.kind == Kind::removed) base.expires_at = known_.base.expires_at;
    CounterRecord reset;
    reset.base = std::move(base);
    for (const auto& [name, life] : known_.lives) reset.lives[name] = {life.made, life.made};
    return reset;
  }

  // What of it is to be stored in this copy; a single one that was removed is nothing. `ttl`: of the item,
  // which a plain one keeps.
  Request write(const Copy& copy, const CounterRecord& record,
                std::optional<std::chrono::seconds> ttl = {}) const {
    if (record.is_single() && !record.exists()) return removal_of(key_, copy.cas).on(copy.server);
    const WallTime now = context_.clock.wall();
    const Exptime exptime = record.base.plain && ttl
                                ? Exptime::after(std::max(*ttl, std::chrono::seconds(1)), now)
                                : record.exptime(now);
    Request request = write_over(context_, key_, copy.found, copy.cas, {record.text(), exptime}, copy.server);
    request.must_expire = request.must_expire && record.exists();
    return request;
  }

  // Tells the copies that know less. A write whose reply is lost is settled by reading: the record says what
  // it knows. What was read before and is lost by then is not brought back: a set whose base has a lower
  // number may have come after the loss.
  void spread() {
    for (int attempts = 0;; ++attempts) {
      std::vector<Request> batch;
      std::vector<std::pair<Copy*, CounterRecord>> open;
      for (Copy& copy : copies_) {
        if (!lacks(copy)) continue;
        CounterRecord record = base_for(copy);
        auto request = attempt([&] {
          if (attempts < most_spreads) return write(copy, record);
          throw Contention("other clients kept changing this copy", context_.cluster.address_of(copy.server));
        });
        copy.failure = request.failure();
        if (copy.failure) continue;
        batch.push_back(std::move(request.value()));
        open.emplace_back(&copy, std::move(record));
      }
      if (batch.empty()) return;
      const auto replies = context_.cluster.execute(batch);
      bool done = true;
      for (std::size_t k = 0; k < open.size(); ++k) {
        auto& [copy, record] = open[k];
        const bool stored = replies[k].outcome == Outcome::stored;
        sent_ = sent_ || stored || replies[k].unknown();
        copy->failure = copy_outcome(context_, replies[k]).failure;
        if (stored) {
          copy->record = std::move(record);
          copy->found = true;
        } else if (!copy->failure || is_in_doubt(copy->failure)) {
          done = false;
        }
      }
      if (done) return;
      back_off(context_, attempts + 1);
      const CounterRecord before = std::exchange(known_, mine_);
      read();
      if (known_.base.number == 0) known_.learn(before);  // no copy that answers knows of it
      if (attempt([&] { check_if_missing(); }).failure()) return;
    }
  }

  void expect(Part part, const CounterRecord& wanted) const {
    const auto failure = failure_of(part, copies_, [&](const Copy& copy) { return has(copy, wanted); });
    if (!failure) return;
    // What was written on a copy that cannot be seen now may count.
    if (part == Part::changing && sent_) throw UnknownOutcome(failure->what(), failure->server());
    raise(*failure);
  }

  void answer_unchanged() {
    spread();
    expect(Part::answering, known_);
  }

  // Where nothing was written and a newer value has come to light, it may have been there before: this one is
  // to come after it.
  bool set_anyway(const Base& base) {
    for (int attempts = 0; attempts < most_counts; ++attempts) {
      back_off(context_, attempts);
      look();
      const CounterRecord mine = mine_ = reset_to(base);
      known_.learn(mine);
      spread();
      const bool overtaken = known_.base.mark != mine.base.mark;
      if (overtaken && !sent_) continue;
      if (overtaken && mine.base.number == first_in_doubt)
        throw UnknownOutcome("'" + name_ +
                             "' has another value too, which is older or newer; read it, and set it again");
      expect(Part::changing, mine);
      return true;
    }
    throw Contention("other clients kept changing '" + name_ + "'; try again");
  }

  // False: it does not exist, or does, as it was not to. What was perhaps written is not made anew: it would
  // take away what came after it; whether it was executed is seen when the others are told.
  bool claim(const Base& base, bool of_existing) {
    const auto make = [&](const Copy& first) -> std::optional<Change> {
      if (known_.exists() != of_existing) return std::nullopt;
      Change change{.next = base_for(first), .has_new_base = true};
      change.next.learn(reset_to(base));
      return change;
    };
    if (!change(make)) return false;
    spread();
    const std::string& mark = made_->next.base.mark;
    const auto failure = failure_of(Part::changing, copies_, [&](const Copy& copy) {
      return copy.record && copy.record->base.mark == mark;
    });
    // A copy that was not told was perhaps told of another's.
    if (failure)
      throw UnknownOutcome(
          "'" + name_ + "' was changed by another client at the same moment, or " + failure->what(),
          failure->server());
    return true;
  }

  void confirm_creation(const CounterRecord& ours) {
    if (!was_nowhere_ || guard() == nullptr) return;
    std::vector<Request> gets;
    for (const Copy& copy : copies_) gets.push_back(Request::gets(key_).on(copy.server));
    const auto is_ours = [&](std::size_t, const Reply& there) {
      const auto record = counter_.record_in(there.value);
      return record && ours.covers(*record);
    };
    guard()->confirm_creation([&] { return remove_created(context_.cluster, gets, is_ours); });
  }

  CounterAnswer answer(bool done, std::uint64_t value) const {
    CounterAnswer answer{.done = done, .value = value, .exact = done && !known_.base.plain};
    answer.server = copies_.front().server;
    for (const Copy& copy : copies_) {
      CopyOutcome& outcome = answer.copies.emplace_back(CopyOutcome{copy.server, {}, copy.failure});
      if (copy.record && !copy.failure && copy.record->exists()) outcome.number = copy.record->sum();
    }
    return answer;
  }

  void give_up() const { throw may_be_counted(name_, context_.cluster.address_of(doubt_->server)); }

  const Counter& counter_;
  const Context& context_;
  const std::string& name_;
  std::string window_, key_;
  std::optional<CopyCountGuard> guard_;
  std::span<const Reply> first_;  // what was read, and not looked at
  std::vector<Copy> copies_;
  CounterRecord known_;  // all copies merged, and what was changed
  CounterRecord mine_;   // of that, what was changed here
  std::optional<Failure> refusal_;
  std::optional<Change> doubt_, made_;
  bool was_nowhere_ = false;  // when it was read first
  bool sent_ = false;         // a copy was written, or perhaps
  Rejections rejections_;
};

}  // namespace

UnknownOutcome may_be_counted(const std::string& name, const std::string& server) {
  return UnknownOutcome("no reply to a change of '" + name +
                            "': it may have been counted; compare its value before trying again",
                        server);
}

std::unique_ptr<CounterCopies> CounterCopies::of(const Counter& counter, const std::string& name,
                                                 const std::string& window, std::span<const Reply> first) {
  return std::make_unique<CounterOperation>(counter, name, window, first);
}

}  // namespace mcds
