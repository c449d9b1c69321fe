// Arrays: fetch shows some serial order of whole changes, and compaction drops none.
#include "common/base/json.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/structures/array/array.hpp"
#include "tests/exhaustive/linearizability.hpp"
#include "tests/exhaustive/pairs.hpp"
#include "tests/support/cluster_doubles.hpp"
#include "tests/support/world.hpp"

namespace mcds::array_exhaustive {

namespace {

using Elements = std::vector<std::string>;
using Acts = exhaustive::Acts<Elements>;

const std::string key = "array:x";
constexpr std::size_t max_in_an_item = 16;

// Returns bounds with small items. A compaction fills items up, so large ones would be copied repeatedly.
Bounds small_items(int faults) {
  Bounds bounds{.faults = faults, .hasty_attempts = 1};
  bounds.server.item_size = 600;
  return bounds;
}

void change_state(Elements& state, const Elements& add, const Elements& remove) {
  std::erase_if(
      state, [&](const auto& one) { return std::find(remove.begin(), remove.end(), one) != remove.end(); });
  state.insert(state.end(), add.begin(), add.end());
}

struct Setting {
  std::optional<ArrayEncoding> encoding = ArrayEncoding::journal;
  Journal::Options options = {.segment_size = 300, .max_padding = 256};
  std::function<void(Context&, const Elements& add, const Elements& remove)> change = nullptr;
  std::function<void(Context&)> compact = nullptr;
  std::function<Elements(Context&, const Elements& add, const Elements& remove)> take = nullptr;
  bool grown = false;   // it has segments
  bool may_go = false;  // if items are lost, the whole array may be missing
  bool ends = false;    // a second drop at the end leaves nothing
  std::function<void(Context&)> drop = nullptr;
};

// Runs one client's operations, as letters: a appends its own element; m moves "b" (which exists) to the end
// as its own, in one change; d removes "b"; k removes it and reports what it removed; p replaces the
// contents; c compacts; f fetches; z empties the array; x drops it.
class Writer {
 public:
  Writer(Context context, ExploredClient& client, Acts& acts, const Setting& setting)
      : context_(std::move(context)),
        client_(client),
        acts_(acts),
        setting_(setting),
        array_(context_, "x", setting.options) {}

  void act(char letter) {
    const Elements own{
        quote_bytes(std::string(1, static_cast<char>('0' + client_.index())) + std::to_string(next_++))};
    switch (letter) {
      case 'a': return change("append", own, {});
      case 'm': return change("move", own, {quote_bytes("b")});
      case 'd': return change("remove", {}, {quote_bytes("b")});
      case 'k': return take(own);
      case 'p': return replace("replace", own);
      case 'z': return replace("replace by nothing", {});
      case 'c':
        client_.operation("compact", [&] {
          if (setting_.compact) return setting_.compact(context_), "done";
          return Journal(context_, key, setting_.options).compact(compacted) ? "done" : "nothing to do";
        });
        return;
      case 'x': return drop();
      default: return fetch();
    }
  }

 private:
  void change(const std::string& name, const Elements& add, const Elements& remove) {
    const auto effect = [=](Elements& state) { change_state(state, add, remove); };
    acts_.run(client_, name, effect, [&](std::string&) {
      if (setting_.change)
        setting_.change(context_, add, remove);
      else
        array_.change(add, remove, setting_.encoding);
      return [effect](Elements& state) { return effect(state), true; };
    });
  }

  // Takes elements. The reported elements must be those that the change removed, so none is reported twice.
  void take(const Elements& own) {
    const Elements wanted{quote_bytes("b")};
    const auto effect = [=](Elements& state) { change_state(state, own, wanted); };
    acts_.run(client_, "take", effect, [&](std::string& reported) {
      const Elements deleted = setting_.take ? setting_.take(context_, own, wanted)
                                             : array_.change_and_report(own, wanted).deleted;
      for (const auto& element : deleted) reported += element + ' ';
      return [=](Elements& state) {
        const bool as_reported = std::count(state.begin(), state.end(), wanted.front()) ==
                                 static_cast<std::ptrdiff_t>(deleted.size());
        effect(state);
        return as_reported;
      };
    });
  }

  void replace(const std::string& name, const Elements& elements) {
    const auto effect = [=](Elements& state) { state = elements; };
    acts_.run(client_, name, effect, [&](std::string&) {
      array_.replace(elements, setting_.encoding);
      return [effect](Elements& state) { return effect(state), true; };
    });
  }

  // Drops the array. Elements that others add meanwhile stay, as in a new array.
  void drop() {
    acts_.run(
        client_, "drop", [](Elements& state) { state.clear(); },
        [&](std::string&) {
          if (setting_.drop)
            setting_.drop(context_);
          else
            array_.drop();
          return [](Elements& state) { return state.clear(), true; };
        });
  }

