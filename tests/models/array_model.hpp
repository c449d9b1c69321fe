// Arrays: fetch shows some serial order of whole changes, and compaction drops none.
#pragma once

#include <set>

#include "common/base/json.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/structures/array/array.hpp"
#include "tests/models/linearizability.hpp"
#include "tests/support/world.hpp"

namespace mcds::array_model {

using Elements = std::vector<std::string>;
using Acts = models::Acts<Elements>;

inline const std::string key = "array:x";
constexpr std::size_t max_in_an_item = 16;

inline void change_state(Elements& state, const Elements& add, const Elements& remove) {
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
  bool exists = true;             // it has some elements at first
  bool grown = false;             // it has segments
  bool may_go = false;            // if items are lost, the whole array may be missing
  bool may_mix = false;           // if items are lost, late requests may restore elements in any order
  bool ends = false;              // a second drop at the end leaves nothing
  std::uint64_t max_padding = 1;  // of elements
  std::function<void(Context&)> drop = nullptr;
};

struct History {
  Acts acts;
  std::set<std::string> added;  // elements that are or may have been
  std::vector<Elements> views;

  // Returns true if every view has only elements that were added, each once.
  bool plausible() const {
    return std::ranges::all_of(views, [&](const Elements& view) {
      const std::set<std::string> different(view.begin(), view.end());
      return different.size() == view.size() && std::ranges::includes(added, different);
    });
  }
};

// Runs one client's operations, as letters: a appends its own element; n does so and removes the one before
// it; m moves "b" (which exists) to the end as its own, in one change; d removes "b"; k removes it and
// reports what it removed; p replaces the contents; c compacts; f fetches; z empties the array; x drops it.
class Writer {
 public:
  Writer(Context context, Actor& client, History& history, const Setting& setting)
      : context_(std::move(context)),
        client_(client),
        history_(history),
        setting_(setting),
        array_(context_, "x", setting.options) {}

