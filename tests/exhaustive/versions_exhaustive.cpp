// A value in several copies is linearizable even if a client misses a copy, or a copy forgets or acts late.
#include "common/replication/versions.hpp"
#include "tests/exhaustive/pairs.hpp"
#include "tests/models/linearizability.hpp"

namespace mcds::versions_exhaustive {

namespace {

using Value = std::optional<std::string>;
using Acts = models::Acts<Value>;

enum class Mistake {
  none,
  position_decides,  // the first copy with a value is read
  version_not_raised,
  reader_keeps_it,  // does not write back what it read
  removal_forgets,  // deletes instead of leaving a tombstone
  other_number      // the writer knows of one copy
};

class User {
 public:
  User(Context& context, Actor& client, Acts& acts, Mistake mistake)
      : context_(context), client_(client), acts_(acts), mistake_(mistake), versions_(context_) {}

  // Runs an operation: s sets, r removes, g reads.
  void act(char letter) {
    if (letter == 'g') return get();
    if (letter == 'r') return mistake_ == Mistake::none ? remove() : set(std::nullopt);
    set(std::to_string(client_.index()) + std::to_string(next_++));
  }

 private:
  static void expect(const std::optional<Failure>& failure) {
    if (!failure) return;
    if (failure->code() == ErrorCode::unknown_outcome) throw UnknownOutcome(failure->what());
    throw Failure(*failure);
  }

  void set(const Value& value) {
    acts_.run(
        client_, value ? "set" : "remove", [value](Value& state) { state = value; },
        [&](std::string& reported) -> std::function<bool(Value&)> {
          if (mistake_ == Mistake::other_number) {
            mcds::expect(context_.cluster,
                         context_.cluster.execute(Request::set(key_, value.value_or(""), Exptime::never())));
            return [value](Value& state) { return state = value, true; };
          }
          std::vector<VersionedItem> items = versions_.read(std::span(&key_, 1));
          VersionedItem& item = items.front();
          expect(item.failure_of_read());
          auto number = *item.next_number();
          if (mistake_ == Mistake::version_not_raised) number = std::max<std::uint32_t>(number - 1, 1);
          if (mistake_ == Mistake::removal_forgets && !value) {
            remove_wrongly(item);
          } else {
            VersionedWrite write{
                .item = &item, .number = number, .removed = !value, .value = value.value_or("")};
            versions_.write(std::span(&write, 1));
            expect(item.failure_of_write());
          }
          reported = value.value_or("removed") + " as " + std::to_string(number);
          return [value](Value& state) { return state = value, true; };
        });
  }

  // Removes the value. At most one remover of a value gets the answer that it removed it.
  void remove() {
    acts_.run(
        client_, "remove", [](Value& state) { state.reset(); },
        [&](std::string& reported) -> std::function<bool(Value&)> {
          for (;;) {
            std::vector<VersionedItem> items = versions_.read(std::span(&key_, 1));
            VersionedItem& item = items.front();
            const auto unanswered = versions_.settle(items, [](const auto& one) { return !one.live(); });
            expect(unanswered.front());
            if (!item.live()) {
              reported = "was absent";
              return [](Value& state) { return !state.has_value(); };
            }
            VersionedRemoval removal{.item = &item, .number = *item.next_number()};
            versions_.remove(std::span(&removal, 1));
            if (removal.superseded) continue;
            expect(removal.failure);
            reported = "removed as " + std::to_string(removal.number);
            return [](Value& state) { return std::exchange(state, std::nullopt).has_value(); };
          }
        });
  }

  void remove_wrongly(const VersionedItem& item) {
    std::vector<Request> batch;
    for (const VersionedCopy& copy : item.copies) batch.push_back(Request::remove(key_).on(copy.server));
    expect(copy_outcome(context_, models::representative_reply(context_.cluster.execute(batch))).failure);
  }

  void get() {
    acts_.run(client_, "get", nullptr, [&](std::string& reported) {
      std::vector<VersionedItem> items = versions_.read(std::span(&key_, 1));
      VersionedItem& item = items.front();
      if (mistake_ == Mistake::none) expect(versions_.settle(items).front());
      expect(item.failure_of_read());
      Value value = item.live() ? Value(item.newest()->value) : Value();
      if (mistake_ == Mistake::position_decides) {
        value.reset();
        for (auto copy = item.copies.rbegin(); copy != item.copies.rend(); ++copy) {
          if (copy->live()) value = copy->value;
        }
      } else if (mistake_ != Mistake::reader_keeps_it) {
        auto writes_needed = Versions::writes_needed(items);
        versions_.write(writes_needed);
      }
      reported = value.value_or("absent");
      return [value](Value& state) { return state == value; };
    });
  }

