// Arrays: fetch is some serial order of whole changes, and compaction drops none.
#include "common/base/json.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/structures/array/array.hpp"
#include "tests/exhaustive/linearizability.hpp"
#include "tests/exhaustive/pairs.hpp"

namespace mcds {

namespace {

using Elements = std::vector<std::string>;
using Acts = exhaustive::Acts<Elements>;

const std::string key = "array:x";

// A compaction fills the item up: a large one would only be copied, again and again.
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

struct Algorithm {
  std::optional<ArrayEncoding> encoding = ArrayEncoding::journal;
  Journal::Options options = {.segment_size = 300, .largest_padding = 256};
  std::function<void(Context&, const Elements& add, const Elements& remove)> change = nullptr;
  std::function<void(Context&)> compact = nullptr;
};

// One client's operations, as letters: a appends its own element, m moves "b" (which is there) to the end as its own, at
// once; d removes "b"; p replaces all, c compacts, f fetches, z clears.
class Writer {
 public:
  Writer(Context& context, ExploredClient& client, Acts& acts, const Algorithm& algorithm)
      : context_(context),
        client_(client),
        acts_(acts),
        algorithm_(algorithm),
        array_(context, "x", algorithm.options) {}

  void act(char letter) {
    const Elements own{
        quote_bytes(std::string(1, static_cast<char>('0' + client_.index())) + std::to_string(next_++))};
    switch (letter) {
      case 'a':
        return change("append", own, {});
      case 'm':
        return change("move", own, {quote_bytes("b")});
      case 'd':
        return change("remove", {}, {quote_bytes("b")});
      case 'p':
        return replace("replace", own);
      case 'z':
        return replace("clear", {});
      case 'c':
        client_.operation("compact", [&] {
          if (algorithm_.compact) return algorithm_.compact(context_), "done";
          return array_.compact() ? "done" : "nothing to do";
        });
        return;
      default:
        return fetch();
    }
  }

 private:
  void change(const std::string& name, const Elements& add, const Elements& remove) {
    const auto effect = [=](Elements& state) { change_state(state, add, remove); };
    acts_.run(client_, name, effect, [&](std::string&) {
      if (algorithm_.change)
        algorithm_.change(context_, add, remove);
      else
        array_.change(add, remove, algorithm_.encoding);
      return [effect](Elements& state) { return effect(state), true; };
    });
  }

  void replace(const std::string& name, const Elements& elements) {
    const auto effect = [=](Elements& state) { state = elements; };
    acts_.run(client_, name, effect, [&](std::string&) {
      elements.empty() ? array_.clear(algorithm_.encoding) : array_.replace(elements, algorithm_.encoding);
      return [effect](Elements& state) { return effect(state), true; };
    });
  }

  void fetch() {
    acts_.run(client_, "fetch", nullptr, [&](std::string& told) {
      const auto contents = array_.fetch(algorithm_.encoding);
      for (const auto& element : contents.elements) told += element + ' ';
      if (!contents.complete) client_.run().violated("a part is missing although nothing was lost");
      return [elements = contents.elements](Elements& state) { return state == elements; };
    });
  }

  Context& context_;
  ExploredClient& client_;
  Acts& acts_;
  const Algorithm& algorithm_;
  Array array_;
  int next_ = 0;
};

Scenario writers(std::vector<std::string> lives, Algorithm algorithm = {}) {
  return [=](Exploration& run) {
    auto acts = std::make_shared<Acts>();
    const Elements before{quote_bytes("a"), quote_bytes("b")};
    Array(run.observer(), "x", algorithm.options).change(before, {}, algorithm.encoding);
    for (const std::string& life : lives) {
      run.client([&life, &algorithm, acts](Context& context, ExploredClient& client) {
        Writer writer(context, client, *acts, algorithm);
        for (const char letter : life) writer.act(letter);
      });
    }
    run.check([acts, before, &algorithm](Context& observer) -> std::optional<std::string> {
      const auto contents = Array(observer, "x", algorithm.options).fetch(algorithm.encoding);
      if (!contents.complete) return "a part is missing although nothing was lost";
      std::string left;
      for (const auto& element : contents.elements) left += ' ' + element;
      if (!acts->explained(before, [&](Elements& state) { return state == contents.elements; }))
        return "no order of the changes explains what was fetched, and what is left:" + left;
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

// By cas, but with new ids: a repetition that comes late is not known again.
void compact_and_forget(Context& context) {
  cas_update(context, key, [&](const Observed& observed) -> std::optional<Write> {
    const auto root = decode_journal_root(observed.value);
    if (!root) return std::nullopt;
    const auto lines = decode_journal_lines(root->tail).lines;
    return Write{journal_header(root->incarnation) + encoded(context, replay(lines))};
  });
}

void change_in_two_steps(Context& context, const Elements& add, const Elements& remove) {
  Array array(context, "x");
  if (!remove.empty()) array.change({}, remove);
  array.change(add, {});
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

// The article's: read, change, write.
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
  const std::string letters = "amdpzcf";
  for (std::size_t i = 0; i < letters.size(); ++i) {
    for (std::size_t j = i; j < letters.size(); ++j) {
      if (letters[i] == 'f' && letters[j] == 'f') continue;
      holds(std::string("array: ") + letters[i] + " | " + letters[j] + "f",
            writers({{letters[i]}, {letters[j], 'f'}}), small_items(1));
    }
  }
  holds("array: append | compact append", writers({"a", "ca"}), small_items(1));
}

TEST_CASE("exhaustive array: the JSON encoding") {
  using exhaustive::holds;
  const Algorithm json{.encoding = ArrayEncoding::json};
  for (const char* pair : {"aa", "am", "md", "pa", "pm", "za"})
    holds(std::string("array, JSON: ") + pair[0] + " | " + pair[1] + "f",
          writers({{pair[0]}, {pair[1], 'f'}}, json), small_items(1));
}

TEST_CASE("exhaustive array: caught when broken") {
  using exhaustive::caught;
  Algorithm broken;
  broken.compact = compact_without_cas;
  caught("array, broken: compaction without cas", writers({"a", "c"}, broken), small_items(0));
  broken.compact = compact_and_forget;
  caught("array, broken: compaction that forgets ids", writers({"a", "c"}, broken), small_items(1));
  caught("array, broken: a change in two steps", writers({"m", "f"}, {.change = change_in_two_steps}),
         small_items(0));
  caught("array, broken: a blind repetition", writers({"a"}, {.change = repeat_blindly}), small_items(1));
  caught("array, the articles': get, change, set",
         writers({"a", "a"}, {.encoding = ArrayEncoding::json, .change = get_and_set}), small_items(0));
}

}  // namespace mcds