  void act(char letter) {
    const Elements own{quote_bytes(std::string(1, static_cast<char>('0' + client_.index())) +
                                   std::to_string(next_++) +
                                   std::string(context_.random.below(setting_.max_padding), '.'))};
    switch (letter) {
      case 'a': return change("append", own, {});
      case 'n': return change("next", own, std::exchange(last_, own));
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
  // Runs an operation that adds elements.
  template <typename Act>
  void add(const std::string& name, const Elements& own, const std::function<void(Elements&)>& effect,
           const Act& act) {
    history_.added.insert(own.begin(), own.end());
    if (history_.acts.run(client_, name, effect, act)) return;
    for (const std::string& element : own) history_.added.erase(element);
  }

  void change(const std::string& name, const Elements& add, const Elements& remove) {
    const auto effect = [=](Elements& state) { change_state(state, add, remove); };
    this->add(name, add, effect, [&](std::string&) {
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
    add("take", own, effect, [&](std::string& reported) {
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
    add(name, elements, effect, [&](std::string&) {
      array_.replace(elements, setting_.encoding);
      return [effect](Elements& state) { return effect(state), true; };
    });
  }

  // Drops the array. Elements that others add meanwhile stay, as in a new array.
  void drop() {
    history_.acts.run(
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
    history_.acts.run(client_, "fetch", nullptr, [&](std::string& reported) {
      const auto contents = array_.fetch(setting_.encoding);
      for (const auto& element : contents.elements) reported += element + ' ';
      if (!contents.complete() && !client_.run().lost_data())
        client_.run().violated("a part is missing although nothing was lost");
      if (contents.complete()) history_.views.push_back(contents.elements);
      return [contents](const Elements& state) { return !contents.complete() || state == contents.elements; };
    });
  }

  Context context_;
  Actor& client_;
  History& history_;
  const Setting& setting_;
  Array array_;
  int next_ = 0;
  Elements last_;
};

inline Scenario writers(std::vector<std::string> incarnations, Setting setting = {}) {
  return [=](Trial& run) {
    auto history = std::make_shared<History>();
    Elements before;
    if (setting.exists) before = {quote_bytes("a"), quote_bytes("b")};
    history->added.insert(before.begin(), before.end());
    if (setting.grown) before.resize(max_in_an_item, quote_bytes("c"));
    Array array(run.observer(), "x", setting.options);
    for (const std::string& element : before) array.change({&element, 1}, {}, setting.encoding);
    for (const std::string& incarnation : incarnations) {
      run.client([&incarnation, &setting, history](Context& honest, Actor& client) {
        Writer writer(honest, client, *history, setting);
        for (const char letter : incarnation) writer.act(letter);
      });
    }
    run.check([history, before, &setting, &run](Context& observer) -> std::optional<std::string> {
      const auto contents = Array(observer, "x", setting.options).fetch(setting.encoding);
      if (!contents.complete() && !run.lost_data()) return "a part is missing although nothing was lost";
      if (contents.complete()) history->views.push_back(contents.elements);
      if (setting.may_mix && run.lost_data())
        return history->plausible() ? std::nullopt
                                    : std::optional<std::string>("an element was doubled or invented");
      if (setting.may_go && run.lost_data()) history->acts.perhaps([](Elements& state) { state.clear(); });
      std::string left;
      for (const auto& element : contents.elements) left += ' ' + element;
      const auto as_left = [&](const Elements& state) {
        return !contents.complete() || state == contents.elements;
      };
      if (!history->acts.explained(before, as_left))
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

inline std::string encoded(Context& context, std::span<const std::string> elements) {
  std::string text;
  for (const std::string& element : elements)
    text += encode(JournalLine{Change::add, journal_line_id(context.random.token(), 0), element});
  return text;
}

inline void compact_without_cas(Context& context) {
  const auto contents = Array(context, "x").fetch();
  const std::string value = journal_header(context.random.token()) + encoded(context, contents.elements);
  expect(context.cluster, context.cluster.execute(Request::set(key, value, Exptime::never())));
}

// Compacts by cas but with new ids, so that a late repetition is not recognised.
inline void compact_and_forget(Context& context) {
  cas_update(context, key, [&](const Observed& observed) -> std::optional<Write> {
    const auto root = decode_journal_root(observed.value);
    if (!root || !root->segments.empty()) return std::nullopt;
    const auto lines = decode_journal_lines(root->tail);
    const std::vector<JournalLineView> views(lines.begin(), lines.end());
    return Write{journal_header(root->incarnation) + encoded(context, replay(views))};
  });
}

inline void change_in_two_steps(Context& context, const Elements& add, const Elements& remove) {
  Array array(context, "x");
  if (!remove.empty()) array.change({}, remove);
  array.change(add, {});
}

// Returns what was stored before the change, as far as it was read.
inline Elements look_and_take(Context& context, const Elements& add, const Elements& remove) {
  Array array(context, "x");
  Elements deleted = array.fetch().elements;
  std::erase_if(deleted, [&](const auto& one) { return one != remove.front(); });
  array.change(add, remove);
  return deleted;
}

inline void repeat_blindly(Context& context, const Elements& add, const Elements&) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Reply reply = context.cluster.execute(Request::append_or_create(
        key, journal_header(context.random.token()), encoded(context, add), Exptime::never()));
    if (reply.outcome == Outcome::stored) return;
    if (!reply.unknown()) throw NotApplied(ErrorCode::unavailable, "");
  }
  throw UnknownOutcome("no reply");
}

inline void remove_segments_first(Context& context) {
  std::vector<Request> removals;
  for (const PlacedKey& part : Array(context, "x").keys()) {
    if (!part.with.empty()) removals.push_back(Request::remove(part.key).placed_with(part.with));
  }
  context.cluster.execute(removals);
  Array(context, "x").drop();
}

// The usual recipe: read, change, write.
inline void get_and_set(Context& context, const Elements& add, const Elements& remove) {
  Elements elements = Array(context, "x").fetch(ArrayEncoding::json).elements;
  change_state(elements, add, remove);
  std::string text;
  for (const std::string& element : elements) text += (text.empty() ? "" : ",") + element;
  expect(context.cluster,
         context.cluster.execute(Request::set(key + ":json", '[' + text + ']', Exptime::never())));
}

}  // namespace mcds::array_model
