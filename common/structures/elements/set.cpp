// Sets elements of a table or hash in all copies concurrently. Every acknowledged element must be listed in
// the index, so a missing one is listed before it is written. The states of one element of a batch:
//
//                  read
//   unread, cut_off -----> present ----------------------+   write
//     ^   |                                              +----------> stored
//     |   +--> missing -----> listed --------------------+               |
//     |   |            list   ^   |                      |               |  could not be listed again
//     |   +-------------------+   |                      |               v
//     +---------------------------+----------------------+            failed <-- every other state
//                  another client was first
//
// Each step below says what a crash, another client and a lost reply leave behind there. A single copy is
// read by `replace`, which stores an element that exists (unread --> stored), and is written by `add`.
//
// If all elements of the last batch were new, those of the next are expected to be. Then they are listed
// without reading (single copy) or in the same trip (several), and one batch is listed while the batch before
// it is written: a crash leaves names listed without keys, of at most three batches. Batches with a name in
// common, and those that begin by reading, wait.
//
// An element of several copies that is expected to be new is not read in its first copy (versions.hpp,
// new). If this client created the element's shard in every copy less than 10 s ago, no copy is read: if the
// element had existed before, so would its shard. Then the client that writes the first copy created the
// element, whatever the other copies hold. An element that another client created in these 10 s and that the
// first copy lost may be reported as new again, and has the later value.
//
// While the writes of a batch are in flight, a reader finds them in some copies and repairs the others, and a
// concurrent writer finds a version and raises it. A crash leaves elements that some copies lack, as between
// any two copies' writes, but of a whole batch. A write that lost to another client is settled when the batch
// is finished. A write that could not be sent is not retried, and its copy is reported as lagging.
#include <algorithm>
#include <unordered_map>

#include "common/structures/elements/elements.hpp"
#include "common/structures/elements/index.hpp"

namespace mcds {

namespace {

constexpr int max_rounds = 6;

}  // namespace

class Elements::Setting {
 public:
  Setting(Elements& elements, std::span<const Element> batch, std::optional<Duration> ttl)
      : elements_(elements), batch_(batch), ttl_(ttl) {
    if (ttl_) require_single_copy(elements_.context_.copies, "an element that expires has one copy");
    if (ttl_ && *ttl_ <= Duration::zero()) throw InvalidInput("the ttl must be longer than 0");
    ones_.resize(batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      ones_[i].element = &batch[i];
      hashes_.push_back(std::hash<std::string>()(batch[i].name));
    }
    std::sort(hashes_.begin(), hashes_.end());
    if (versioned()) take_last_of_repeated();
  }

  // Returns true if the next batch may begin while this one is in flight: they have no name in common.
  bool leaves_alone(const Setting& next) const {
    if (step_ == Step::done) return true;
    auto one = hashes_.begin();
    for (const std::size_t other : next.hashes_) {
      while (one != hashes_.end() && *one < other) ++one;
      if (one != hashes_.end() && *one == other) return false;
    }
    return true;
  }

  // Returns true if the elements are expected to be new. Listing an existing one is harmless; `add`, or the
  // reading, finds that it exists, and the remaining steps replace it.
  bool guesses() const { return elements_.were_new_; }

  void begin() { guesses() ? begin_unread() : run(); }

  // Writes the elements that are listed now.
  void proceed() {
    if (step_ != Step::listing) return;
    stepping([&] {
      finish_unread();
      step_ = Step::writing;
      begin_write();
    });
  }

  void finish() {
    proceed();
    if (step_ != Step::writing) return;
    stepping([&] {
      finish_write();
      run();
    });
  }

  std::vector<ElementResult> results() {
    if (failure_) raise(*failure_);
    std::vector<ElementResult> results;
    results.reserve(ones_.size());
    for (One& one : ones_) {
      if (is_open(one))
        one.fail(Contention(
            "other clients keep creating and removing this element; the element was not set; try again"));
      if (one.partly_stored && one.failure)
        one.failure = UnknownOutcome(std::string("the element may have been set, then: ") +
                                         one.failure->what() + "; read it before you retry",
                                     one.failure->server());
      ElementResult& result = results.emplace_back();
      result.yes = created(one) && !one.repeated;
      if (!one.item.copies.empty()) result.server = one.item.copies.front().server;
      result.failure = one.failure;
      result.copies = one.item.outcomes();
      for (std::size_t copy = 0; copy < result.copies.size() && copy < one.unlisted.size(); ++copy) {
        if (one.unlisted[copy]) report_unlisted(result.copies, copy, *one.unlisted[copy]);
      }
    }
    return results;
  }

