// Tables and hashes: each element is linearizable; a fetch has every element that is present throughout it,
// and none that is absent throughout it.
#include <map>

#include "common/journal/journal.hpp"
#include "common/structures/elements/elements.hpp"
#include "common/structures/elements/index.hpp"
#include "tests/exhaustive/linearizability.hpp"
#include "tests/exhaustive/pairs.hpp"

namespace mcds::elements_exhaustive {

namespace {

using namespace std::chrono_literals;

using Value = std::optional<std::string>;
using Acts = exhaustive::Acts<Value>;
using exhaustive::in_copies;

// The padding of roots when compaction runs. Such small items need no more requests.
const Journal::Options small_paddings{.max_padding = 256, .min_dead = 0};

enum class Mistake {
  none,
  listed_after,
  never_listed_again,
  removal_without_trace,
  listed_when_it_was_there,  // mistakes an expired element for a listed one
  end_kept,                  // the ttl is kept by a set without one
  compaction_without_grace,
  compaction_without_cas,
  drop_without_comparing,
  drop_without_waiting
};

// Marks the values of fields that expire.
constexpr char ending = '~';
constexpr auto short_ttl = 2s;

bool ends(const Value& state) {
  return state && state->starts_with(ending);
}

std::vector<bool> all_present(std::span<const std::string> names) {
  return std::vector<bool>(names.size(), true);
}

void list(Context& context, const std::string& structure, const std::string& name) {
  ElementIndex index(context, structure + ":h", all_present, false);
  const std::string* names = &name;
  if (const auto failure = index.list(std::span(&names, 1)).front()) throw Failure(*failure);
}

// Sets a missing element, with one mistake.
void set_wrongly(Context& context, const std::string& structure, const Elements& elements,
                 const Element& element, Mistake mistake) {
  const std::string key = elements.key_of(element.name);
  const auto replaced = expect(
      context.cluster, context.cluster.execute(Request::replace(key, element.value, Exptime::never())));
  if (replaced.outcome == Outcome::stored) return;
  if (mistake == Mistake::never_listed_again) list(context, structure, element.name);
  expect(context.cluster, context.cluster.execute(Request::add(key, element.value, Exptime::never())));
  if (mistake == Mistake::listed_after) list(context, structure, element.name);
}

// Assumes that the line from the element's earlier existence is still in the index.
void set_to_end_wrongly(Context& context, const std::string& key, const std::string& value) {
  const Exptime exptime = Exptime::after(short_ttl, context.clock.wall());
  const auto replaced =
      expect(context.cluster, context.cluster.execute(Request::replace(key, value, exptime)));
  if (replaced.outcome == Outcome::stored) return;
  expect(context.cluster, context.cluster.execute(Request::add(key, value, exptime)));
}

void compact_wrongly(Context& context, const std::string& structure, Elements& elements, Mistake mistake) {
  for (const std::string& key : elements.index_keys()) {
    if (key == structure + ":h:i") continue;
    if (mistake == Mistake::compaction_without_grace) {
      Journal(context, key).compact([&](std::vector<JournalLine> lines) {
        std::erase_if(lines, [&](const JournalLine& line) {
          if (line.change != Change::add) return false;
          const std::string name = line.element.substr(1, line.element.size() - 2);
          return !elements.get(std::span(&name, 1)).front().yes;
        });
        return lines;
      });
      continue;
    }
    const JournalContents contents = Journal(context, key).read();
    if (!contents.found || !contents.segments.empty()) continue;
    std::string tail;
    for (const JournalLine& line : contents.lines) tail += encode(line);
    expect(context.cluster, context.cluster.execute(Request::set(
                                key, encode(JournalRoot{contents.incarnation, {}, tail}), Exptime::never())));
  }
}

// Runs one client's operations, as letters: s sets n to its own value (always 1 in a table); e does so with a
// ttl of two seconds (hashes only); b does so while a third element is in flight and a fourth is being
// listed; g gets it; r removes it; f fetches; c compacts; o sets another element of the same shard; d drops
// the table or hash; t removes n and drops its name in one step.
class User {
 public:
  User(Context context, ExploredClient& client, Acts& acts, std::string structure, Mistake mistake,
       bool drops)
      : context_(std::move(context)),
        client_(client),
        acts_(acts),
        structure_(std::move(structure)),
        mistake_(mistake),
        drops_(drops),
        elements_(context_, structure_, "h", small_paddings) {}

