// Arrays: fetch is some serial order of whole changes, and compaction drops none.
#include "common/base/json.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/structures/array/array.hpp"
#include "tests/exhaustive/linearizability.hpp"
#include "tests/exhaustive/pairs.hpp"
#include "tests/support/cluster_doubles.hpp"
#include "tests/support/mistakes.hpp"

namespace mcds::array_exhaustive {

namespace {

using Elements = std::vector<std::string>;
using Acts = exhaustive::Acts<Elements>;
using exhaustive::in_copies;

const std::string key = "array:x";
constexpr std::size_t most_in_an_item = 16;

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

struct Setting {
  std::optional<ArrayEncoding> encoding = ArrayEncoding::journal;
  Journal::Options options = {.segment_size = 300, .largest_padding = 256};
  std::function<void(Context&, const Elements& add, const Elements& remove)> change = nullptr;
  std::function<void(Context&)> compact = nullptr;
  std::function<Elements(Context&, const Elements& add, const Elements& remove)> take = nullptr;
  std::size_t copies = 1;
  bool grown = false;   // it has segments
  bool may_go = false;  // when items are lost, all of it
  bool ordered = true;
  test::Spoiled::Spoil spoil = nullptr;
  bool guesses_owner = false;

  test::Spoiled::Spoil spoil_in(const Context& context) const {
    return guesses_owner ? test::guess_owner(context.cluster.placement(), copies) : spoil;
  }

  bool same(Elements one, Elements other) const {
    if (!ordered) std::sort(one.begin(), one.end()), std::sort(other.begin(), other.end());
    return one == other;
  }
};

// One client's operations, as letters: a appends its own element, m moves "b" (which is there) to the end as
// its own, at once; d removes "b", k removes it and is told; p replaces all, c compacts, f fetches, z clears.
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
      case 'z': return replace("clear", {});
      case 'c':
        client_.operation("compact", [&] {
          if (setting_.compact) return setting_.compact(context_), "done";
          return array_.compact() ? "done" : "nothing to do";
        });
        return;
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

  // What is told is what was there just then: so nothing is told twice.
  void take(const Elements& own) {
    const Elements wanted{quote_bytes("b")};
    const auto effect = [=](Elements& state) { change_state(state, own, wanted); };
    acts_.run(client_, "take", effect, [&](std::string& told) {
      const Elements deleted =
          setting_.take ? setting_.take(context_, own, wanted) : array_.change_and_tell(own, wanted).deleted;
      for (const auto& element : deleted) told += element + ' ';
      return [=](Elements& state) {
        const bool as_told = std::count(state.begin(), state.end(), wanted.front()) ==
                             static_cast<std::ptrdiff_t>(deleted.size());
        effect(state);
        return as_told;
      };
    });
  }

  void replace(const std::string& name, const Elements& elements) {
    const auto effect = [=](Elements& state) { state = elements; };
    acts_.run(client_, name, effect, [&](std::string&) {
      elements.empty() ? array_.clear(setting_.encoding) : array_.replace(elements, setting_.encoding);
      return [effect](Elements& state) { return effect(state), true; };
    });
  }

  void fetch() {
    acts_.run(client_, "fetch", nullptr, [&](std::string& told) {
      const auto contents = array_.fetch(setting_.encoding);
      for (const auto& element : contents.elements) told += element + ' ';
      if (!contents.complete() && !client_.run().lost_data())
        client_.run().violated("a part is missing although nothing was lost");
      return [this, contents](const Elements& state) {
        return !contents.complete() || setting_.same(state, contents.elements);
      };
    });
  }