  void fetch() {
    acts_.run(client_, "fetch", nullptr, [&](std::string& reported) {
      const auto contents = array_.fetch(setting_.encoding);
      for (const auto& element : contents.elements) reported += element + ' ';
      if (!contents.complete() && !client_.run().lost_data())
        client_.run().violated("a part is missing although nothing was lost");
      return [contents](const Elements& state) { return !contents.complete() || state == contents.elements; };
    });
  }

  Context context_;
  ExploredClient& client_;
  Acts& acts_;
  const Setting& setting_;
  Array array_;
  int next_ = 0;
};

Scenario writers(std::vector<std::string> incarnations, Setting setting = {}) {
  return [=](Exploration& run) {
    auto acts = std::make_shared<Acts>();
    Elements before{quote_bytes("a"), quote_bytes("b")};
    if (setting.grown) before.resize(max_in_an_item, quote_bytes("c"));
    Array array(run.observer(), "x", setting.options);
    for (const std::string& element : before) array.change({&element, 1}, {}, setting.encoding);
    for (const std::string& incarnation : incarnations) {
      run.client([&incarnation, &setting, acts](Context& honest, ExploredClient& client) {
        Writer writer(honest, client, *acts, setting);
        for (const char letter : incarnation) writer.act(letter);
      });
    }
    run.check([acts, before, &setting, &run](Context& observer) -> std::optional<std::string> {
      const auto contents = Array(observer, "x", setting.options).fetch(setting.encoding);
      if (!contents.complete() && !run.lost_data()) return "a part is missing although nothing was lost";
      if (setting.may_go && run.lost_data()) acts->perhaps([](Elements& state) { state.clear(); });
      std::string left;
      for (const auto& element : contents.elements) left += ' ' + element;
      const auto as_left = [&](const Elements& state) {
        return !contents.complete() || state == contents.elements;
      };
      if (!acts->explained(before, as_left))
        return "no order of the changes explains what was fetched, and what is left:" + left;
      if (!setting.ends) return std::nullopt;
      Array(observer, "x", setting.options).drop();
      std::string kept;
      for (const std::string& one : test::left_in(run.servers())) kept += ' ' + one;
      if (!kept.empty()) return "a second drop leaves" + kept;
      return std::nullopt;
    });
  };
}

std::string encoded(Context& context, std::span<const std::string> elements) {
  std::string text;
  for (const std::string& element : elements)
    text += encode(JournalLine{Change::add, journal_line_id(context.random.token(), 0), element});
  return text;
}

void compact_without_cas(Context& context) {
  const auto contents = Array(context, "x").fetch();
  const std::string value = journal_header(context.random.token()) + encoded(context, contents.elements);
  expect(context.cluster, context.cluster.execute(Request::set(key, value, Exptime::never())));
}

// Compacts by cas but with new ids, so that a late repetition is not recognised.
void compact_and_forget(Context& context) {
  cas_update(context, key, [&](const Observed& observed) -> std::optional<Write> {
    const auto root = decode_journal_root(observed.value);
    if (!root) return std::nullopt;
    const auto lines = decode_journal_lines(root->tail);
    const std::vector<JournalLineView> views(lines.begin(), lines.end());
    return Write{journal_header(root->incarnation) + encoded(context, replay(views))};
  });
}

void change_in_two_steps(Context& context, const Elements& add, const Elements& remove) {
  Array array(context, "x");
  if (!remove.empty()) array.change({}, remove);
  array.change(add, {});
}

// Returns what was stored before the change, as far as it was read.
Elements look_and_take(Context& context, const Elements& add, const Elements& remove) {
  Array array(context, "x");
  Elements deleted = array.fetch().elements;
  std::erase_if(deleted, [&](const auto& one) { return one != remove.front(); });
  array.change(add, remove);
  return deleted;
}

void repeat_blindly(Context& context, const Elements& add, const Elements&) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Reply reply = context.cluster.execute(Request::append_or_create(
        key, journal_header(context.random.token()), encoded(context, add), Exptime::never()));
    if (reply.outcome == Outcome::stored) return;
    if (!reply.unknown()) throw NotApplied(ErrorCode::unavailable, "");
  }
  throw UnknownOutcome("no reply");
}

void remove_segments_first(Context& context) {
  std::vector<Request> removals;
  for (const PlacedKey& part : Array(context, "x").keys()) {
    if (!part.with.empty()) removals.push_back(Request::remove(part.key).placed_with(part.with));
  }
  context.cluster.execute(removals);
  Array(context, "x").drop();
}

// The usual recipe: read, change, write.
void get_and_set(Context& context, const Elements& add, const Elements& remove) {
  Elements elements = Array(context, "x").fetch(ArrayEncoding::json).elements;
  change_state(elements, add, remove);
  std::string text;
  for (const std::string& element : elements) text += (text.empty() ? "" : ",") + element;
  expect(context.cluster,
         context.cluster.execute(Request::set(key + ":json", '[' + text + ']', Exptime::never())));
}

}  // namespace