  void act(char letter) {
    switch (letter) {
      case 's':
        return set(structure_ == "table" ? "1" : std::to_string(client_.index()) + std::to_string(next_++));
      case 'e': return set(ending + std::to_string(client_.index()) + std::to_string(next_++));
      case 'b':
        return set(structure_ == "table" ? "1" : std::to_string(client_.index()) + std::to_string(next_++),
                   true);
      case 'g': return get();
      case 'r': return remove();
      case 't': return remove(true);
      case 'd': return drop();
      case 'f': return fetch();
      case 'o':
        client_.operation("set another", [&] {
          const Element other{"other", "1"};
          return answer(elements_.set(std::span(&other, 1)).front()).yes ? "created" : "there";
        });
        return;
      default:
        client_.operation("compact", [&] {
          if (mistake_ == Mistake::compaction_without_grace || mistake_ == Mistake::compaction_without_cas)
            compact_wrongly(context_, structure_, elements_, mistake_);
          else
            elements_.compact();
          return "done";
        });
    }
  }

 private:
  // Returns true if answers can be compared. If clients change several copies at once, their order is
  // unknown; an element that is set while the structure is dropped may have existed.
  bool tells() const { return context_.copies == 1 && !drops_; }

  static ElementResult answer(ElementResult result) {
    if (!result.failure) return result;
    if (result.failure->code() == ErrorCode::unknown_outcome) throw UnknownOutcome(result.failure->what());
    throw Failure(*result.failure);
  }

  ElementResult set_behind_another(const Element& element) {
    const Element third{"third", "1"}, last{"fourth", "1"};
    const auto before = elements_.begin_set(std::span(&third, 1));
    const auto answers = elements_.begin_set(std::span(&element, 1));
    const auto behind = elements_.begin_set(std::span(&last, 1));
    const auto one = before();
    auto other = answers();
    static_cast<void>(answer(one.front()));
    static_cast<void>(answer(behind().front()));
    return other.front();
  }

  void set(const std::string& value, bool behind_another = false) {
    const Element element{"n", value};
    acts_.run(
        client_, "set", [value](Value& state) { state = value; },
        [&](std::string& reported) -> std::function<bool(Value&)> {
          if (mistake_ == Mistake::listed_after || mistake_ == Mistake::never_listed_again) {
            set_wrongly(context_, structure_, elements_, element, mistake_);
            return [value](Value& state) { return state = value, true; };
          }
          if (ends(value) && mistake_ == Mistake::listed_when_it_was_there) {
            set_to_end_wrongly(context_, elements_.key_of(element.name), value);
            return [value](Value& state) { return state = value, true; };
          }
          const bool to_end = ends(value) || mistake_ == Mistake::end_kept;
          const auto ttl = to_end ? std::optional<Duration>(short_ttl) : std::nullopt;
          const bool created = answer(behind_another ? set_behind_another(element)
                                                     : elements_.set(std::span(&element, 1), ttl).front())
                                   .yes;
          reported = created ? "created" : "was there";
          return [value, created, tells = tells()](Value& state) {
            const bool missing = !state;
            state = value;
            return missing == created || !tells;
          };
        });
  }

  void get() {
    acts_.run(client_, "get", nullptr, [&](std::string& reported) {
      const auto result = answer(elements_.get(std::span(&name_, 1)).front());
      reported = result.yes ? result.value : "absent";
      return [result](Value& state) { return state == (result.yes ? Value(result.value) : Value()); };
    });
  }

