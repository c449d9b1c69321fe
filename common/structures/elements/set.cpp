// Setting the elements of a table or hash: the steps that elements.hpp argues about, all copies side by side.
#include <algorithm>
#include <functional>
#include <set>
#include <unordered_map>
#include <utility>

#include "common/structures/elements/elements.hpp"
#include "common/structures/elements/indexes.hpp"

namespace mcds {

namespace {

constexpr int most_rounds = 6;

}  // namespace

class Elements::Setting {
 public:
  Setting(Elements& elements, std::span<const Element> batch, std::optional<Duration> ttl)
      : elements_(elements), batch_(batch), ttl_(ttl) {
    if (ttl_) expect_only(elements_.context_.copies, "an element that expires has one copy");
    if (ttl_ && *ttl_ <= Duration::zero()) throw InvalidInput("the ttl must be longer than 0");
    ones_.resize(batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      ones_[i].element = &batch[i];
      hashes_.push_back(std::hash<std::string>()(batch[i].name));
    }
    std::sort(hashes_.begin(), hashes_.end());
    if (versioned()) take_last_of_repeated();
  }

  // Whether the next batch may begin while this one is on its way: they have no name in common.
  bool leaves_alone(const Setting& next) const {
    if (step_ == Step::done) return true;
    auto one = hashes_.begin();
    for (const std::size_t other : next.hashes_) {
      while (one != hashes_.end() && *one < other) ++one;
      if (one != hashes_.end() && *one == other) return false;
    }
    return true;
  }

  // When all of the last batch that ended were new, step 1 is left out, or with several copies on its way
  // during 2: to list one that exists is harmless, and `add` finds it there, or the reading, and what follows
  // replaces it.
  bool guesses() const { return elements_.were_new_; }

  void begin() { guesses() ? begin_unread() : run(); }

  // Begins to write what is listed by now.
  void proceed() {
    if (step_ != Step::listing) return;
    stepping([&] {
      finish_unread();
      step_ = Step::writing;
      if (versioned())
        begin_copies();
      else if (asked_ = open(); !asked_.empty())
        adding_ = elements_.context_.cluster.begin(additions());
    });
  }

  void finish() {
    proceed();
    if (step_ != Step::writing) return;
    stepping([&] {
      if (adding_ != nullptr) added(std::exchange(adding_, nullptr)->finish());
      if (writing_) finish_copies(std::move(*std::exchange(writing_, std::nullopt)));
      run();
    });
  }

  std::vector<ElementResult> results() {
    if (failure_) raise(*failure_);
    std::vector<ElementResult> results;
    results.reserve(ones_.size());
    for (One& one : ones_) {
      if (one.open())
        one.failure =
            Contention("other clients keep creating and removing this element; it was not set, try again");
      if (one.partly && one.failure)
        one.failure = UnknownOutcome(std::string("it was perhaps set, and then: ") + one.failure->what(),
                                     one.failure->server());
      ElementResult& result = results.emplace_back();
      result.yes = created(one) && !one.repeated;
      if (!one.item.copies.empty()) result.server = one.item.copies.front().server;
      result.failure = one.failure;
      result.copies = one.item.outcomes();
      for (std::size_t copy = 0; copy < result.copies.size() && copy < one.unlisted.size(); ++copy) {
        if (one.unlisted[copy]) tell_unlisted(result.copies, copy, *one.unlisted[copy]);
      }
    }
    return results;
  }

 private:
  // One element; with one copy `item` knows nothing of its value.
  struct One {
    const Element* element = nullptr;
    VersionedItem item = {};
    std::optional<VersionedWrite> write = {};  // decided
    bool repeated = false;                     // the batch had its name before
    bool to_list = false;                      // a copy lacks it, or has its removal
    bool missing = false;                      // no copy had it
    bool done = false;
    bool partly = false;  // perhaps one copy has it, while others went missing
    bool alone = false;   // some copies got it, and of those that were not read some do not answer
    bool first = false;   // the first copy got it unread, which another had, or did not answer
    std::optional<Failure> failure = {};
    std::optional<SteadyTime> listed_at = {};
    std::optional<SteadyTime> added_at = {};
    std::vector<std::optional<Failure>> unlisted = {};  // per copy