  Context context_;
  ExploredClient& client_;
  Acts& acts_;
  const Setting& setting_;
  Array array_;
  int next_ = 0;
};

Scenario writers(std::vector<std::string> lives, Setting setting = {}) {
  return [=](Exploration& run) {
    auto acts = std::make_shared<Acts>();
    Elements before{quote_bytes("a"), quote_bytes("b")};
    if (setting.grown) before.resize(most_in_an_item, quote_bytes("c"));
    const Context& own = run.observer();
    test::Spoiled servers(own.cluster, setting.guesses_owner ? setting.spoil_in(own) : nullptr);
    Array array({servers, own.clock, own.random, own.key_prefix, setting.copies}, "x", setting.options);
    for (const std::string& element : before) array.change({&element, 1}, {}, setting.encoding);
    for (const std::string& life : lives) {
      run.client([&life, &setting, acts](Context& honest, ExploredClient& client) {
        test::Spoiled spoiled(honest.cluster, setting.spoil_in(honest));
        Writer writer({spoiled, honest.clock, honest.random, honest.key_prefix, setting.copies}, client,
                      *acts, setting);
        for (const char letter : life) writer.act(letter);
      });
    }
    run.check([acts, before, &setting, &run](Context& own) -> std::optional<std::string> {
      test::Spoiled servers(own.cluster, setting.guesses_owner ? setting.spoil_in(own) : nullptr);
      const Context observer{servers, own.clock, own.random, own.key_prefix, setting.copies};
      const auto contents = Array(observer, "x", setting.options).fetch(setting.encoding);
      if (!contents.complete() && (!run.lost_data() || setting.copies > 1))
        return "a part is missing although nothing was lost";
      if (setting.may_go && run.lost_data()) acts->perhaps([](Elements& state) { state.clear(); });
      std::string left;
      for (const auto& element : contents.elements) left += ' ' + element;
      const auto as_left = [&](const Elements& state) {
        return !contents.complete() || setting.same(state, contents.elements);
      };
      if (!acts->explained(before, as_left))
        return "no order of the changes explains what was fetched, and what is left:" + left;
      return std::nullopt;
    });
  };
}

// Three copies have two replacements in orders that contradict each other. Clients, each cut off from one
// copy, fetch. Of those who meet the first or the last, and the middle one, either would take another order.
Scenario deciders(std::vector<std::size_t> cut_off) {
  return [=](Exploration& run) {
    auto answers = std::make_shared<std::vector<std::string>>();
    const Context own = in_copies(run.observer(), 3);
    Array(own, "x").change(Elements{quote_bytes("a")}, {});
    const auto servers = copy_servers(own, "array3:x");
    for (std::size_t copy = 0; copy < 3; ++copy) {
      std::string one, text;
      for (const std::string id : {"a", "b"}) {
        const std::string operation(16, id[0]);
        one = encode(JournalLine{Change::clear, operation + ".0", {}}) +
              encode(JournalLine{Change::add, operation + ".1", quote_bytes(id)});
        text = copy == 1 ? one + text : text + one;
      }
      run.servers().execute(Request::append("array3:x", text).on(servers[copy]));
    }
    for (const std::size_t away : cut_off) {
      run.client([=](Context& honest, ExploredClient& client) {
        test::ScriptedFaults cut(honest.cluster);
        cut.choose([&](const Request& request) {
          return request.server == servers[away] ? std::optional(test::Mishap::unreachable) : std::nullopt;
        });
        const Context context{cut, honest.clock, honest.random, honest.key_prefix, 3};
        client.operation("fetch", [&] {
          const Elements elements = Array(context, "x").fetch().elements;
          answers->push_back(elements.size() == 1 ? elements[0] : "not one");
          return answers->back();
        });
      });
    }
    run.check([=](Context& observer) -> std::optional<std::string> {
      answers->push_back(Array(in_copies(observer, 3), "x").fetch().elements.at(0));
      const bool same = std::ranges::count(*answers, answers->front()) == std::ssize(*answers);
      return same ? std::nullopt : std::optional<std::string>("two were answered differently");
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
    const auto lines = decode_journal_lines(root->tail);
    return Write{journal_header(root->incarnation) + encoded(context, replay(lines))};
  });
}

void change_in_two_steps(Context& context, const Elements& add, const Elements& remove) {
  Array array(context, "x");
  if (!remove.empty()) array.change({}, remove);
  array.change(add, {});
}

// What was there before the change, as far as is known.
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

TEST_CASE("exhaustive array: what is lost is told") {
  using exhaustive::holds;
  Bounds losing{.faults = 1, .kinds = Happenings::none(), .hasty_attempts = 1};
  losing.server.item_size = 600;
  losing.kinds.evictions = true;
  for (const char* life : {"af", "df", "pf", "cf", "zf", "ff"}) {
    losing.evictable = [](const std::string& one) { return one != key; };
    holds(std::string("array, a segment is evicted: a | ") + life[0] + life[1],
          writers({"a", life}, {.grown = true}), losing);
    losing.evictable = [](const std::string& one) { return one == key; };
    holds(std::string("array, the root is evicted: a | ") + life[0] + life[1],
          writers({"a", life}, {.grown = true, .may_go = true}), losing);
    Bounds restarting = losing;
    restarting.kinds = Happenings::none();
    restarting.kinds.restarts = true;
    holds(std::string("array, the server restarts: a | ") + life[0] + life[1],
          writers({"a", life}, {.grown = true, .may_go = true}), restarting);
  }
}

// With a fault, copies may order what clients change at the same time differently (array.hpp): only what is
// there counts, and nobody replaces anything.
TEST_CASE("exhaustive array: two copies") {
  using exhaustive::holds;
  Bounds bounds = small_items(0);
  bounds.servers = 2;
  const std::string letters = "amdpzcf";
  for (std::size_t i = 0; !exhaustive::full() && i < letters.size(); ++i) {
    for (std::size_t j = i; j < letters.size(); ++j) {
      if (letters[i] == 'f' && letters[j] == 'f') continue;
      holds("array, 2 copies: " + std::string(1, letters[i]).append(" | ").append(1, letters[j]).append("f"),
            writers({{letters[i]}, {letters[j], 'f'}}, {.copies = 2}), bounds);
    }
  }
  bounds.faults = 1;
  for (const char* pair : {"aa", "am", "ad", "af", "mm", "md", "mf", "dd"})
    holds(std::string("array, 2 copies: ") + pair[0] + " | " + pair[1] + "f",
          writers({{pair[0]}, {pair[1], 'f'}}, {.copies = 2, .ordered = false}), bounds, 0);
}

TEST_CASE("exhaustive array: three copies that contradict each other") {
  using exhaustive::holds;
  Bounds bounds{.faults = 0, .hasty_attempts = 1, .servers = 3};
  holds("array, 3 copies, contradicting: f | f", deciders({0, 2}), bounds);
  bounds.faults = 1;
  bounds.kinds = Happenings::none();
  bounds.kinds.deaths = true;
  bounds.servers_in_order = true;
  holds("array, 3 copies, contradicting: f | f", deciders({0, 2}), bounds);
}

TEST_CASE("exhaustive array: the JSON encoding") {
  using exhaustive::holds;
  const Setting json{.encoding = ArrayEncoding::json};
  for (const char* pair : {"aa", "am", "md", "pa", "pm", "za"})
    holds(std::string("array, JSON: ") + pair[0] + " | " + pair[1] + "f",
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
  Bounds two_servers = small_items(0);
  two_servers.servers = 2;
  caught("array, 2 copies, broken: rewritten without comparing",
         writers({"a", "c"}, {.copies = 2, .spoil = test::write_without_comparing}), two_servers);
  Bounds restarting = small_items(1);
  restarting.servers = 2;
  restarting.kinds = Happenings::none();
  restarting.kinds.restarts = true;
  caught("array, 2 copies, broken: the owner of a segment is guessed from its own key",
         writers({"f"}, {.copies = 2, .grown = true, .guesses_owner = true}), restarting);
  // A second restart may take the other copy too.
  exhaustive::holds("array, 2 copies, a server restarts: f", writers({"f"}, {.copies = 2, .grown = true}),
                    restarting, 0);
  caught("array, the articles': get, change, set",
         writers({"a", "a"}, {.encoding = ArrayEncoding::json, .change = get_and_set}), small_items(0));
}

}  // namespace mcds::array_exhaustive