  void remove(bool tidies = false) {
    acts_.run(
        client_, "remove", [](Value& state) { state.reset(); },
        [&](std::string& reported) {
          const auto result = mistake_ == Mistake::removal_without_trace
                                  ? remove_without_trace()
                                  : answer(elements_.remove(std::span(&name_, 1)).front());
          if (tidies) elements_.compact_removed();
          reported = result.yes ? "removed" : "was absent";
          return [result, tells = tells()](Value& state) {
            const bool was = state.has_value();
            state.reset();
            return was == result.yes || !tells;
          };
        });
  }

  void drop() {
    acts_.run(
        client_, "drop", [](Value& state) { state.reset(); },
        [&](std::string& reported) {
          if (mistake_ >= Mistake::drop_without_comparing)
            drop_wrongly();
          else
            reported = elements_.drop() ? "dropped" : "nothing there";
          return [](Value& state) { return state.reset(), true; };
        });
  }

  // Removes what it has read of the index with a mistake: without comparing, or before a client that has
  // listed a name has written its element.
  void drop_wrongly() {
    std::vector<std::string> names;
    elements_.fetch([&](Elements::Found& found) { names.push_back(found.name); });
    for (const auto& result : elements_.remove(names)) static_cast<void>(answer(result));
    std::vector<JournalContents> roots;
    std::vector<std::string> keys = elements_.index_keys();
    std::reverse(keys.begin(), keys.end());
    JournalReader reader(context_, keys, JournalReader::RootRead::to_compare);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (!reader.found(i)) continue;
      if (mistake_ == Mistake::drop_without_comparing)
        expect(context_.cluster, context_.cluster.execute(Request::remove(keys[i])));
      else
        roots.push_back(reader.take(i));
    }
    if (!roots.empty()) remove_journals(context_, roots);
  }

  ElementResult remove_without_trace() {
    const auto replies =
        context_.cluster.execute(to_copies(context_, std::array{Request::remove(elements_.key_of(name_))}));
    ElementResult result;
    for (const Reply& reply : replies) result.yes = result.yes || reply.outcome == Outcome::deleted;
    if (!result.yes) expect(context_.cluster, exhaustive::representative_reply(replies));
    return result;
  }

  void fetch() {
    acts_.run(client_, "fetch", nullptr, [&](std::string& reported) -> std::function<bool(Value&)> {
      Value value;
      const auto listing = elements_.fetch([&](Elements::Found& found) {
        if (found.name == "n") value = found.value;
      });
      reported = value.value_or("absent");
      if (!listing.complete()) return [](Value&) { return true; };
      return [value](Value& state) { return state == value; };
    });
  }

