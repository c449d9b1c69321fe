// Caches: there is one rebuild at a time, no invalidation is undone, no older value replaces a newer one, and
// no client waits for a crashed one.
#pragma once

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/structures/cache/cache.hpp"
#include "tests/models/tenures.hpp"
#include "tests/support/cluster_doubles.hpp"
#include "tests/support/mistakes.hpp"

namespace mcds::cache_model {

using namespace std::chrono_literals;

constexpr Duration rebuild_ttl = 4s;
inline const std::string source = "source";

// For a client that asks at step `since` or later, only an entry of this version or a newer one may be fresh.
struct Due {
  std::size_t since;
  std::uint64_t version;
};

struct Seen {
  std::size_t begun;
  std::uint64_t version;
};

struct History {
  std::vector<Due> due;
  std::vector<Seen> fresh;
  models::Tenures held;       // the right to rebuild: from the answer until the release
  std::uint64_t version = 1;  // of the source, where it is no item
  WallTime fresh_until{};     // of what is certainly stored; 0 while a change is under way
  std::uint64_t changes = 0;  // changes begun, and ended
  int invalidations = 0;      // under way: a client that pauses in one may carry it out later
  bool needless = false;      // rebuilt although it was fresh: delayed requests and failures may cause it

  std::uint64_t begin_change() {
    fresh_until = WallTime{};
    return ++changes;
  }

  std::optional<std::string> violation(bool exclusive) const {
    for (const Seen& seen : fresh) {
      for (const Due& one : due) {
        if (one.since < seen.begun && seen.version < one.version)
          return "version " + std::to_string(seen.version) + " is fresh after one that it must give way to";
      }
    }
    if (exclusive && held.two_at_a_time()) return "two rebuilds at a time";
    return std::nullopt;
  }
};

enum class Before { nothing, stale, fresh };

struct Setting {
  Before before = Before::stale;
  bool exclusive = true;  // one rebuild at a time
  bool tagged = false;    // the initial entry has the tag
  test::Spoiled::Spoil spoil = nullptr;
  bool random = false;  // terms; and the source is no item, which could be lost
  bool needed = false;  // no rebuild while it is fresh
};

// Finds out until when the entry was fresh when a client got the right to rebuild it.
class Claims final : public Decorator {
 public:
  using Cluster::execute;
  Claims(Cluster& inner, const History& history) : Decorator(inner), history_(history) {}
  std::vector<Reply> execute(std::span<const Request> batch) override {
    const WallTime before = history_.fresh_until;
    auto replies = inner().execute(batch);
    if (batch.front().op == Op::add && test::is_entry(batch.front())) {
      const bool known = before == history_.fresh_until && std::ranges::none_of(replies, &Reply::failed);
      fresh_until_ = known ? before : WallTime{};
    }
    return replies;
  }
  WallTime fresh_until() const { return fresh_until_; }

 private:
  const History& history_;
  WallTime fresh_until_{};
};

// Runs one client's operations, as letters: a asks, and rebuilds if it gets the right to; w asks, waiting; f
// asks and forces a rebuild; d asks, and dies if it is to rebuild; l asks, and rebuilds for longer than its
// lease; k does the same, renewing; e expires, r removes the entry, x expires its tag, each because the
// source has changed. t asks with the tag, u asks without it and never rebuilds, v with it and never
// rebuilds; b asks with it for data that was read before.
class Caller {
 public:
  Caller(const Context& context, Actor& client, History& history, const Setting& setting)
      : claims_(context.cluster, history),
        context_{claims_, context.clock, context.random, context.key_prefix},
        client_(client),
        history_(history),
        setting_(setting),
        cache_(context_, "k") {}

  void live(const std::string& letters) {
    for (const char letter : letters) {
      if (letter == 'e' || letter == 'r' || letter == 'x')
        invalidate(letter);
      else if (!ask(letter))
        return;
    }
  }

 private:
  // Reads the source of the entry. It is an item, so that reading and changing it are steps like others.
  std::uint64_t read_source() {
    if (setting_.random) return history_.version;
    return parse_u64(expect_read(context_.cluster, context_.cluster.execute(Request::get(source))).value)
        .value();
  }

  std::uint64_t change_source() {
    if (setting_.random) return ++history_.version;
    return expect(context_.cluster, context_.cluster.execute(Request::incr(source, 1))).number;
  }

  void invalidate(char letter) {
    std::uint64_t version = 0;
    const bool changed =
        client_.operation("change the source", [&] { return std::to_string(version = change_source()); });
    if (!changed) return;
    struct UnderWay {
      History& history;
      explicit UnderWay(History& its) : history(its) { ++history.invalidations, history.begin_change(); }
      ~UnderWay() { --history.invalidations, history.begin_change(); }
    } const under_way(history_);
    const bool done = client_.operation(letter == 'r' ? "remove" : "expire", [&] {
      if (letter == 'x') {
        const auto failure = CacheTags(context_, {"T"}).expire().front().failure;
        if (failure) raise(*failure);
      } else {
        static_cast<void>(letter == 'e' ? cache_.expire() : cache_.remove());
      }
      return "done";
    });
    if (done) history_.due.push_back({client_.ended(), version});
  }