    bool open() const { return !done && !failure; }
    // Its line may have been dropped or lost before the element was there.
    bool written_late() const {
      return added_at && !failure && listed_at && *added_at - *listed_at > ElementIndex::most_unlisted;
    }
  };

  // Of a name that is given twice the last value counts; what one batch writes is of one version.
  void take_last_of_repeated() {
    if (std::adjacent_find(hashes_.begin(), hashes_.end()) == hashes_.end()) return;
    std::unordered_map<std::string_view, const Element*> last;
    for (One& one : ones_) one.repeated = !last.insert_or_assign(one.element->name, one.element).second;
    for (One& one : ones_) one.element = last.at(one.element->name);
  }

  template <typename Test>
  std::vector<One*> all(const Test& test) {
    std::vector<One*> found;
    found.reserve(ones_.size());
    for (One& one : ones_) {
      if (test(one)) found.push_back(&one);
    }
    return found;
  }
  template <typename Test>
  bool any(const Test& test) const {
    return std::any_of(ones_.begin(), ones_.end(), test);
  }
  std::vector<One*> open() { return all(is_open); }
  static bool is_open(const One& one) { return one.open(); }
  // In all copies, or in one.
  bool any_missing() const {
    return any([](const One& one) { return one.open() && one.to_list; });
  }
  // Before something is created. Another batch, or a part of this, may have been told so first.
  void expect_here() {
    const auto here = attempt([&] { elements_.expect_here(); });
    if (!here.failure()) return;
    if (!any([](const One& one) { return !one.open() || one.partly; })) raise(*here.failure());
    for (One* one : open()) one->failure = here.failure();
  }
  // The copies of the index and of an element are on servers of their own: what one server did not do is that
  // server's copy, or if it has none, the copy of this number.
  void tell_unlisted(std::vector<CopyOutcome>& copies, std::size_t number, const Failure& failure) const {
    auto lags = std::find_if(copies.begin(), copies.end(), [&](const CopyOutcome& copy) {
      return elements_.context_.cluster.address_of(copy.server) == failure.server();
    });
    if (lags == copies.end()) lags = copies.begin() + static_cast<std::ptrdiff_t>(number);
    if (!lags->failure) lags->failure = failure;
  }
  bool versioned() const { return elements_.versions_.in_use(); }
  std::string key_of(const One& one) const { return elements_.key_of(one.element->name); }

  // Of a failure that ends it the answers are told.
  template <typename Work>
  void stepping(const Work& work) {
    failure_ = attempt(work).failure();
    if (failure_) step_ = Step::done;
  }

  // As list_missing(), while it is read in several copies.
  void begin_unread() {
    for (One* one : open()) one->missing = one->to_list = true;
    if (any_missing()) expect_here();
    asked_ = open();
    begin_list(to_be_listed());
    if (versioned() && !asked_.empty()) reading_ = elements_.versions_.begin_read(keys_of(asked_), unread());
    step_ = Step::listing;
  }

  // What was there before this client began the structure would be listed.
  std::size_t unread() const {
    const bool began = listing_ && elements_.indexes_->created_just_now(listing_->shares);
    return began ? elements_.context_.copies : 1;
  }

  // Nothing is written yet.
  void finish_unread() {
    std::vector<VersionedItem> items;
    if (reading_) items = elements_.versions_.finish_read(*std::exchange(reading_, std::nullopt));
    finish_list();
    if (versioned()) take(asked_, std::move(items));
  }

  // What is left of the steps.
  void run() {
    step_ = Step::done;
    list(all([](const One& one) { return one.written_late(); }));
    for (int round = 0; round < most_rounds && any(is_open); ++round) {
      look();
      list_missing();
      write();
      list(all([](const One& one) { return one.written_late(); }));
    }
    if (began_) confirm();
    elements_.were_new_ = !ones_.empty() && !any([this](const One& one) {
      return !one.done || !created(one) || one.item.any_failed();
    });
  }