  Context context_;
  ExploredClient& client_;
  Acts& acts_;
  std::string structure_;
  Mistake mistake_;
  bool drops_;
  Elements elements_;
  const std::string name_ = "n";
  int next_ = 0;
};

struct Setting {
  std::string structure = "hash";
  bool before = false;   // n exists
  bool shard = true;     // its shard exists
  bool others = false;   // every shard exists, and n was never listed
  bool removed = false;  // n existed, longer ago than the grace period
  bool old = false;      // n has existed for longer than the grace period
  Mistake mistake = Mistake::none;
  std::size_t copies = 1;
  bool ending = false;  // fields may expire
  bool drops = false;   // a client drops it
  bool prompt = false;  // no client pauses, and no request is executed late
};

Scenario users(std::vector<std::string> incarnations, Setting setting) {
  return [=](Exploration& run) {
    auto acts = std::make_shared<Acts>();
    {
      Elements elements(in_copies(run.observer(), setting.copies), setting.structure, "h", small_paddings);
      const Element element{"n", "1"};
      const std::string name = "n";
      for (int i = 0; setting.others && i < 60; ++i) {
        const Element other{"o" + std::to_string(i), "1"};
        elements.set(std::span(&other, 1));
      }
      if (!setting.others && (setting.shard || setting.before)) elements.set(std::span(&element, 1));
      if (!setting.before && !setting.others && setting.shard) elements.remove(std::span(&name, 1));
      run.time().advance(setting.removed || setting.old ? 200s : 0s);
    }
    for (const std::string& incarnation : incarnations) {
      run.client([&incarnation, &setting, acts](Context& context, ExploredClient& client) {
        User user(in_copies(context, setting.copies), client, *acts, setting.structure, setting.mistake,
                  setting.drops);
        for (const char letter : incarnation) user.act(letter);
      });
    }
    run.check([acts, &setting, &run](Context& observer) -> std::optional<std::string> {
      const std::string name = "n";
      Elements elements(in_copies(observer, setting.copies), setting.structure, "h", small_paddings);
      if (setting.copies == 1 && run.lost_data()) acts->perhaps([](Value& state) { state.reset(); });
      // An unacknowledged element may be present without being listed.
      const bool never_set = setting.drops
                                 ? !acts->any_known("set")
                                 : acts->explained(Value(), [](Value& state) { return !state.has_value(); });
      if (setting.ending)
        acts->perhaps([](Value& state) {
          if (ends(state)) state.reset();
        });
      const auto left = elements.get(std::span(&name, 1)).front();
      const Value value = left.yes ? Value(left.value) : Value();
      if (!acts->explained(setting.before ? Value("1") : Value(),
                           [&](Value& state) { return state == value; }))
        return "no order of the operations explains their answers, and what is left: " +
               value.value_or("nothing");
      bool listed = false;
      const auto listing =
          elements.fetch([&](Elements::Found& found) { listed = listed || found.name == name; });
      if (listing.complete() && !listed && left.yes && !never_set)
        return "it is acknowledged, present, and not listed";
      if (setting.drops && !run.lost_data()) {
        if (!listing.complete() && setting.prompt) return "a loss is told, and nothing was lost";
        const bool was_there = elements.drop();
        if (!was_there && listing.shards != 0) return "it was not there for the last drop";
        const auto rest = elements.fetch([](Elements::Found&) {});
        if (rest.shards != 0 || !rest.complete()) return "the last drop has left a part of the index";
        if (listed && elements.get(std::span(&name, 1)).front().yes)
          return "the last drop has left an element";
        return std::nullopt;
      }
      run.time().advance(setting.ending ? short_ttl + 2s : 0s);
      const auto later = elements.get(std::span(&name, 1)).front();
      if (later.yes && ends(later.value)) return "it has not expired";
      if (!later.yes && value && !ends(value)) return "it expired, though it was set without an end";
      return std::nullopt;
    });
  };
}

// Returns bounds with small items. A compaction fills items up, so large ones would be copied repeatedly.
Bounds small_items(int faults, std::vector<Duration> pauses = {}) {
  Bounds bounds{.faults = faults, .pauses = std::move(pauses), .hasty_attempts = 1};
  bounds.max_pauses = bounds.pauses.empty() ? 0 : 1;
  bounds.server.item_size = 500;
  return bounds;
}

}  // namespace