 private:
  enum class State {
    unread,   // nothing is known, or another client has changed what was read
    cut_off,  // as unread; some copies got it, none has another client's, and an unread copy does not answer
    present,  // every copy that answered has it
    missing,  // a copy lacks it or has its tombstone, and the index may not list it
    listed,   // as missing, but this batch has listed it
    stored,   // acknowledged, unless it cannot be listed again
    failed,   // `failure` says why
  };
  // The client that created the element, as far as it is known.
  enum class Creator {
    first_writer,          // no copy had it: the client that wrote the first copy while it was empty
    first_writer_or_self,  // the same, but this client may have written that copy before
    self,                  // it wrote the first copy unread, and that was empty
    others,                // a copy had it
  };

  // One element of the batch. With one copy, `item` does not have its value. Two flags are not states: the
  // batch decides `repeated`, and `partly_stored` stays when another client returns the element to unread.
  struct One {
    const Element* element = nullptr;
    State state = State::unread;
    Creator creator = Creator::first_writer;
    VersionedItem item = {};
    std::uint32_t number = 0;    // the version to be written
    bool repeated = false;       // the batch had this name before
    bool partly_stored = false;  // a copy may have it from a write that another client made us repeat
    std::optional<Failure> failure = {};
    std::optional<SteadyTime> listed_at = {};
    std::optional<SteadyTime> added_at = {};
    std::vector<std::optional<Failure>> unlisted = {};  // per copy

    void enter(State next) {
      require(may_follow(state, next), "an element is listed before it is created, and is finished once");
      require(next != State::listed || listed_at, "a listed element has a line");
      state = next;
    }
    void fail(const Failure& why) {
      enter(State::failed);
      failure = why;
    }
  };

  static bool may_follow(State from, State to) {
    using enum State;
    switch (from) {
      case unread: return to != unread && to != cut_off;
      case cut_off: return to == present || to == listed || to == failed;
      case present: return to == stored || to == unread || to == failed;
      case missing: return to == listed || to == failed;
      case listed: return to == stored || to == unread || to == cut_off || to == failed;
      case stored: return to == failed;
      case failed: return false;
    }
    return false;
  }
  static bool is_open(const One& one) { return one.state != State::stored && one.state != State::failed; }

  // If a name is given twice, the last value counts, because one batch writes one version of an element.
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
  // Checks the copy count before something is created. Once a part of the batch may have been acknowledged,
  // the failure is reported for the other elements only.
  void expect_here() {
    const auto here = attempt([&] { elements_.indexes_->expect_new(elements_.expect_here()); });
    if (!here.failure()) return;
    if (!any([](const One& one) { return !is_open(one) || one.partly_stored; })) raise(*here.failure());
    for (One* one : open()) one->fail(*here.failure());
  }
  // Reports a copy in which a name could not be listed: the element's copy on the server that failed, or if
  // there is none, the copy with this number, because the index's copies are on other servers.
  void report_unlisted(std::vector<CopyOutcome>& copies, std::size_t number, const Failure& failure) const {
    auto lags = std::find_if(copies.begin(), copies.end(), [&](const CopyOutcome& copy) {
      return elements_.context_.cluster.address_of(copy.server) == failure.server();
    });
    if (lags == copies.end()) lags = copies.begin() + static_cast<std::ptrdiff_t>(number);
    if (!lags->failure) lags->failure = failure;
  }
  bool versioned() const { return elements_.versions_.in_use(); }
  std::string key_of(const One& one) const { return elements_.key_of(one.element->name); }

  // Aborts the batch if `work` fails; results() rethrows the failure.
  template <typename Work>
  void stepping(const Work& work) {
    failure_ = attempt(work).failure();
    if (failure_) step_ = Step::done;
  }