  void list_missing() {
    if (any_missing()) expect_here();
    list(to_be_listed());
  }

  // Those too that exist, if what listed them may be lost.
  std::vector<One*> to_be_listed() {
    const bool relists = elements_.relists_.value_or(false);
    return all([&](const One& one) {
      return !one.failure && !one.listed_at && (relists || (!one.done && one.to_list));
    });
  }

  void look() { versioned() ? read() : replace(); }

  // The first batch of several elements asks for the index, too, in the trip in which it looks for them.
  std::optional<ElementIndexes::Probe> probe() {
    if (elements_.relists_ || batch_.size() == 1) return std::nullopt;
    elements_.relists_ = false;
    return elements_.indexes_->probe(names_of(open()));
  }

  void take(const ElementIndexes::Probe& probe, std::span<const Reply> replies) {
    std::set<std::size_t> shards;
    for (const One& one : ones_) {
      if (!one.missing && !one.failure) shards.insert(index_shard_of(one.element->name));
    }
    elements_.relists_ = elements_.indexes_->is_damaged(probe, replies, shards);
  }

  void write() {
    if (!versioned()) return add();
    begin_copies();
    finish_copies(std::move(*std::exchange(writing_, std::nullopt)));
  }

  // The only copy: done are those that exist.
  void replace() {
    std::vector<Request> batch;
    const auto asked = open();
    for (const One* one : asked)
      batch.push_back(Request::replace(key_of(*one), one->element->value, Exptime::never()));
    batch = ending(std::move(batch));
    const auto probe = this->probe();
    if (probe) batch.insert(batch.end(), probe->requests.begin(), probe->requests.end());
    const auto replies = elements_.context_.cluster.execute(batch);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      asked[i]->missing = asked[i]->to_list = replies[i].outcome == Outcome::not_stored;
      settle(*asked[i], replies[i]);
    }
    if (probe) take(*probe, std::span(replies).subspan(asked.size()));
  }

  void add() {
    asked_ = open();
    if (!asked_.empty()) added(elements_.context_.cluster.execute(additions()));
  }

  std::vector<Request> additions() {
    std::vector<Request> batch;
    for (const One* one : asked_)
      batch.push_back(Request::add(key_of(*one), one->element->value, Exptime::never()));
    batch = ending(std::move(batch));
    for (Request& mark : elements_.index(0).take_marks()) batch.push_back(std::move(mark));
    return batch;
  }