TEST_CASE("exhaustive table and hash: every change against every other, and against fetch and compaction") {
  using exhaustive::holds;
  for (const std::string structure : {"table", "hash"}) {
    for (const char* pair : {"ss", "sr", "rr", "sf", "rf", "sc", "rc", "cc", "cf", "so"}) {
      const std::vector<std::string> incarnations{std::string(1, pair[0]), std::string(1, pair[1])};
      const std::string name = structure + ": " + pair[0] + " | " + pair[1];
      Bounds bounds = small_items(1);
      if (pair == std::string("sc")) bounds.hasty_attempts = 0;
      holds(name + ", it is there", users(incarnations, {.structure = structure, .before = true}), bounds);
      holds(name + ", it was removed long ago",
            users(incarnations, {.structure = structure, .removed = true}), bounds);
    }
    // After a new element, the next one is assumed to be new.
    for (const char* rival : {"s", "r", "f", "c"}) {
      const std::string name = structure + ": o s | " + rival;
      const Bounds bounds = small_items(rival == std::string("f") || rival == std::string("c") ? 0 : 1);
      holds(name + ", it is there", users({"os", rival}, {.structure = structure, .before = true}), bounds);
      holds(name + ", it was removed long ago",
            users({"os", rival}, {.structure = structure, .removed = true}), bounds);
      holds(structure + ": o b | " + rival + ", two batches on their way",
            users({"ob", rival}, {.structure = structure, .removed = true}), small_items(0), 0);
    }
    holds(structure + ": s | s, the first ever", users({"s", "s"}, {.structure = structure, .shard = false}),
          small_items(1));
    holds(structure + ": s g | r g", users({"sg", "rg"}, {.structure = structure, .before = true}),
          small_items(1));
  }
  holds("hash: s | c, a minute passes anywhere", users({"s", "c"}, {.removed = true}), small_items(0, {61s}));
}

TEST_CASE("exhaustive table and hash: what is lost is reported") {
  using exhaustive::holds;
  // An index that is lost as a whole cannot be detected, so only one fault is allowed.
  Bounds losing = small_items(1);
  losing.kinds = Happenings::none();
  losing.kinds.evictions = losing.kinds.restarts = true;
  for (const std::string structure : {"table", "hash"}) {
    for (const char* pair : {"sf", "sg", "rf", "so"}) {
      const std::vector<std::string> incarnations{std::string(1, pair[0]), std::string(1, pair[1])};
      holds(structure + ", data lost: " + pair[0] + " | " + pair[1],
            users(incarnations, {.structure = structure, .before = true}), losing, 0);
    }
  }
}

TEST_CASE("exhaustive table and hash: fields that expire, against every change, fetch and compaction") {
  using exhaustive::holds;
  for (const char* pair : {"e s", "e e", "e r", "e f", "e c", "e g", "es f", "ee c", "e sf"}) {
    const std::string both = pair;
    const std::vector<std::string> incarnations{both.substr(0, both.find(' ')),
                                                both.substr(both.find(' ') + 1)};
    Bounds bounds = small_items(0, {4s});
    if (both == "e c" || both == "ee c") bounds.hasty_attempts = 0;
    const std::string name = "hash, they expire: " + incarnations[0] + " | " + incarnations[1];
    holds(name + ", it is there", users(incarnations, {.before = true, .ending = true}), bounds);
    holds(name + ", it was removed long ago", users(incarnations, {.removed = true, .ending = true}), bounds);
    if (both.size() > 3) continue;
    holds(name + ", a fault", users(incarnations, {.before = true, .ending = true}), small_items(1));
  }
  // After a new element, the next one is assumed to be new.
  holds("hash, they expire: o e | s", users({"oe", "s"}, {.before = true, .ending = true}),
        small_items(0, {4s}));
  // The pause is long enough for compaction to drop the line of an expired element. A request that is also in
  // flight for a minute exceeds the guarantees.
  holds("hash, they expire: e | c, a minute passes anywhere",
        users({"e", "c"}, {.before = true, .ending = true}), small_items(0, {61s}), 0);
  holds("hash, they expire: e e | c, a minute passes anywhere",
        users({"ee", "c"}, {.removed = true, .ending = true}), small_items(0, {61s}), 0);
}