  // Lists all names unread, and with several copies reads the elements in the same trip. A crash or a failed
  // reading leaves listed names without values, as in list_missing().
  void begin_unread() {
    if (!ones_.empty()) expect_here();
    step_ = Step::listing;
    asked_ = open();
    if (asked_.empty()) return;
    listing_at_ = elements_.context_.clock.steady();
    listing_ = elements_.indexes_->begin_list(names_of(asked_));
    if (versioned()) reading_ = elements_.versions_.begin_read(keys_of(asked_), unread());
  }

  // Returns how many copies need not be read: all if this client has just created the elements' shards,
  // because older elements would have had a shard, otherwise the first.
  std::size_t unread() const {
    return elements_.indexes_->created_just_now(listing_->shares) ? elements_.context_.copies : 1;
  }

  // Takes the replies to begin_unread(). No element is written yet.
  void finish_unread() {
    if (!listing_) return;
    std::vector<VersionedItem> items;
    if (reading_) items = elements_.versions_.finish_read(*std::exchange(reading_, std::nullopt));
    take_lists(asked_, listing_at_, elements_.indexes_->finish_list(*std::exchange(listing_, std::nullopt)));
    if (versioned()) return take(asked_, std::move(items));
    for (One* one : open()) one->enter(State::listed);  // and missing, as expected; `add` finds out
  }

  // Makes the remaining steps.
  void run() {
    step_ = Step::done;
    list_again();
    for (int round = 0; round < max_rounds && any(is_open); ++round) {
      versioned() ? read() : replace();
      list_missing();
      begin_write();
      finish_write();
      list_again();
    }
    if (began_) confirm();
    elements_.were_new_ = !ones_.empty() && !any([this](const One& one) {
      return one.state != State::stored || !created(one) || one.item.any_failed();
    });
  }

  // Lists the missing elements, and existing ones if their lines may be lost. A crash leaves a listed name
  // without a value, which fetch skips and compaction drops, or a new shard that the manifest does not name,
  // which the next fetch names. Of two clients each lists the name, which is harmless. After a lost reply the
  // index looks its line up; if that shows nothing, the element fails and is not written.
  void list_missing() {
    if (any([](const One& one) { return one.state == State::missing || one.state == State::listed; }))
      expect_here();
    const bool relists = elements_.relists_.value_or(false);
    list(all([&](const One& one) {
      return one.state != State::failed && !one.listed_at && (relists || one.state == State::missing);
    }));
  }

  // Lists elements again that were written late. Until then, a compaction may have dropped the line: a crash
  // leaves an element that fetch may not find and that was never acknowledged. If this fails, an element that
  // was stored has an unknown outcome.
  void list_again() {
    list(all([](const One& one) {
      return one.state != State::failed && one.added_at && one.listed_at &&
             *one.added_at - *one.listed_at > ElementIndex::max_unlisted;
    }));
  }

  // The first batch of several elements also checks the index, in the trip in which it reads the elements.
  std::optional<ElementIndexes::Probe> probe() {
    if (elements_.relists_ || batch_.size() == 1) return std::nullopt;
    elements_.relists_ = false;
    return elements_.indexes_->probe(names_of(open()));
  }

  void take(const ElementIndexes::Probe& probe, std::span<const Reply> replies) {
    std::set<std::size_t> shards;
    for (const One& one : ones_) {
      if (one.creator == Creator::others && !one.failure) shards.insert(index_shard_of(one.element->name));
    }
    elements_.relists_ = elements_.indexes_->is_damaged(probe, replies, shards);
  }

  // Sends the writes. A crash leaves elements in some copies, which readers repair: they are listed.
  void begin_write() {
    asked_ = open();
    for (const One* one : asked_)
      require(one->state == State::present || one->state == State::listed,
              "an element is listed before it is created");
    if (versioned())
      begin_copies();
    else if (!asked_.empty())
      adding_ = elements_.context_.cluster.begin(additions());
  }

  void finish_write() {
    if (adding_ != nullptr) added(std::exchange(adding_, nullptr)->finish());
    if (writing_) finish_copies(std::move(*std::exchange(writing_, std::nullopt)));
  }