TEST_CASE("exhaustive array: every change against every other, and against fetch and compaction") {
  using exhaustive::holds;
  const std::string letters = "amdpzcfk";
  for (std::size_t i = 0; i < letters.size(); ++i) {
    for (std::size_t j = i; j < letters.size(); ++j) {
      if (letters[i] == 'f' && letters[j] == 'f') continue;
      holds(std::string("array: ") + letters[i] + " | " + letters[j] + "f",
            writers({{letters[i]}, {letters[j], 'f'}}), small_items(1));
    }
  }
  holds("array: append | compact append", writers({"a", "ca"}), small_items(1));
  holds("array: take | compact take", writers({"k", "ck"}), small_items(0));
  holds("array: take | compact take, segments", writers({"k", "ck"}, {.grown = true}), small_items(0));
}

TEST_CASE("exhaustive array: what is lost is reported") {
  using exhaustive::holds;
  Bounds losing{.faults = 1, .kinds = Happenings::none(), .hasty_attempts = 1};
  losing.server.item_size = 600;
  losing.kinds.evictions = true;
  for (const char* incarnation : {"af", "df", "pf", "cf", "zf", "ff"}) {
    losing.evictable = [](const std::string& one) { return one != key; };
    holds(std::string("array, a segment is evicted: a | ") + incarnation[0] + incarnation[1],
          writers({"a", incarnation}, {.grown = true}), losing);
    losing.evictable = [](const std::string& one) { return one == key; };
    holds(std::string("array, the root is evicted: a | ") + incarnation[0] + incarnation[1],
          writers({"a", incarnation}, {.grown = true, .may_go = true}), losing);
    Bounds restarting = losing;
    restarting.kinds = Happenings::none();
    restarting.kinds.restarts = true;
    holds(std::string("array, the server restarts: a | ") + incarnation[0] + incarnation[1],
          writers({"a", incarnation}, {.grown = true, .may_go = true}), restarting);
  }
}

// Drops while writers and readers run, with faults of any of their requests.
TEST_CASE("exhaustive array: a drop loses nothing that comes after it") {
  using exhaustive::holds;
  for (const bool grown : {false, true}) {
    const std::string state = grown ? ", segments" : "";
    for (const char letter : {'a', 'm', 'd', 'p', 'z', 'k', 'c', 'f', 'x'})
      holds(std::string("array: drop | ").append(1, letter).append("f").append(state),
            writers({"x", {letter, 'f'}}, {.grown = grown}), small_items(1));
    holds("array: drop append | append fetch" + state, writers({"xa", "af"}, {.grown = grown}),
          small_items(0));
    holds("array: drop | append | compact" + state, writers({"x", "a", "c"}, {.grown = grown}),
          small_items(0));
  }
}

// The client that drops may die at any step, get no answer, or be refused.
TEST_CASE("exhaustive array: a second drop leaves nothing of what the first has not finished") {
  using exhaustive::holds;
  for (const bool grown : {false, true}) {
    const std::string state = grown ? ", segments" : "";
    holds("array: drop, dropped again" + state, writers({"x"}, {.grown = grown, .ends = true}),
          small_items(2));
    Bounds dying = small_items(1);
    dying.kinds = Happenings::none();
    dying.kinds.deaths = true;
    dying.mortal = 0;
    for (const char letter : {'a', 'd', 'p', 'k', 'f', 'x'})
      holds(std::string("array: drop dying | ").append(1, letter).append(", dropped again").append(state),
            writers({"x", {letter}}, {.grown = grown, .ends = true}), dying);
  }
}

TEST_CASE("exhaustive array: the JSON encoding") {
  using exhaustive::holds;
  const Setting json{.encoding = ArrayEncoding::json};
  for (const char* pair : {"aa", "am", "md", "pa", "pm", "za", "xa", "xm", "xp", "xx"})
    holds(std::string("array, JSON: ").append(1, pair[0]).append(" | ").append(1, pair[1]).append("f"),
          writers({{pair[0]}, {pair[1], 'f'}}, json), small_items(1));
}

TEST_CASE("exhaustive array: caught when broken") {
  using exhaustive::caught;
  Setting broken;
  broken.compact = compact_without_cas;
  caught("array, broken: compaction without cas", writers({"a", "c"}, broken), small_items(0));
  broken.compact = compact_and_forget;
  caught("array, broken: compaction that forgets ids", writers({"a", "c"}, broken), small_items(1));
  caught("array, broken: a change in two steps", writers({"m", "f"}, {.change = change_in_two_steps}),
         small_items(0));
  caught("array, broken: it is told what was there before the change",
         writers({"k", "k"}, {.take = look_and_take}), small_items(0));
  caught("array, broken: a blind repetition", writers({"a"}, {.change = repeat_blindly}), small_items(1));
  caught("array, broken: a drop removes the segments before the root is emptied",
         writers({"x", "af"}, {.grown = true, .drop = remove_segments_first}), small_items(1));
  caught("array, the articles': get, change, set",
         writers({"a", "a"}, {.encoding = ArrayEncoding::json, .change = get_and_set}), small_items(0));
}

}  // namespace mcds::array_exhaustive