TEST_CASE("exhaustive table and hash: two copies") {
  using exhaustive::holds;
  for (const std::string structure : {"table", "hash"}) {
    for (const char* pair : {"ss", "sr", "rr", "sf", "rf", "sg", "rg", "sc", "rc", "cc", "cf", "so"}) {
      const std::vector<std::string> incarnations{std::string(1, pair[0]), std::string(1, pair[1])};
      const std::string name = structure + ", 2 copies: " + pair[0] + " | " + pair[1];
      // Fetches and compactions read some hundred keys; with a fault, there would be too many schedules.
      const std::string written = std::string(pair).substr(0, 2);
      Bounds bounds = small_items(written == "sr" || written == "rr" ? 1 : 0);
      bounds.servers = 2;
      bounds.kinds.restarts = true;
      holds(name + ", it is there",
            users(incarnations, {.structure = structure, .before = true, .copies = 2}), bounds, 0);
      holds(name + ", it was removed long ago",
            users(incarnations, {.structure = structure, .removed = true, .copies = 2}), bounds, 0);
    }
    // After a new element, the next one is read while it is being listed, but only in the first copy, which
    // may hold what the other copy has lost.
    Bounds forgetting = small_items(1);
    forgetting.servers = 2;
    forgetting.kinds = Happenings::none();
    forgetting.kinds.evictions = true;
    holds(structure + ", 2 copies: o s | g, it is there, or forgotten by one",
          users({"os", "g"}, {.structure = structure, .before = true, .copies = 2}), forgetting, 0);
    // A client that has just created the structure reads nothing before it adds.
    for (const std::string rival : {"s", "r", "g"}) {
      if (rival == "s" && (structure == "table" || !exhaustive::full())) continue;
      if (rival == "r" && structure == "table" && !exhaustive::full()) continue;
      Bounds bounds = small_items(rival == "s" ? 0 : 1);
      bounds.servers = 2;
      holds(structure + ", 2 copies: o s | " + rival + ", the first ever",
            users({"os", rival}, {.structure = structure, .shard = false, .copies = 2}), bounds, 0);
    }
    // Two batches are in flight, one of them after another that exists.
    for (const char* rival : {"s", "r", "g"}) {
      const std::string name = structure + ", 2 copies: ";
      Bounds bounds = small_items(0);
      bounds.servers = 2;
      holds(name + "o s | " + rival + ", it is there",
            users({"os", rival}, {.structure = structure, .before = true, .copies = 2}), bounds, 0);
      holds(name + "o b | " + rival + ", two batches on their way",
            users({"ob", rival}, {.structure = structure, .removed = true, .copies = 2}), bounds, 0);
    }
  }
}

TEST_CASE(
    "exhaustive table and hash: who removes drops the name at once, unless another is about to set it") {
  using exhaustive::holds;
  for (const char* rival : {"s", "os", "r", "t", "f", "c", "d"}) {
    const bool drops = rival == std::string("d");
    for (const bool old : {false, true}) {
      Bounds bounds = small_items(rival == std::string("os") ? 0 : 1);
      bounds.hasty_attempts = 0;
      holds(
          std::string("hash: t | ") + rival + (old ? ", it was listed long ago" : ", it was listed just now"),
          users({"t", rival}, {.before = true, .old = old, .drops = drops}), bounds, 0);
    }
  }
}

TEST_CASE("exhaustive table and hash: drop, against every change, fetch, compaction and another drop") {
  using exhaustive::holds;
  for (const std::string structure : {"table", "hash"}) {
    for (const char* rival : {"s", "sg", "sd", "r", "f", "c", "d", "o"}) {
      for (const bool prompt : {true, false}) {
        if (!prompt && std::string("s sg").find(rival) == std::string::npos) continue;
        const std::string name = structure + ": d | " + rival + (prompt ? "" : ", who stands still");
        // A set that could not be listed again is answered as such, and its element may still be seen.
        Bounds bounds = small_items(!prompt && rival == std::string("sg") ? 0 : 1);
        bounds.hasty_attempts = 0;
        bounds.prompt = prompt;
        bounds.kinds.delayed = !prompt && rival == std::string("s");
        holds(name + ", it is there",
              users({"d", rival}, {.structure = structure, .before = true, .drops = true, .prompt = prompt}),
              bounds, 0);
        holds(name + ", it was removed long ago",
              users({"d", rival}, {.structure = structure, .removed = true, .drops = true, .prompt = prompt}),
              bounds, 0);
        holds(name + ", it was removed just now",
              users({"d", rival}, {.structure = structure, .drops = true, .prompt = prompt}), bounds, 0);
      }
    }
    Bounds bounds = small_items(0);
    bounds.prompt = true;
    holds(structure + ": d | o s, behind a new one",
          users({"d", "os"}, {.structure = structure, .before = true, .drops = true, .prompt = true}), bounds,
          0);
    holds(structure + ": d | s, the first ever",
          users({"d", "s"}, {.structure = structure, .shard = false, .drops = true, .prompt = true}), bounds,
          0);
  }
}