  // Reads a single copy, and stores the elements that exist. A crash leaves the old value or the new one; it
  // creates nothing, so no line is missing. An element that another client removed before is missing, and
  // `add` follows. After a lost reply the outcome is unknown.
  void replace() {
    const auto asked = open();
    std::vector<Request> batch = requests(Op::replace, asked);
    const auto probe = this->probe();
    if (probe) batch.insert(batch.end(), probe->requests.begin(), probe->requests.end());
    const auto replies = elements_.context_.cluster.execute(batch);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      One& one = *asked[i];
      one.creator = replies[i].outcome == Outcome::stored ? Creator::others : Creator::first_writer;
      settle(one, replies[i], one.listed_at ? State::listed : State::missing);
    }
    if (probe) take(*probe, std::span(replies).subspan(asked.size()));
  }

  std::vector<Request> additions() {
    std::vector<Request> batch = requests(Op::add, asked_);
    for (Request& mark : elements_.index(0).take_marks()) batch.push_back(std::move(mark));
    return batch;
  }

  // Takes the replies to the additions. If another client was first, its element is replaced in the next
  // round. A lost reply leaves a listed name, with its element or without: the outcome is unknown.
  void added(std::span<const Reply> replies) {
    const SteadyTime now = elements_.context_.clock.steady();
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      settle(*asked_[i], replies[i], State::unread);
      asked_[i]->added_at = now;
    }
  }

  // Returns the requests that write a single copy. Each attempt has the whole ttl.
  std::vector<Request> requests(Op op, const std::vector<One*>& ones) const {
    const Exptime never = Exptime::never();
    const Exptime exptime = ttl_ ? Exptime::after(*ttl_, elements_.context_.clock.wall()) : never;
    std::vector<Request> batch;
    for (const One* one : ones) {
      Request& request = batch.emplace_back(Request::add(key_of(*one), one->element->value, exptime));
      request.op = op;
      request.flags = ttl_ ? ending_flags : 0;
      request.must_expire = ttl_.has_value();
    }
    return batch;
  }

  void settle(One& one, const Reply& reply, State otherwise) const {
    one.item.copies = {{.server = reply.server}};
    if (const auto failure = copy_outcome(elements_.context_, reply).failure)
      one.fail(*failure);
    else
      one.enter(reply.outcome == Outcome::stored ? State::stored : otherwise);
  }

  // Reads the copies. A crash leaves nothing behind. What another client changes from now on is found by the
  // write, which compares. A copy without a reply is not written; if too few answer, the element fails.
  void read() {
    const auto asked = open();
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
      asked[i]->item = std::move(items[i]);
      if (is_open(*asked[i])) take(*asked[i]);  // the others could not be listed
    }
  }

  // An element of ours that is cut off is written above the version that a silent copy may have begun with.
  void take(One& one) {
    const bool was_cut_off = one.state == State::cut_off;
    const bool ours = was_cut_off && one.item.live() && one.item.newest()->number == 1;
    const auto number = ours ? first_uncertain_version : one.item.next_number();
    if (const auto failure = one.item.failure_of_read()) return one.fail(*failure);
    if (!number) return one.fail(no_version_left(one.item.key));
    one.number = *number;
    if (one.creator != Creator::self) {
      const Creator if_missing = was_cut_off ? Creator::first_writer_or_self : Creator::first_writer;
      one.creator = one.item.live() && !ours ? Creator::others : if_missing;
    }
    const State if_missing = one.listed_at ? State::listed : State::missing;
    one.enter(one.item.live_everywhere() ? State::present : if_missing);
  }

  // An element that was present is not listed by us; if a copy of it has vanished, that copy is not written.
  void begin_copies() {
    writes_.clear();
    writes_.reserve(asked_.size());
    for (One* one : asked_) {
      writes_.push_back({.item = &one->item,
                         .number = one->number,
                         .value = one->element->value,
                         .only_over_live = !one->listed_at});
    }
    writing_ = elements_.versions_.begin_write(writes_);
  }

  // Takes the replies. If another client removed the element, or it exists in a copy that was not read, what
  // was read is forgotten. The copies that were written stay so: if the element fails later, its outcome is
  // unknown. A lost reply is a failed copy; the outcome is unknown only if too few others were written.
  void finish_copies(Versions::Writing writing) {
    elements_.versions_.finish_write(std::move(writing));
    const SteadyTime now = elements_.context_.clock.steady();
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      One& one = *asked_[i];
      const VersionedWrite& write = writes_[i];
      if (one.state == State::listed) one.added_at = now;
      if (write.blocked || write.misread) {
        const bool written = std::ranges::any_of(one.item.copies, &VersionedCopy::written);
        one.partly_stored = one.partly_stored || written || one.item.any_failed();
        if (write.misread && one.item.copies.front().written) one.creator = Creator::self;
        one.enter(write.misread && !write.held && written ? State::cut_off : State::unread);
      } else if (const auto failure = one.item.failure_of_write()) {
        one.fail(*failure);
      } else {
        one.enter(State::stored);
      }
    }
    for (const std::size_t i : elements_.versions_.unseen(writes_)) {
      One& one = *asked_[i];
      if (one.state != State::stored) continue;
      one.fail(UnknownOutcome(
          "another client, cut off from one of the two copies, may have removed the element at the same "
          "time; read it and set it again",
          elements_.context_.cluster.address_of(one.item.copies.front().server)));
    }
  }

  void list(const std::vector<One*>& ones) {
    if (ones.empty()) return;
    const SteadyTime before = elements_.context_.clock.steady();
    take_lists(ones, before, elements_.indexes_->list(names_of(ones)));
  }

  static std::vector<const std::string*> names_of(const std::vector<One*>& ones) {
    std::vector<const std::string*> names;
    names.reserve(ones.size());
    for (const One* one : ones) names.push_back(&one->element->name);
    return names;
  }

  // Records the results of listing. A name must be listed in as many copies as a change, because the servers
  // that answer for the index may not be those that answer for the element.
  void take_lists(const std::vector<One*>& ones, SteadyTime before, ElementIndexes::Listed listed) {
    began_ = began_ || listed.began;
    for (std::size_t i = 0; i < ones.size(); ++i) {
      One& one = *ones[i];
      one.unlisted = std::move(listed.failures[i]);
      one.added_at.reset();
      const auto nowhere = one.unlisted.empty()
                               ? std::nullopt
                               : failure_of(QuorumPhase::reading, std::span(std::as_const(one.unlisted)));
      if (nowhere && one.state == State::stored) {
        one.fail(UnknownOutcome(
            "the element was set but may be missing from the index; remove it and set it again",
            nowhere->server()));
      } else if (nowhere) {
        one.fail(*nowhere);
      } else {
        one.listed_at = before;
        if (one.state == State::missing) one.enter(State::listed);
      }
    }
  }

  // Confirms the creation of the structure. If elements stay despite an error, each of them reports it.
  void confirm() {
    const auto confirmed = attempt([&] {
      elements_.guard_.confirm_creation([this] { return is_certain() && elements_.take_back(batch_); });
    });
    if (!confirmed.failure()) return;
    if (confirmed.failure()->code() != ErrorCode::unknown_outcome) raise(*confirmed.failure());
    for (One& one : ones_) {
      if (one.state != State::failed) one.fail(*confirmed.failure());
    }
  }

  // Returns true if no request of this batch may be executed late.
  bool is_certain() {
    return !any([](const One& one) {
      return (one.failure && one.failure->code() == ErrorCode::unknown_outcome) || one.item.any_failed();
    });
  }

  // Returns true if this client created the element. Of several clients that create it at once, the one that
  // wrote the first copy while it was empty was first.
  bool created(const One& one) const {
    if (one.creator == Creator::others) return false;
    if (one.creator == Creator::self || !versioned()) return true;
    const auto judge = std::ranges::find_if(one.item.copies, [](const auto& copy) { return !copy.failure; });
    return judge != one.item.copies.end() &&
           (judge->begun || (one.creator == Creator::first_writer_or_self && judge->written));
  }

  Elements& elements_;
  std::span<const Element> batch_;
  std::optional<Duration> ttl_;
  std::vector<One> ones_;
  bool began_ = false;  // listing has created the index
  std::optional<Failure> failure_;
  enum class Step { listing, writing, done } step_ = Step::done;  // the step that is in flight
  SteadyTime listing_at_;
  std::optional<ElementIndexes::Listing> listing_;
  std::vector<One*> asked_;
  std::unique_ptr<Pending> adding_;  // with one copy; the next three with several:
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
  for (const auto& one : std::exchange(in_flight_, {})) {
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
  in_flight_.assign(before.begin(), before.end());
  in_flight_.push_back(setting);
  return [setting] {
    setting->finish();
    return setting->results();
  };
}

}  // namespace mcds
