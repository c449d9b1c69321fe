// Tables and hashes: each element is linearizable; a fetch has every element that is present throughout it,
// and none that is absent throughout it.
#pragma once

#include <map>
#include <set>

#include "common/cluster/decorators.hpp"
#include "common/journal/journal.hpp"
#include "common/structures/elements/elements.hpp"
#include "common/structures/elements/index.hpp"
#include "tests/models/linearizability.hpp"

namespace mcds::elements_model {

using namespace std::chrono_literals;

using Value = std::optional<std::string>;
using Acts = models::Acts<Value>;

// The padding of roots when compaction runs. Such small items need no more requests.
inline const Journal::Options small_paddings{.max_padding = 256, .min_dead = 0};

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

inline bool ends(const Value& state) {
  return state && state->starts_with(ending);
}

inline std::vector<bool> all_present(std::span<const std::string> names) {
  return std::vector<bool>(names.size(), true);
}

inline void list(Context& context, const std::string& structure, const std::string& name) {
  ElementIndex index(context, structure + ":h", all_present, false);
  const std::string* names = &name;
  ElementIndex::Listing listing = index.begin_list(index.shares_of(std::span(&names, 1)));
  index.finish_list(listing, {});
  if (const auto& failure = listing.failures.front()) throw Failure(*failure);
}

// Sets a missing element, with one mistake.
inline void set_wrongly(Context& context, const std::string& structure, const Elements& elements,
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
inline void set_to_end_wrongly(Context& context, const std::string& key, const std::string& value) {
  const Exptime exptime = Exptime::after(short_ttl, context.clock.wall());
  const auto replaced =
      expect(context.cluster, context.cluster.execute(Request::replace(key, value, exptime)));
  if (replaced.outcome == Outcome::stored) return;
  expect(context.cluster, context.cluster.execute(Request::add(key, value, exptime)));
}

inline void compact_wrongly(Context& context, const std::string& structure, Elements& elements,
                            Mistake mistake) {
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
  bool random = false;  // names, and long pauses; nothing is listed late
  bool slow = false;    // long pauses between listing and adding
};

struct History {
  // A client that dies after a slow add has neither listed the element again nor acknowledged it, and who
  // sets it later finds it there.
  bool may_be_unlisted(const std::string& name, bool slow) { return slow && unanswered[name] > 0; }

  std::map<std::string, Acts> acts;       // by name
  std::map<std::string, int> endings;     // of values that expire
  std::map<std::string, int> unanswered;  // sets that may have been executed
  bool lost = false;                      // a client removed parts of the index
};

// Lets a long time pass before some adds, as long as the grace period allows.
class SlowAdds final : public Decorator {
 public:
  SlowAdds(const Context& context, bool slow) : Decorator(context.cluster), context_(context), slow_(slow) {}
  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override {
    if (slow_ && batch.front().op == Op::add && context_.random.below(3) == 0)
      context_.clock.sleep_for(std::chrono::seconds(context_.random.below(90)));
    return inner().execute(batch);
  }

 private:
  const Context& context_;
  bool slow_;
};

// Runs one client's operations, as letters: s sets n to its own value (always 1 in a table); e does so with a
// ttl of two seconds (hashes only); b does so while a third element is in flight and a fourth is being
// listed; g gets it; r removes it; f fetches; c compacts; o sets another element of the same shard; d drops
// the table or hash; t removes n and drops its name in one step; l loses parts of the index.
class User {
 public:
  User(Context context, Actor& client, History& history, const Setting& setting)
      : context_(std::move(context)),
        client_(client),
        history_(history),
        setting_(setting),
        elements_(context_, setting.structure, "h", small_paddings) {}

  void act(char letter) {
    if (setting_.random) {
      const std::vector<std::string> names{"a", "b", "c"};
      const std::size_t which = context_.random.below(2 * names.size());
      name_ = which < names.size() ? names[which] : "own" + std::to_string(client_.index());
    }
    switch (letter) {
      case 's':
        return set(setting_.structure == "table" ? "1"
                                                 : std::to_string(client_.index()) + std::to_string(next_++));
      case 'e':
        ++history_.endings[name_];
        return set(ending + std::to_string(client_.index()) + std::to_string(next_++));
      case 'b':
        return set(
            setting_.structure == "table" ? "1" : std::to_string(client_.index()) + std::to_string(next_++),
            true);
      case 'g': return get();
      case 'r': return remove();
      case 't': return remove(true);
      case 'd': return drop();
      case 'f': return fetch();
      case 'l': return lose();
      case 'o':
        client_.operation("set another", [&] {
          const Element other{"other", "1"};
          return answer(elements_.set(std::span(&other, 1)).front()).yes ? "created" : "there";
        });
        return;
      default:
        client_.operation("compact", [&] {
          if (setting_.mistake == Mistake::compaction_without_grace ||
              setting_.mistake == Mistake::compaction_without_cas)
            compact_wrongly(context_, setting_.structure, elements_, setting_.mistake);
          else
            elements_.compact();
          return "done";
        });
    }
  }

 private:
  // Returns true if answers can be compared. If clients change several copies at once, their order is
  // unknown; an element that is set while the structure is dropped may have existed.
  bool tells() const { return context_.copies == 1 && !setting_.drops && !setting_.random; }

  static ElementResult answer(ElementResult result) {
    if (!result.failure) return result;
    if (result.failure->code() == ErrorCode::unknown_outcome) throw UnknownOutcome(result.failure->what());
    throw Failure(*result.failure);
  }

  ElementResult set_behind_another(const Element& element) {
    const std::string fresh =
        setting_.random ? std::to_string(client_.index()) + '/' + std::to_string(next_++) : "";
    const Element new_one{"first" + fresh, "1"}, third{"third" + fresh, "1"}, last{"fourth" + fresh, "1"};
    if (setting_.random) static_cast<void>(elements_.set(std::span(&new_one, 1)));
    const auto before = elements_.begin_set(std::span(&third, 1));
    const auto answers = elements_.begin_set(std::span(&element, 1));
    const auto behind = attempt([&] { return elements_.begin_set(std::span(&last, 1)); });
    static_cast<void>(before());
    auto other = answers();
    static_cast<void>(attempt([&] { return behind.value()(); }));
    return other.front();
  }

  void set(const std::string& value, bool behind_another = false) {
    const Element element{name_, value};
    bool answered = false;
    ++history_.unanswered[name_];
    const bool maybe_set = acts().run(
        client_, named("set"), [value](Value& state) { state = value; },
        [&](std::string& reported) -> std::function<bool(Value&)> {
          if (setting_.mistake == Mistake::listed_after || setting_.mistake == Mistake::never_listed_again) {
            set_wrongly(context_, setting_.structure, elements_, element, setting_.mistake);
            answered = true;
            return [value](Value& state) { return state = value, true; };
          }
          if (ends(value) && setting_.mistake == Mistake::listed_when_it_was_there) {
            set_to_end_wrongly(context_, elements_.key_of(element.name), value);
            answered = true;
            return [value](Value& state) { return state = value, true; };
          }
          const bool to_end = ends(value) || setting_.mistake == Mistake::end_kept;
          const auto ttl = to_end ? std::optional<Duration>(short_ttl) : std::nullopt;
          const bool created = answer(behind_another ? set_behind_another(element)
                                                     : elements_.set(std::span(&element, 1), ttl).front())
                                   .yes;
          reported = created ? "created" : "was there";
          answered = true;
          return [value, created, tells = tells()](Value& state) {
            const bool missing = !state;
            state = value;
            return missing == created || !tells;
          };
        });
    if (answered || !maybe_set) --history_.unanswered[name_];
  }

  void get() {
    acts().run(client_, named("get"), nullptr, [&](std::string& reported) {
      const auto result = answer(elements_.get(std::span(&name_, 1)).front());
      reported = result.yes ? result.value : "absent";
      return [result](Value& state) { return state == (result.yes ? Value(result.value) : Value()); };
    });
  }

  void remove(bool tidies = false) {
    acts().run(
        client_, named("remove"), [](Value& state) { state.reset(); },
        [&](std::string& reported) {
          const auto result = setting_.mistake == Mistake::removal_without_trace
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
    acts().run(
        client_, "drop", [](Value& state) { state.reset(); },
        [&](std::string& reported) {
          if (setting_.mistake >= Mistake::drop_without_comparing)
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
      if (setting_.mistake == Mistake::drop_without_comparing)
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
    if (!result.yes) expect(context_.cluster, models::representative_reply(replies));
    return result;
  }

  void fetch() {
    std::map<std::string, std::string> found;
    bool complete = false;
    const bool done = client_.operation("fetch", [&] {
      const auto listing = elements_.fetch([&](Elements::Found& one) {
        if (!found.emplace(one.name, one.value).second)
          client_.run().violated("a fetch has an element twice");
      });
      complete = listing.complete();
      const auto mine = found.find(name_);
      return mine == found.end() ? "absent" : mine->second;
    });
    if (!done || !complete) return;
    for (auto& [name, acts] : history_.acts) {
      const auto one = found.find(name);
      const Value value = one == found.end() ? Value() : Value(one->second);
      if (!value && history_.may_be_unlisted(name, setting_.slow)) continue;
      acts.answered(client_, [value](Value& state) { return state == value; });
    }
  }

  void lose() {
    client_.operation("lose parts of the index", [&] {
      history_.lost = true;
      const auto keys = elements_.index_keys();
      for (std::size_t shard = 1; shard < keys.size(); ++shard) {
        if (context_.random.below(2) == 0)
          static_cast<void>(context_.cluster.execute(Request::remove(keys[shard])));
      }
      return "done";
    });
  }

  std::string named(const std::string& operation) const {
    return setting_.random ? operation + ' ' + name_ : operation;
  }
  Acts& acts() { return history_.acts[name_]; }

  Context context_;
  Actor& client_;
  History& history_;
  const Setting& setting_;
  Elements elements_;
  std::string name_ = "n";
  int next_ = 0;
};

// Checks every name after random operations, when all that expires has.
inline std::optional<std::string> violation(Trial& run, History& history, Context& observer,
                                            const Setting& setting) {
  run.time().advance(120s);
  Elements elements(observer, setting.structure, "h");
  std::set<std::string> listed;
  bool twice = false;
  const auto listing =
      elements.fetch([&](Elements::Found& found) { twice = !listed.insert(found.name).second || twice; });
  if (twice) return "a fetch has an element twice";
  if (!listing.complete() && !history.lost) return "a loss is told, and nothing was lost";
  for (auto& [name, acts] : history.acts) {
    const auto left = elements.get(std::span(&name, 1)).front();
    const Value value = left.yes ? Value(left.value) : Value();
    if (ends(value)) return name + " has not expired";
    acts.perhaps(
        [](Value& state) {
          if (ends(state)) state.reset();
        },
        history.endings[name]);
    if (!acts.explained({}, [&](Value& state) { return state == value; }))
      return "no order of the operations explains their answers, and what is left of " + name + ": " +
             value.value_or("nothing");
    if (listing.complete() && left.yes != listed.contains(name) &&
        !history.may_be_unlisted(name, setting.slow))
      return name + " is present and not listed";
  }
  return std::nullopt;
}

inline Scenario users(std::vector<std::string> incarnations, Setting setting) {
  return [=](Trial& run) {
    auto history = std::make_shared<History>();
    for (const char* name : {"a", "b", "c"}) {
      if (setting.random) history->acts[name];
    }
    if (!setting.random) {
      history->acts["n"];
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
      run.client([&incarnation, &setting, history](Context& honest, Actor& client) {
        SlowAdds slow(honest, setting.slow);
        User user({slow, honest.clock, honest.random, honest.key_prefix, setting.copies}, client, *history,
                  setting);
        for (const char letter : incarnation) user.act(letter);
      });
    }
    run.check([history, &setting, &run](Context& observer) -> std::optional<std::string> {
      if (setting.random) return violation(run, *history, observer, setting);
      const std::string name = "n";
      Acts* acts = &history->acts[name];
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

}  // namespace mcds::elements_model
