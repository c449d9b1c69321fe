// Makes one operation on a counter. The states of its change:
//
//     +-> built ------> sent       a set, which is written to every copy at once
//     |   |
//   unsent -----------> made       the copy that is written first has it
//     |   |
//     +-> pending ----> found      the same, after a lost reply: its id is there, or all copies are to get it
//          |   |
//          +---+  sent again over the same item, so that only one of the two is stored
//
// A pending change is unsent again if another client's write replaced that item, and a built one if a newer
// base appeared before anything was sent. What is made, found or sent is never built again: it would count
// twice, or take away what others have counted meanwhile. It is written to the copies that lack it.
#include "common/structures/counter/replicated.hpp"

#include <limits>
#include <tuple>
#include <utility>

#include "common/primitives/cas_update.hpp"
#include "common/replication/quorum.hpp"
#include "common/replication/versions.hpp"

namespace mcds {

namespace {

constexpr int max_counts = 200;
constexpr int max_silences = 3;  // lost replies of a server before the outcome is reported as unknown
constexpr int max_write_backs = 50;
constexpr std::int64_t ends_soon = CounterRecord::max_late.count();

using Epoch = CounterRecord::Epoch;
using Kind = Epoch::Kind;

bool is_pending(const std::optional<Failure>& failure) {
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

  // Reads all copies, counts in the first one that answers, by cas on what was read there, and writes the
  // merged record to every copy that has less: three trips, with one copy two. An increment is never counted
  // in a second copy unless the first is known not to have counted it. After a lost reply, either the item is
  // unchanged, or the increment's id is looked up there; if that copy is gone meanwhile, or plain and
  // changed, the outcome is unknown. A write that would have begun a new incarnation is written to every copy
  // instead: no other client counts in it, so it counts once, whether it is executed, arrives late or is lost
  // again.
  Counted count(const Added& added, const IncrOptions& how, bool new_expiry) override {
    bool existed = false;
    const std::string id = context_.random.token();
    const auto make = [&](const Copy& first) -> std::optional<Change> {
      existed = known_.exists();
      if (existed && how.exact && known_.base.plain) {
        throw InvalidInput("the counter '" + name_ +
                           "' is plain, so --exact does not apply; omit --exact or remove the counter first");
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
    write_back();
    // Most of several copies also have the value to which it was added; of two, one may have lost it
    // meanwhile.
    const auto done = attempt([&] { expect(QuorumPhase::writing, copies_.size() == 2 ? mine() : ours); });
    if (done.failure() && (state_ == State::found || !known_.covers(ours))) give_up();
    done.value();
    confirm_creation(ours);
    Counted counted{answer(true, change_->next.sum()), true, known_.sum()};
    counted.server = change_->server;
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

  // A single copy has no base, so a set is a change like any other, by cas on what it saw.
  CounterAnswer set(std::uint64_t value, std::optional<Duration> ttl, bool if_absent) override {
    if (counter_.server_counts()) {
      const auto added = [&](bool exists, std::uint64_t now) {
        return if_absent && exists ? std::nullopt : std::optional(value - now);
      };
      Counted counted = count(added, {.ttl = ttl}, true);
      counted.done = counted.made;
      return counted;
    }
    const Epoch base{
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
  // One copy as it was read, or written since.
  struct Copy {
    std::size_t server = 0;
    bool found = false;
    CasUnique cas = {};
    std::optional<std::chrono::seconds> ttl = {};  // of its item, if reported
    std::uint32_t flags = 0;                       // an application's, which stay
    std::optional<CounterRecord> record = {};
    std::optional<Failure> failure = {};  // it did not answer, or a write's outcome is unknown
    bool refused = false;                 // it refused a change, so no change can be counted there

    bool is_missing() const { return !failure && !found; }
  };

  // A change to store in one copy and then in the others. If it gets no reply, it may yet be executed. The
  // next attempt must therefore be a cas on the same item, so that only one of them can count.
  struct Change {
    CounterRecord next;
    std::string id = {};                           // of what is counted; empty: the change resets the counter
    std::optional<std::chrono::seconds> ttl = {};  // of the item; a plain counter keeps it
    std::size_t server = 0;                        // the copy, and its item before the change
    bool found = false;
    CasUnique cas = {};
    bool may_be_written_back = false;  // it counts once, whether it is executed or written by others
    bool has_new_base = false;

    bool is_over(const Copy& copy) const {
      return server == copy.server && found == copy.found && cas == copy.cas;
    }
    // Returns the part that is true whatever the copies have lost since: without the base that it found, and
    // without what that took away.
    CounterRecord own() const {
      if (has_new_base) return next;
      CounterRecord own;
      own.incarnations[next.incarnation].made = next.incarnations.at(next.incarnation).made;
      return own;
    }
  };

  enum class State {
    unsent,   // no copy has the change, and none will get it
    pending,  // sent to one copy without a reply: it was executed, was lost, or will be executed late
    made,     // that copy has it
    found,    // the same, after a lost reply
    built,    // a set that is about to be sent to every copy
    sent,     // a copy has the set, or may have it
  };
  static bool may_follow(State from, State to) {
    using enum State;
    return (from == unsent && (to == built || to == made || to == pending)) ||
           (from == built && (to == sent || to == unsent)) ||
           (from == pending && (to == found || to == pending || to == unsent));
  }
  void enter(State next) {
    require(may_follow(state_, next), "a change that may have been made is not made again");
    state_ = next;
    if (next == State::unsent) change_.reset();
    require((next == State::unsent) != change_.has_value(), "a change is known once it may have been sent");
  }
  bool pending() const { return state_ == State::pending; }

  // Returns nullopt if no change must be made.
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
  // Throws if a copy, which would be written, is missing and the counter exists with another copy count.
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
    // A server's remaining ttl may know better than our clock which records have expired.
    const WallTime now = context_.clock.wall();
    const auto may_have_ended = [now](const Copy& copy) {
      return copy.record && copy.record->has_expired(now);
    };
    if (asked.empty() && any(may_have_ended)) return read();
    end_those_before();
    for (const Copy& copy : copies_) {
      if (copy.record) known_.merge(*copy.record);
    }
  }

  void take(Copy& copy, const Reply& reply) {
    const bool pending = is_pending(copy.failure);
    copy = {.server = copy.server, .refused = copy.refused};
    copy.failure = attempt([&] { expect_read(context_.cluster, reply); }).failure();
    const std::string server = context_.cluster.address_of(copy.server);
    if (copy.failure && pending) copy.failure = UnknownOutcome("no reply to a write", server);
    if (copy.failure) return;
    copy.found = reply.outcome == Outcome::hit;
    copy.cas = reply.cas;
    copy.flags = reply.flags;
    if (!copy.found) return;
    copy.record = counter_.record_in(reply.value);
    if (!copy.record) throw CorruptData(no_counter_message(name_, reply.value), server);
    if (!reply.age.ttl || reply.age.ttl->count() < 0) return;
    copy.ttl = reply.age.ttl;
    copy.record->read_clock(*copy.ttl, context_.clock.wall());
  }

  // Drops records that have expired, and records of an earlier counter: such a record expires within seconds,
  // another one later, and it lacks an incarnation in which the other has counted.
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
      if (ends && copy.record->is_unrelated_to(*latest)) copy.record.reset();
    }
  }

  // Reads all copies again, because what was known before may have been lost. Throws if too few answered.
  void look() {
    known_ = {};
    read();
    check_if_missing();
    if (!known_.exists()) check_copy_count();
    if (!pending()) was_nowhere_ = !known_.exists();
    rely();
  }

  void rely() const {
    const auto has_record = [](const Copy& copy) { return copy.record.has_value(); };
    if (const auto failure = failure_of(QuorumPhase::reading, copies_, has_record)) raise(*failure);
  }

  static bool has(const Copy& copy, const CounterRecord& wanted) {
    return copy.record ? copy.record->covers(wanted) : wanted.is_empty();
  }
  bool lacks(const Copy& copy) const { return !copy.failure && !has(copy, known_); }

  // Returns the first copy that answers, or nullptr. Clients that see the same servers count on the same
  // copy.
  Copy* leader() {
    for (Copy& copy : copies_) {
      if (!copy.failure && !copy.refused && (!pending() || change_->server == copy.server)) return &copy;
    }
    return nullptr;
  }

  // Decides what became of a pending change. It stays pending if it must be sent again with the same id, or
  // if its copy does not answer. Throws UnknownOutcome if the copy cannot show it: without ids, only an
  // unchanged item does.
  void resolve_pending() {
    if (change_->may_be_written_back) {
      known_.merge(known_.base.number == 0 ? change_->next : change_->own());
      return enter(State::found);
    }
    const Copy* copy = leader();
    if (copy == nullptr) return;
    const bool has_ids = copy->record && !copy->record->base.plain && !change_->id.empty();
    const auto reported =
        has_ids ? copy->record->tells(change_->id, change_->next.incarnation, change_->next.changes() - 1)
                : std::nullopt;
    if (has_ids ? !reported : !change_->is_over(*copy)) give_up();
    if (reported.value_or(false)) return enter(State::found);
    // After a conflicting write, the lost one can never be executed.
    if (!change_->is_over(*copy)) enter(State::unsent);
  }

  // Makes the change in one copy. Returns false if no change had to be made and the answer is confirmed. A
  // crash leaves the change in that copy or in none; a reader writes it to the others.
  bool change(const Making& make) {
    int silent = 0;
    for (int attempts = 0; attempts < max_counts; ++attempts) {
      back_off(context_, attempts);
      const auto looked = attempt([&] { look(); });
      if (!pending()) looked.value();
      if (!looked.failure() && pending()) resolve_pending();
      if (state_ == State::found) return true;
      Copy* first = looked.failure() ? nullptr : leader();
      if (first == nullptr && !pending()) raise(*refusal_);
      if (first == nullptr && ++silent == max_silences) give_up();
      if (first == nullptr) continue;
      auto change = attempt([&] { return make(*first); });
      if (pending() && (change.failure() || !change.value())) give_up();
      if (!change.value()) return answer_unchanged(), false;
      store(*first, std::move(*change.value()));
      if (!pending() && state_ != State::unsent) return true;
    }
    if (pending()) give_up();
    throw Contention("other clients kept changing the counter '" + name_ + "'; try again");
  }

  // Sends the change to one copy. A lost reply leaves it pending. If another client was first, or the copy
  // refuses, this attempt was not stored, but an earlier one stays pending.
  void store(Copy& copy, Change change) {
    if (!pending()) rejections_.expect_rival(context_, copy.server, copy.found, copy.cas);
    require(!pending() || change_->is_over(copy), "of two attempts with one id only one can be stored");
    std::tie(change.server, change.found, change.cas) = std::tie(copy.server, copy.found, copy.cas);
    change.may_be_written_back = !change.next.is_single() && (!copy.record || change.id.empty());
    const auto request = attempt([&] { return write(copy, change.next, change.ttl); });
    const Reply reply = request.failure() ? Reply() : context_.cluster.execute(request.value());
    if (reply.outcome == Outcome::stored || reply.outcome == Outcome::deleted) {
      copy.record = known_ = change.next;
      copy.found = true;
      change_ = std::move(change);
      enter(pending() ? State::found : State::made);
    } else if (reply.unknown()) {
      change_ = std::move(change);
      enter(State::pending);
    } else if (reply.failed()) {
      copy.refused = true;
      refusal_ = request.failure() ? request.failure() : copy_outcome(context_, reply).failure;
      if (!pending() && leader() == nullptr) raise(*refusal_);
    } else {
      rejections_.add(reply, copy.found, copy.cas);
    }
  }

  // Returns the record to change on this copy: everything known, with this copy's incarnation or a new one.
  CounterRecord base_for(const Copy& copy) const {
    CounterRecord base = copy.record
                             ? *copy.record
                             : CounterRecord::of_new_incarnation(counter_.server_counts(), context_.random);
    base.merge(known_);
    base.incarnations[base.incarnation];
    return base;
  }

  // Returns `base` with its number and with what it takes away. If some copies could not be read, their bases
  // must not count as newer, also because an increment may have begun again without seeing this one.
  CounterRecord reset_to(Epoch base) const {
    const bool pending =
        known_.base.number <= 1 && any([](const Copy& copy) { return copy.failure.has_value(); });
    if (known_.base.number + 1 >= CounterRecord::max_epochs)
      throw CorruptData("the counter '" + name_ + "' was changed too often; remove its keys");
    base.number = pending ? first_uncertain_version : known_.base.number + 1;
    base.mark = context_.random.token();
    if (base.kind == Kind::removed) base.expires_at = known_.base.expires_at;
    CounterRecord reset;
    reset.base = std::move(base);
    for (const auto& [name, incarnation] : known_.incarnations)
      reset.incarnations[name] = {incarnation.made, incarnation.made};
    return reset;
  }

  // Returns the request that stores the record in this copy. A removed single copy is deleted. `ttl` is that
  // of the item, which a plain counter keeps.
  Request write(const Copy& copy, const CounterRecord& record,
                std::optional<std::chrono::seconds> ttl = {}) const {
    if (record.is_single() && !record.exists()) return removal_of(key_, copy.cas).on(copy.server);
    const WallTime now = context_.clock.wall();
    const Exptime exptime = record.base.plain && ttl
                                ? Exptime::after(std::max(*ttl, std::chrono::seconds(1)), now)
                                : record.exptime(now);
    Request request =
        write_over(context_, key_, copy.found, copy.cas, {record.text(), exptime, copy.flags}, copy.server);
    request.must_expire = request.must_expire && record.exists();
    return request;
  }

  // Returns our change alone, without what the copies had.
  CounterRecord mine() const { return change_ ? change_->own() : CounterRecord(); }

  // Writes the merged record to the copies that have less. A lost reply is settled by reading. If it must
  // read again, it restores nothing but our own change: what was read before may have been lost with its only
  // copy, and a set with a lower base number may have followed.
  void write_back() {
    for (int attempts = 0;; ++attempts) {
      std::vector<Request> batch;
      std::vector<std::pair<Copy*, CounterRecord>> open;
      for (Copy& copy : copies_) {
        if (!lacks(copy)) continue;
        CounterRecord record = base_for(copy);
        auto request = attempt([&] {
          if (attempts < max_write_backs) return write(copy, record);
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
        if (state_ == State::built && (stored || replies[k].unknown())) enter(State::sent);
        copy->failure = copy_outcome(context_, replies[k]).failure;
        if (stored) {
          copy->record = std::move(record);
          copy->found = true;
        } else if (!copy->failure || is_pending(copy->failure)) {
          done = false;
        }
      }
      if (done) return;
      back_off(context_, attempts + 1);
      const CounterRecord before = std::exchange(known_, mine());
      read();
      if (known_.base.number == 0) known_.merge(before);  // no copy that answers has a base
      if (attempt([&] { check_if_missing(); }).failure()) return;
    }
  }

  void expect(QuorumPhase part, const CounterRecord& wanted) const {
    const auto failure = failure_of(part, copies_, [&](const Copy& copy) { return has(copy, wanted); });
    if (!failure) return;
    // A write to a copy that cannot be read now may count.
    if (part == QuorumPhase::writing && state_ != State::built)
      throw UnknownOutcome(failure->what(), failure->server());
    raise(*failure);
  }

  void answer_unchanged() {
    write_back();
    expect(QuorumPhase::answering, known_);
  }

  // Reads, then writes to all copies a new base and what it takes away, which is what it read: two trips.
  // Once a write was sent it is not repeated: that would take away increments that the first did not see. If
  // nothing was written and a newer base appears, that may have existed before, and this set must come after
  // it.
  bool set_anyway(const Epoch& base) {
    for (int attempts = 0; attempts < max_counts; ++attempts) {
      back_off(context_, attempts);
      look();
      change_ = Change{.next = reset_to(base), .has_new_base = true};
      enter(State::built);
      known_.merge(change_->next);
      write_back();
      const bool superseded = known_.base.mark != change_->next.base.mark;
      if (superseded && state_ == State::built) {
        enter(State::unsent);
        continue;
      }
      if (superseded && change_->next.base.number == first_uncertain_version)
        throw UnknownOutcome(
            "the copies of the counter '" + name_ +
            "' hold different values and none is known to be newer; read the counter and set it again");
      expect(QuorumPhase::writing, change_->next);
      return true;
    }
    throw Contention("other clients kept changing the counter '" + name_ + "'; try again");
  }

  // Removes, or sets with if_absent: writes to the first copy that answers, by cas on what was read there,
  // then to the others. Of concurrent claims, the one that finds its mark on a majority succeeds; one that
  // lost to another before has an unknown outcome. Returns false if the counter does not exist, or exists and
  // must not. A write that may have been applied is not built again, because it would take away later
  // changes; the following write-back shows whether it was executed.
  bool claim(const Epoch& base, bool of_existing) {
    const auto make = [&](const Copy& first) -> std::optional<Change> {
      if (known_.exists() != of_existing) return std::nullopt;
      Change change{.next = base_for(first), .has_new_base = true};
      change.next.merge(reset_to(base));
      return change;
    };
    if (!change(make)) return false;
    write_back();
    const std::string& mark = change_->next.base.mark;
    const auto failure = failure_of(QuorumPhase::writing, copies_, [&](const Copy& copy) {
      return copy.record && copy.record->base.mark == mark;
    });
    // A copy that was not written may have got another client's change.
    if (failure)
      throw UnknownOutcome("the change of the counter '" + name_ +
                               "' may have been lost to another client's: " + failure->what(),
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

  void give_up() const { throw may_be_counted(name_, context_.cluster.address_of(change_->server)); }

  const Counter& counter_;
  const Context& context_;
  const std::string& name_;
  std::string window_, key_;
  std::optional<CopyCountGuard> guard_;
  std::span<const Reply> first_;  // replies to take instead of reading
  std::vector<Copy> copies_;
  State state_ = State::unsent;
  std::optional<Change> change_;  // as it was sent last; nullopt in unsent
  CounterRecord known_;           // all copies merged, with our change
  std::optional<Failure> refusal_;
  bool was_nowhere_ = false;  // at the first read
  Rejections rejections_;
};

}  // namespace

UnknownOutcome may_be_counted(const std::string& name, const std::string& server) {
  return UnknownOutcome("no reply to a change of the counter '" + name +
                            "'; it may have been counted; compare the value before you retry",
                        server);
}

std::unique_ptr<CounterCopies> CounterCopies::of(const Counter& counter, const std::string& name,
                                                 const std::string& window, std::span<const Reply> first) {
  return std::make_unique<CounterOperation>(counter, name, window, first);
}

}  // namespace mcds