  // Done are all but those that exist by now.
  void added(std::span<const Reply> replies) {
    const SteadyTime now = elements_.context_.clock.steady();
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      settle(*asked_[i], replies[i]);
      asked_[i]->missing = replies[i].outcome == Outcome::stored;
      asked_[i]->added_at = now;
    }
  }

  // Each attempt has the whole ttl before it.
  std::vector<Request> ending(std::vector<Request> batch) const {
    if (!ttl_) return batch;
    const Exptime exptime = Exptime::after(*ttl_, elements_.context_.clock.wall());
    for (Request& request : batch) {
      request.exptime = exptime;
      request.flags = ending_flags;
      request.must_expire = true;
    }
    return batch;
  }

  void settle(One& one, const Reply& reply) const {
    one.item.copies = {{.server = reply.server}};
    one.done = reply.outcome == Outcome::stored;
    one.failure = copy_outcome(elements_.context_, reply).failure;
  }

  // What is decided already was read again when it was overtaken.
  void read() {
    const auto asked = all([](const One& one) { return one.open() && !one.write; });
    if (const auto probe = this->probe()) return read_beside(*probe, asked);
    take(asked, elements_.versions_.read(keys_of(asked)));
  }

  void read_beside(const ElementIndexes::Probe& probe, const std::vector<One*>& asked) {
    const std::vector<std::string> keys = keys_of(asked);
    std::vector<Request> batch;
    for (const std::string& key : keys) batch.push_back(Request::gets(key));
    batch = to_copies(elements_.context_, batch);
    const std::size_t gets = batch.size(), copies = elements_.copies_.size();
    batch.insert(batch.end(), probe.requests.begin(), probe.requests.end());
    const auto replies = elements_.context_.cluster.execute(batch);
    std::vector<VersionedItem> items;
    for (std::size_t i = 0; i < keys.size(); ++i)
      items.push_back(elements_.versions_.item_of(keys[i], std::span(replies).subspan(i * copies, copies)));
    take(asked, std::move(items));
    take(probe, std::span(replies).subspan(gets));
  }

  std::vector<std::string> keys_of(const std::vector<One*>& ones) const {
    std::vector<std::string> keys;
    keys.reserve(ones.size());
    for (const One* one : ones) keys.push_back(key_of(*one));
    return keys;
  }

  void take(const std::vector<One*>& asked, std::vector<VersionedItem> items) {
    for (std::size_t i = 0; i < asked.size(); ++i) {
      One& one = *asked[i];
      one.item = std::move(items[i]);
      if (!one.failure) one.failure = one.item.failure_of_read();
      if (one.failure) continue;
      const bool ours = one.alone && one.item.live() && one.item.newest()->number == 1;
      one.missing = !one.item.live() || ours;
      const auto number = ours ? first_in_doubt : one.item.next_number();
      if (!number) {
        one.failure = no_version_left(one.item.key);
        continue;
      }
      one.write = VersionedWrite{.item = &one.item, .number = *number, .value = one.element->value};
    }
    for (One& one : ones_) {
      if (one.open()) one.to_list = !one.item.live_everywhere();
    }
  }

  void begin_copies() {
    asked_ = open();
    writes_.clear();
    writes_.reserve(asked_.size());
    for (One* one : asked_) {
      one->write->only_over_live = !one->listed_at;
      writes_.push_back(*one->write);
    }
    writing_ = elements_.versions_.begin_write(writes_);
  }

  void finish_copies(Versions::Writing writing) {
    elements_.versions_.finish_write(std::move(writing));
    const SteadyTime now = elements_.context_.clock.steady();
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      One& one = *asked_[i];
      if (one.to_list) one.added_at = now;
      if (writes_[i].blocked || writes_[i].misread) {
        one.write.reset();  // it went missing, or was there: as if it had not been looked for
        const auto& copies = one.item.copies;
        one.partly = one.partly || std::any_of(copies.begin(), copies.end(),
                                               [](const auto& copy) { return copy.written || copy.failure; });
        one.alone = writes_[i].misread && !writes_[i].held &&
                    std::any_of(copies.begin(), copies.end(), [](const auto& copy) { return copy.written; });
        one.first = one.first || (writes_[i].misread && copies.front().written);
        continue;
      }
      one.failure = one.item.failure_of_write();
      one.done = !one.failure;
    }
    for (const std::size_t i : elements_.versions_.unseen(writes_)) {
      One& one = *asked_[i];
      if (std::exchange(one.done, false))
        one.failure = UnknownOutcome(
            "another client that does not reach one of its two servers removed it at the same time, or found "
            "nothing to remove; read it, and set it again",
            elements_.context_.cluster.address_of(one.item.copies.front().server));
    }
  }

  void list(const std::vector<One*>& ones) {
    if (ones.empty()) return;
    const SteadyTime before = elements_.context_.clock.steady();
    take_lists(ones, before, elements_.indexes_->list(names_of(ones)));
  }

  void begin_list(std::vector<One*> ones) {
    listed_ = std::move(ones);
    if (listed_.empty()) return;
    listing_at_ = elements_.context_.clock.steady();
    listing_ = elements_.indexes_->begin_list(names_of(listed_));
  }

  void finish_list() {
    if (!listing_) return;
    take_lists(listed_, listing_at_, elements_.indexes_->finish_list(*std::exchange(listing_, std::nullopt)));
  }

  static std::vector<const std::string*> names_of(const std::vector<One*>& ones) {
    std::vector<const std::string*> names;
    names.reserve(ones.size());
    for (const One* one : ones) names.push_back(&one->element->name);
    return names;
  }

  // In as many copies as a change must be: which servers answer may be others for the index than for the
  // element.
  void take_lists(const std::vector<One*>& ones, SteadyTime before, ElementIndexes::Listed listed) {
    began_ = began_ || listed.began;
    for (std::size_t i = 0; i < ones.size(); ++i) {
      One& one = *ones[i];
      one.unlisted = std::move(listed.failures[i]);
      one.added_at.reset();
      const auto nowhere = one.unlisted.empty()
                               ? std::nullopt
                               : failure_of(Part::reading, std::span(std::as_const(one.unlisted)));
      if (nowhere) {
        if (one.done)
          one.failure = UnknownOutcome("it was set, but it may be missing in the index; set it again",
                                       nowhere->server());
        else
          one.failure = nowhere;
      } else {
        one.listed_at = before;
      }
    }
  }

  // Of what stays though the answer is no, each is told by itself.
  void confirm() {
    const auto confirmed = attempt([&] {
      elements_.guard_.confirm_creation([this] { return is_certain() && elements_.take_back(batch_); });
    });
    if (!confirmed.failure()) return;
    if (confirmed.failure()->code() != ErrorCode::unknown_outcome) raise(*confirmed.failure());
    for (One& one : ones_) {
      if (!one.failure) one.failure = confirmed.failure();
    }
  }

  // Nothing of it may be executed late.
  bool is_certain() {
    return !any([](const One& one) {
      return (one.failure && one.failure->code() == ErrorCode::unknown_outcome) || one.item.any_failed();
    });
  }

  // Whether no copy had it before: of several clients that create it at once, the one that wrote the first
  // copy while it held nothing was first.
  bool created(const One& one) const {
    const auto judge = std::find_if(one.item.copies.begin(), one.item.copies.end(),
                                    [](const auto& copy) { return !copy.failure; });
    const bool first = judge != one.item.copies.end() && (judge->begun || (one.alone && judge->written));
    return one.first || (one.missing && (!versioned() || first));
  }

  Elements& elements_;
  std::span<const Element> batch_;
  std::optional<Duration> ttl_;
  std::vector<One> ones_;
  bool began_ = false;  // listing has created the index
  std::optional<Failure> failure_;
  enum class Step { listing, writing, done } step_ = Step::done;  // what is on its way
  std::vector<One*> listed_;
  SteadyTime listing_at_;
  std::optional<ElementIndexes::Listing> listing_;
  std::vector<One*> asked_;
  std::unique_ptr<Pending> adding_;  // of one copy; of several:
  std::optional<Versions::Reading> reading_;
  std::vector<VersionedWrite> writes_;
  std::optional<Versions::Writing> writing_;
  std::vector<std::size_t> hashes_;  // of the names, sorted
};

std::vector<ElementResult> Elements::set(std::span<const Element> elements, std::optional<Duration> ttl) {
  return begin_set(elements, ttl)();
}

Elements::Answers Elements::begin_set(std::span<const Element> elements, std::optional<Duration> ttl) {
  const auto setting = std::make_shared<Setting>(*this, elements, ttl);
  std::vector<std::shared_ptr<Setting>> before;
  for (const auto& one : std::exchange(on_their_way_, {})) {
    if (const auto still = one.lock()) before.push_back(still);
  }
  const bool waits = !setting->guesses() || std::any_of(before.begin(), before.end(), [&](const auto& one) {
    return !one->leaves_alone(*setting);
  });
  for (const auto& one : before) {
    if (waits) one->finish();
  }
  setting->begin();
  for (const auto& one : before) one->proceed();
  on_their_way_.assign(before.begin(), before.end());
  on_their_way_.push_back(setting);
  return [setting] {
    setting->finish();
    return setting->results();
  };
}

}  // namespace mcds