  Context context_;
  Actor& client_;
  Acts& acts_;
  Mistake mistake_;
  Versions versions_;
  const std::string key_ = "n";
  int next_ = 0;
};

// The initial state: nothing; a value; or another value in the first copy, whose writer was cut off.
enum class Before { nothing, value, half_set };

Scenario users(std::vector<std::string> incarnations, std::size_t copies, Mistake mistake = Mistake::none,
               Before before = Before::value) {
  return [=](Trial& run) {
    auto acts = std::make_shared<Acts>();
    const std::string key = "n";
    const auto put = [&](std::uint32_t number, const std::string& value, bool only_first) {
      const Versions versions(in_copies(run.observer(), copies));
      auto items = versions.read(std::span(&key, 1));
      VersionedWrite write{
          .item = &items.front(), .number = number, .value = value, .only_first = only_first};
      versions.write(std::span(&write, 1));
    };
    if (before != Before::nothing) put(1, "before", false);
    if (before == Before::half_set) put(2, "half set", true);
    for (const std::string& incarnation : incarnations) {
      run.client([=](Context& context, Actor& client) {
        Context in = in_copies(context, copies);
        User user(in, client, *acts, mistake);
        for (const char letter : incarnation) user.act(letter);
      });
    }
    run.check([=](Context& observer) -> std::optional<std::string> {
      const Versions versions(in_copies(observer, copies));
      const auto items = versions.read(std::span(&key, 1));
      const Value value = items.front().live() ? Value(items.front().newest()->value) : Value();
      if (before == Before::half_set) acts->perhaps([](Value& state) { state = "half set"; });
      const Value first = before == Before::nothing ? Value() : Value("before");
      if (acts->explained(first, [&](Value& state) { return state == value; })) return std::nullopt;
      return "no order of the operations explains their answers, and what is left: " +
             value.value_or("nothing");
    });
  };
}

Bounds copies_on(std::size_t servers, int faults) {
  Bounds bounds{.faults = faults, .servers = servers};
  bounds.kinds.restarts = true;
  return bounds;
}

// Returns bounds in which requests are lost or never leave: clients are cut off from servers.
Bounds cut_off(int faults) {
  Bounds bounds = copies_on(3, faults);
  bounds.kinds = Happenings::none();
  bounds.kinds.unreachable = bounds.kinds.lost = true;
  return bounds;
}

}  // namespace

TEST_CASE("exhaustive versions: two copies, any writer against any, and a reader that heals") {
  using exhaustive::holds;
  for (const std::vector<std::string>& incarnations : std::vector<std::vector<std::string>>{{"s", "s"},
                                                                                            {"s", "r"},
                                                                                            {"r", "r"},
                                                                                            {"s", "gg"},
                                                                                            {"r", "gg"},
                                                                                            {"ss", "g"},
                                                                                            {"sg", "rg"},
                                                                                            {"rs", "g"}}) {
    std::string name;
    for (const std::string& incarnation : incarnations) name += (name.empty() ? "" : " | ") + incarnation;
    // Two faults could destroy both copies, or keep one from each of two clients.
    holds("versions, 2 copies: " + name, users(incarnations, 2), copies_on(2, 1), 0);
    holds("versions, 2 copies, new: " + name, users(incarnations, 2, Mistake::none, Before::nothing),
          copies_on(2, 1), 0);
  }
  holds("versions, 2 copies: s | s | g", users({"s", "s", "g"}, 2), copies_on(2, 0), 0);
  holds("versions, 2 copies: s | r | g", users({"s", "r", "g"}, 2), copies_on(2, 0), 0);
  holds("versions, 2 copies: s | g | g", users({"s", "g", "g"}, 2), copies_on(2, 0), 0);
}

TEST_CASE("exhaustive versions: three clients") {
  using exhaustive::holds_in_full;
  for (const std::vector<std::string>& three :
       {std::vector<std::string>{"s", "s", "s"}, {"s", "r", "s"}, {"s", "s", "gg"}, {"s", "r", "gg"}})
    holds_in_full("versions, 2 copies: " + three[0] + " | " + three[1] + " | " + three[2], users(three, 2),
                  copies_on(2, 0));
}

TEST_CASE("exhaustive versions: three copies") {
  using exhaustive::holds;
  holds("versions, 3 copies: s | s", users({"s", "s"}, 3), copies_on(3, 0), 0);
  holds("versions, 3 copies: s | g", users({"s", "g"}, 3), copies_on(3, 1), 0);
  holds("versions, 3 copies: r | g", users({"r", "g"}, 3), copies_on(3, 1), 0);
  holds("versions, 3 copies: r | r", users({"r", "r"}, 3), copies_on(3, 0), 0);
  holds("versions, 3 copies: s | gg", users({"s", "gg"}, 3), cut_off(1), 0);
  // A write-back is cut off, and readers use other majorities.
  holds("versions, 3 copies, half set: g | g", users({"g", "g"}, 3, Mistake::none, Before::half_set),
        cut_off(2), 0);
  holds("versions, 3 copies, half set: gg | g", users({"gg", "g"}, 3, Mistake::none, Before::half_set),
        cut_off(1), 0);
  Bounds snapshot = cut_off(0);
  snapshot.hasty_attempts = 0;
  holds("versions, 3 copies: s | s | s", users({"s", "s", "s"}, 3), snapshot, 0);
  exhaustive::holds_in_full("versions, 3 copies: s | s | r", users({"s", "s", "r"}, 3), snapshot);
}

TEST_CASE("exhaustive versions: caught when broken") {
  using exhaustive::caught;
  caught("versions, broken: the first copy is read", users({"s", "gg"}, 2, Mistake::position_decides),
         copies_on(2, 1));
  caught("versions, broken: a version that is not raised", users({"s", "g"}, 2, Mistake::version_not_raised),
         copies_on(2, 1));
  caught("versions, broken: a reader that does not write back",
         users({"s", "gg"}, 2, Mistake::reader_keeps_it), copies_on(2, 1));
  caught("versions, 3 copies, half set, broken: a reader that does not write back",
         users({"g", "g"}, 3, Mistake::reader_keeps_it, Before::half_set), cut_off(2));
  caught("versions, broken: one who knows of one copy only", users({"s", "g"}, 2, Mistake::other_number),
         copies_on(2, 0));
  caught("versions, broken: a removal without a trace", users({"r", "g"}, 2, Mistake::removal_forgets),
         copies_on(2, 1));
}

}  // namespace mcds::versions_exhaustive
