// Caches: there is one rebuild at a time, no invalidation is undone, no older value replaces a newer one, and
// no client waits for a crashed one.
#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/structures/cache/cache.hpp"
#include "tests/exhaustive/pairs.hpp"
#include "tests/exhaustive/tenures.hpp"
#include "tests/support/cluster_doubles.hpp"
#include "tests/support/mistakes.hpp"

namespace mcds::cache_exhaustive {

namespace {

using namespace std::chrono_literals;

constexpr Duration rebuild_ttl = 4s;
// Longer than a rebuild's lease plus the extra lifetime of its key.
constexpr Duration lapse = 8s;
const std::string source = "source";
const std::string lock_key = "cache:k:rebuild";

// Reads the source of the entry. It is an item, so that reading and changing it are steps like others.
std::uint64_t read_source(const Context& context) {
  return parse_u64(expect_read(context.cluster, context.cluster.execute(Request::get(source))).value).value();
}

void change_source(const Context& context) {
  expect(context.cluster, context.cluster.execute(Request::incr(source, 1)));
}

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
  exhaustive::Tenures held;  // the right to rebuild: from the answer until the release

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

// Runs one client's operations, as letters: a asks, and rebuilds if it gets the right to; w asks, waiting; f
// asks and forces a rebuild; d asks, and dies if it is to rebuild; l asks, and rebuilds for longer than its
// lease; k does the same, renewing; e expires, r removes the entry, x expires its tag, each because the
// source has changed. t asks with the tag, u asks without it and never rebuilds, v with it and never
// rebuilds; b asks with it for data that was read before.
class Caller {
 public:
  Caller(Context context, ExploredClient& client, History& history)
      : context_(std::move(context)), client_(client), history_(history), cache_(context_, "k") {}

  void live(const std::string& letters) {
    for (const char letter : letters) {
      if (letter == 'e' || letter == 'r' || letter == 'x')
        invalidate(letter);
      else if (!ask(letter))
        return;
    }
  }

 private:
  void invalidate(char letter) {
    const bool changed =
        client_.operation("change the source", [&] { return change_source(context_), "done"; });
    if (!changed) return;
    const bool done = client_.operation(letter == 'r' ? "remove" : "expire", [&] {
      if (letter == 'x') {
        const auto failure = CacheTags(context_, {"T"}).expire().front().failure;
        if (failure) raise(*failure);
      } else {
        static_cast<void>(letter == 'e' ? cache_.expire() : cache_.remove());
      }
      return "done";
    });
    if (done) history_.due.push_back({client_.ended(), 2});
  }