TEST_CASE("exhaustive table and hash: drop of several copies, and who dies or gets no reply meanwhile") {
  using exhaustive::holds;
  for (const std::size_t copies : {2U, 3U}) {
    for (const char* rival : {"s", "sd", "r", "f", "d"}) {
      for (const bool faulty : {false, true}) {
        // The others have some hundred requests, in too many orders to explore in every run.
        const bool is_short =
            copies == 2 && (rival == std::string("r") || (rival == std::string("s") && !faulty));
        if (!is_short && !exhaustive::full()) continue;
        Bounds bounds = small_items(faulty ? 1 : 0);
        bounds.servers = copies;
        bounds.mortal = 0;
        bounds.prompt = true;
        bounds.servers_in_order = true;
        bounds.kinds = Happenings::none();
        bounds.kinds.deaths = bounds.kinds.reply_lost = faulty;
        bounds.hasty_attempts = 0;
        const std::string name = "hash, " + std::to_string(copies) + " copies: d | " + rival +
                                 (faulty ? ", it dies or gets no reply" : "");
        holds(name + ", it is there",
              users({"d", rival}, {.before = true, .copies = copies, .drops = true, .prompt = true}), bounds,
              0);
      }
    }
  }
}

TEST_CASE("exhaustive table and hash: caught when broken") {
  using exhaustive::caught;
  const Bounds dying = small_items(1);
  caught("elements, broken: listed after it was set", users({"s", "g"}, {.mistake = Mistake::listed_after}),
         dying);
  Bounds two_servers = dying;
  two_servers.servers = 2;
  caught("elements, 2 copies, broken: removed without a trace",
         users({"r", "g"}, {.before = true, .mistake = Mistake::removal_without_trace, .copies = 2}),
         two_servers);
  caught("elements, broken: one that expired is taken for listed",
         users({"ee", "c"}, {.removed = true, .mistake = Mistake::listed_when_it_was_there, .ending = true}),
         small_items(0, {61s}));
  caught("elements, broken: it keeps the end that it had",
         users({"es", "g"}, {.mistake = Mistake::end_kept, .ending = true}), small_items(0));
  caught("elements, broken: compaction without a grace",
         users({"s", "c"}, {.removed = true, .mistake = Mistake::compaction_without_grace}), small_items(0));
  caught("elements, broken: compaction without cas",
         users({"s", "c"}, {.others = true, .mistake = Mistake::compaction_without_cas}), small_items(0));
  caught("elements, broken: drop does not compare",
         users({"d", "s"}, {.before = true, .mistake = Mistake::drop_without_comparing, .drops = true}),
         small_items(0));
  caught("elements, broken: drop does not wait for who has listed a name",
         users({"d", "s"}, {.removed = true, .mistake = Mistake::drop_without_waiting, .drops = true}),
         small_items(0));
  caught("elements, broken: slow, and not listed again",
         users({"s", "c"}, {.removed = true, .mistake = Mistake::never_listed_again}), small_items(0, {90s}));
}

}  // namespace mcds::elements_exhaustive