  CacheTerms terms_of(char letter) const {
    CacheTerms terms{.ttl = 60s, .stale = 60s, .rebuild_ttl = rebuild_ttl, .holder = {}};
    terms.wait = letter == 'w' ? 150ms : 0ms;
    if (setting_.random) {
      Random& random = context_.random;
      terms.ttl = 500ms + 1500ms * static_cast<int>(random.below(3));
      terms.stale = std::chrono::seconds(random.below(4));
      terms.rebuild_ttl += std::chrono::seconds(random.below(3));
      if (letter == 'w') terms.wait = std::chrono::milliseconds(random.below(3000));
    }
    terms.refresh = letter == 'f';
    if (letter == 't' || letter == 'b' || letter == 'v') terms.tags = {"T"};
    return terms;
  }

  // Returns false if the client died.
  bool ask(char letter) {
    const CacheTerms terms = terms_of(letter);
    std::string before;
    if (letter == 'b') {
      const auto read = [&] { return before = std::to_string(read_source()); };
      if (!client_.operation("read the source", read)) return true;
    }
    std::optional<Cache::Answer> answer;
    client_.operation("ask", [&]() -> std::string {
      answer.emplace(cache_.ask(terms));
      if (answer->kind == Cache::Answer::Kind::rebuild) return hold(*answer->rebuild), "rebuild";
      const std::string reported = answer->record ? answer->record->out : "nothing";
      return (answer->kind == Cache::Answer::Kind::fresh ? "fresh: " : "busy: ") + reported;
    });
    if (!answer) return true;
    const bool needless = answer->rebuild && !terms.refresh && client_.wall() < claims_.fresh_until();
    history_.needless = history_.needless || needless;
    if (answer->kind == Cache::Answer::Kind::fresh)
      history_.fresh.push_back({client_.begun(), parse_u64(answer->record->out).value()});
    if (answer->rebuild && letter == 'd') return false;
    if (answer->rebuild && (letter == 'u' || letter == 'v'))
      client_.operation("give up", [&] { return let_go(), answer->rebuild->end(true), "done"; });
    else if (answer->rebuild)
      rebuild(*answer->rebuild, letter, before, terms);
    return true;
  }

  void hold(CacheRebuild& rebuild) {
    if (!rebuild.lease()) return;
    history_.held.begin(client_, rebuild.lease()->deadline - client_.steady());
  }

  void let_go() { history_.held.end(client_, client_.run().steps()); }

  void rebuild(CacheRebuild& rebuild, char letter, const std::string& before, const CacheTerms& terms) {
    CacheRecord record;
    record.out = before;
    if (before.empty() &&
        !client_.operation("build", [&] { return record.out = std::to_string(read_source()); }))
      return;
    for (int slept = 0; (letter == 'l' || letter == 'k') && slept < 2; ++slept) {
      client_.sleep_for(letter == 'k' ? terms.rebuild_ttl / 4 : terms.rebuild_ttl);
      if (letter == 'k') renew(rebuild);
    }
    bool stored = false;
    client_.operation("store", [&] {
      const std::uint64_t change = history_.begin_change();
      const WallTime fresh_until = std::chrono::floor<std::chrono::milliseconds>(
          client_.wall() + std::chrono::floor<std::chrono::microseconds>(terms.ttl));
      stored = rebuild.store(record) == CacheRebuild::Stored::stored;
      if (stored && history_.changes == change && history_.invalidations == 0)
        history_.fresh_until = fresh_until;
      return stored ? "stored " + record.out : "superseded";
    });
    if (stored) history_.due.push_back({client_.ended(), parse_u64(record.out).value()});
    let_go();
    client_.operation("end", [&] { return rebuild.end(stored), "done"; });
  }

  void renew(CacheRebuild& rebuild) {
    if (!rebuild.lease()) return;
    client_.operation("renew", [&] {
      if (rebuild.lock().renew(*rebuild.lease(), rebuild.lease_ttl()) != Lock::Renewal::renewed)
        return "lost";
      let_go();
      hold(rebuild);
      rebuild.keep();
      return "renewed";
    });
  }

  Claims claims_;
  Context context_;
  Actor& client_;
  History& history_;
  const Setting& setting_;
  Cache cache_;
};

inline void build_before(const Context& context, bool tagged) {
  Cache cache(context, "k");
  CacheTerms terms{.ttl = 1s, .stale = 600s, .rebuild_ttl = rebuild_ttl, .holder = {}};
  if (tagged) terms.tags = {"T"};
  auto answer = cache.ask(terms);
  CacheRecord record;
  record.out = "1";
  answer.rebuild->store(record);
  answer.rebuild->end(true);
}

inline Scenario callers(std::vector<std::string> incarnations, Setting setting = {}) {
  return [=](Trial& run) {
    auto history = std::make_shared<History>();
    const Context& before = run.observer();
    before.cluster.execute(Request::set(source, "1", Exptime::never()));
    if (setting.before != Before::nothing) build_before(before, setting.tagged);
    if (setting.before == Before::stale) run.time().advance(2s);
    for (const std::string& incarnation : incarnations) {
      run.client([&incarnation, &setting, history](Context& honest, Actor& client) {
        test::Spoiled spoiled(honest.cluster, setting.spoil);
        const Context context{spoiled, honest.clock, honest.random, honest.key_prefix};
        Caller(context, client, *history, setting).live(incarnation);
      });
    }
    run.check([history, &setting, &run](Context& observer) -> std::optional<std::string> {
      if (setting.needed && history->needless) return "rebuilt though it was fresh";
      const auto shown = Cache(observer, "k").show();
      if (shown.record && shown.record->fresh(observer.clock.wall()) && shown.expired_tags.empty())
        history->fresh.push_back({run.steps() + 1, parse_u64(shown.record->out).value()});
      return history->violation(setting.exclusive);
    });
  };
}

}  // namespace mcds::cache_model