  // Returns false if the client died.
  bool ask(char letter) {
    CacheTerms terms{.ttl = 60s, .stale = 60s, .rebuild_ttl = rebuild_ttl, .holder = {}};
    terms.wait = letter == 'w' ? 150ms : 0ms;
    terms.refresh = letter == 'f';
    if (letter == 't' || letter == 'b' || letter == 'v') terms.tags = {"T"};
    std::string before;
    if (letter == 'b') {
      const auto read = [&] { return before = std::to_string(read_source(context_)); };
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
    if (answer->kind == Cache::Answer::Kind::fresh)
      history_.fresh.push_back({client_.begun(), parse_u64(answer->record->out).value()});
    if (answer->rebuild && letter == 'd') return false;
    if (answer->rebuild && (letter == 'u' || letter == 'v'))
      client_.operation("give up", [&] { return let_go(), answer->rebuild->end(true), "done"; });
    else if (answer->rebuild)
      rebuild(*answer->rebuild, letter, before);
    return true;
  }

  void hold(CacheRebuild& rebuild) {
    if (!rebuild.lease()) return;
    history_.held.begin(client_, rebuild.lease()->deadline - client_.steady());
  }

  void let_go() { history_.held.end(client_, client_.run().steps()); }

  void rebuild(CacheRebuild& rebuild, char letter, const std::string& before) {
    CacheRecord record;
    record.out = before;
    if (before.empty() &&
        !client_.operation("build", [&] { return record.out = std::to_string(read_source(context_)); }))
      return;
    for (int slept = 0; (letter == 'l' || letter == 'k') && slept < 2; ++slept) {
      client_.sleep_for(letter == 'k' ? rebuild_ttl / 4 : rebuild_ttl);
      if (letter == 'k') renew(rebuild);
    }
    bool stored = false;
    client_.operation("store", [&] {
      stored = rebuild.store(record) == CacheRebuild::Stored::stored;
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

  Context context_;
  ExploredClient& client_;
  History& history_;
  Cache cache_;
};

enum class Before { nothing, stale, fresh };

void build_before(const Context& context, bool tagged) {
  Cache cache(context, "k");
  CacheTerms terms{.ttl = 1s, .stale = 600s, .rebuild_ttl = rebuild_ttl, .holder = {}};
  if (tagged) terms.tags = {"T"};
  auto answer = cache.ask(terms);
  CacheRecord record;
  record.out = "1";
  answer.rebuild->store(record);
  answer.rebuild->end(true);
}

struct Setting {
  Before before = Before::stale;
  bool exclusive = true;  // one rebuild at a time
  bool tagged = false;    // the initial entry has the tag
  test::Spoiled::Spoil spoil = nullptr;
};

Scenario callers(std::vector<std::string> incarnations, Setting setting = {}) {
  return [=](Exploration& run) {
    auto history = std::make_shared<History>();
    const Context& before = run.observer();
    before.cluster.execute(Request::set(source, "1", Exptime::never()));
    if (setting.before != Before::nothing) build_before(before, setting.tagged);
    if (setting.before == Before::stale) run.time().advance(2s);
    for (const std::string& incarnation : incarnations) {
      run.client([&incarnation, &setting, history](Context& honest, ExploredClient& client) {
        test::Spoiled spoiled(honest.cluster, setting.spoil);
        Caller({spoiled, honest.clock, honest.random, honest.key_prefix}, client, *history).live(incarnation);
      });
    }
    run.check(
        [history, exclusive = setting.exclusive, &run](Context& observer) -> std::optional<std::string> {
          const auto shown = Cache(observer, "k").show();
          if (shown.record && shown.record->fresh(observer.clock.wall()) && shown.expired_tags.empty())
            history->fresh.push_back({run.steps() + 1, parse_u64(shown.record->out).value()});
          return history->violation(exclusive);
        });
  };
}

}  // namespace

TEST_CASE("exhaustive cache: askers, rebuilders and invalidations against each other") {
  using exhaustive::holds;
  for (const Before before : {Before::nothing, Before::stale}) {
    const std::string state = before == Before::nothing ? ", missing" : ", stale";
    const auto pair = [&](const std::string& name, std::vector<std::string> incarnations,
                          const Bounds& bounds) {
      holds("cache: " + name + state, callers(std::move(incarnations), {.before = before}), bounds);
    };
    pair("ask | ask", {"a", "a"}, {.faults = 1});
    pair("ask | ask waiting", {"a", "w"}, {.faults = 1, .hasty_attempts = 1});
    pair("ask | expire ask", {"a", "ea"}, {.faults = 1});
    pair("ask | remove ask", {"a", "ra"}, {.faults = 1});
    pair("expire | remove", {"e", "r"}, {.faults = 1});
    pair("ask dying | ask waiting", {"d", "w"}, {.faults = 1, .hasty_attempts = 1});
    pair("ask, stored late | ask, a lapse anywhere", {"a", "a"}, {.pauses = {lapse}, .max_pauses = 1});
    pair("ask, building long | ask", {"l", "a"}, {.faults = exhaustive::full() ? 1 : 0});
    pair("ask, building long, renewing | ask", {"k", "a"}, {.faults = 1});
  }
  holds("cache: ask anew | ask anew, fresh", callers({"f", "f"}, {.before = Before::fresh}), {.faults = 1});
  holds("cache: ask anew | expire ask, fresh", callers({"f", "ea"}, {.before = Before::fresh}),
        {.faults = 1});
}

TEST_CASE("exhaustive cache: three clients") {
  using exhaustive::holds_in_full;
  for (const std::vector<std::string>& three : {std::vector<std::string>{"a", "a", "a"},
                                                {"a", "a", "e"},
                                                {"a", "ea", "r"},
                                                {"a", "e", "r"},
                                                {"f", "a", "e"}}) {
    const std::string name = "cache: " + three[0] + " | " + three[1] + " | " + three[2];
    for (const Before before : {Before::nothing, Before::stale})
      holds_in_full(name + (before == Before::nothing ? ", missing" : ", stale"),
                    callers(three, {.before = before}), {});
  }
}

// Two clients may then rebuild at the same time, which makes no value wrong.
TEST_CASE("exhaustive cache: no invalidation is undone although items are lost") {
  using exhaustive::holds;
  Bounds losing{.faults = 1, .kinds = Happenings::none()};
  losing.kinds.evictions = true;
  losing.evictable = [](const std::string& key) { return key != source; };
  for (const std::vector<std::string>& one :
       {std::vector<std::string>{"a", "a"}, {"a", "ea"}, {"a", "ra"}, {"e", "r"}})
    holds("cache, an item is evicted: " + one[0] + " | " + one[1], callers(one, {.exclusive = false}),
          losing);
}

// A build that is overtaken by an expire is stale as soon as it is stored. A lost tag makes nothing fresh.
TEST_CASE("exhaustive cache: tags, askers and expires against each other") {
  using exhaustive::holds;
  Bounds losing{.faults = 1, .kinds = Happenings::none()};
  losing.kinds.evictions = losing.kinds.delayed = true;
  losing.evictable = [](const std::string& key) { return key != source; };
  for (const std::vector<std::string>& one : {std::vector<std::string>{"t", "t"},
                                              {"t", "x"},
                                              {"t", "xt"},
                                              {"t", "xu"},
                                              {"u", "xu"},
                                              {"x", "x"},
                                              {"tu", "x"},
                                              {"v", "xt"}}) {
    for (const Before before : {Before::nothing, Before::stale, Before::fresh}) {
      if (before == Before::fresh && one[0] == "x") continue;
      const std::string name = "cache, tags: " + one[0] + " | " + one[1] +
                               (before == Before::nothing ? ", missing"
                                : before == Before::stale ? ", stale"
                                                          : ", fresh");
      const Setting setting{.before = before, .exclusive = false, .tagged = true};
      holds(name, callers(one, setting), {.faults = 1}, 0);
      holds(name + ", data lost", callers(one, setting), losing);
    }
  }
}

void number_of_nobody(Request& request) {
  if (request.op == Op::add_and_get && request.key == "cachetag:T") request.value = "4611686018427387904";
}

void look_at_no_tag(Request& request) {
  if (request.op == Op::incr && request.key == "cachetag:T") request.key = "cachetag:elsewhere";
}

TEST_CASE("exhaustive cache: tags, caught when broken") {
  using exhaustive::caught;
  const Setting tagged{.before = Before::nothing, .exclusive = false, .tagged = true};
  caught("cache, broken: a tag's numbers read after the build began", callers({"b", "x"}, tagged), {});
  Setting spoiled = tagged;
  spoiled.spoil = number_of_nobody;
  Bounds losing{.faults = 1, .kinds = Happenings::none()};
  losing.kinds.evictions = true;
  losing.evictable = [](const std::string& key) { return key == "cachetag:T"; };
  caught("cache, broken: a tag is created with the same number again", callers({"txvt"}, spoiled), losing);
  spoiled.spoil = look_at_no_tag;
  caught("cache, broken: another tag is expired", callers({"tu", "x"}, spoiled), {});
}

TEST_CASE("exhaustive cache: caught when broken") {
  using exhaustive::caught;
  caught("cache, broken: stored by set", callers({"a", "e"}, {.spoil = test::store_by_set}), {});
  caught("cache, broken: a lock that is no lock", callers({"a", "a"}, {.spoil = test::lock_by_set}), {});
  caught("cache, broken: a placeholder like any other",
         callers({"a", "ra"}, {.before = Before::nothing, .spoil = test::placeholder_of_nobody}),
         {.faults = 1});
}

}  // namespace mcds::cache_exhaustive
