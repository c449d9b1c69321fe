// Hashes with two and three copies, whose servers lose nothing but are not always reachable: a client that
// reaches all copies reads the value that was acknowledged last, by whichever copies. A fetch that reports
// the copies as whole leaves that value in each.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "common/base/errors.hpp"
#include "common/structures/elements/elements.hpp"
#include "tests/support/cluster_doubles.hpp"
#include "tests/support/simulation.hpp"

namespace mcds::versions_simulation {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t servers = 4;
constexpr std::uint32_t removed_flag = 0x80000000;

enum class Mistake { none, position_decides, version_not_raised, reader_does_not_write_back, another_number };

bool is_element(std::string_view key) {
  return key.find(":h:v:") != std::string_view::npos;
}

// A client that makes one of the mistakes.
class Careless final : public Decorator {
 public:
  using Cluster::execute;
  Careless(Cluster& inner, Mistake mistake, bool reader)
      : Decorator(inner), mistake_(mistake), reader_(reader) {}
  std::vector<Reply> execute(std::span<const Request> batch) override {
    std::vector<Request> requests(batch.begin(), batch.end());
    for (Request& request : requests) spoil(request);
    std::vector<Reply> replies = inner().execute(requests);
    for (std::size_t i = 0; i < replies.size(); ++i) {
      if (mistake_ == Mistake::position_decides && is_element(requests[i].key))
        replies[i].flags &= removed_flag;
    }
    return replies;
  }

 private:
  void spoil(Request& request) const {
    // This client assumes one copy, but uses the keys of two.
    if (mistake_ == Mistake::another_number && request.key.starts_with("hash:")) request.key.insert(4, "2");
    if (!is_element(request.key) || (request.op != Op::cas && request.op != Op::add)) return;
    if (mistake_ == Mistake::version_not_raised) request.flags = (request.flags & removed_flag) | 1;
    if (mistake_ == Mistake::reader_does_not_write_back && reader_) request.op = Op::touch;
  }

  Mistake mistake_;
  bool reader_;
};

using Value = std::optional<std::string>;  // nullopt: no value

struct History {
  // The value that the only writer of a name last got acknowledged, unless its outcome is unknown.
  std::map<std::string, Value> reported;
  // Values with an unknown outcome, which may be stored at any later time.
  std::map<std::string, std::set<Value>> unknown;
  std::map<std::string, std::uint64_t> changes;         // begun
  std::map<std::string, std::set<std::size_t>> missed;  // servers that missed the last acknowledged write
  std::set<std::string> undecided;
  std::optional<std::string> violation;

  bool may_be(const std::string& name, const Value& value) {
    return reported.at(name) == value || unknown[name].contains(value);
  }
};

std::set<std::size_t> missed_by(const ElementResult& result) {
  std::set<std::size_t> servers;
  for (const CopyOutcome& copy : result.copies) {
    if (copy.failure) servers.insert(copy.server);
  }
  return servers;
}

class Client {
 public:
  Client(Context& context, SimulatedClient& client, History& history)
      : context_(context), client_(client), history_(history), elements_(context_, "hash", "h") {}

  void run() {
    for (int i = 0; i < 8; ++i) {
      try {
        act(std::to_string(i));
      } catch (const Failure&) {
      }
      client_.sleep_for(std::chrono::milliseconds(context_.random.below(2000)));
    }
  }

 private:
  void act(const std::string& value) {
    const std::string own = "own" + std::to_string(client_.index());
    switch (context_.random.below(4)) {
      case 0: return look("own" + std::to_string(context_.random.below(2)));
      case 1: return change(own, std::nullopt);
      default: return change(own, value);
    }
  }

  void change(const std::string& name, const Value& value) {
    history_.reported.erase(name);
    ++history_.changes[name];
    const bool new_value = history_.unknown[name].insert(value).second;
    ElementResult result;
    if (value) {
      const Element element{name, *value};
      result = elements_.set(std::span(&element, 1)).front();
    } else {
      result = elements_.remove(std::span(&name, 1)).front();
    }
    std::set<std::size_t> missed = missed_by(result);
    const std::set<std::size_t> before = history_.missed[name];
    // A change that failed may have reached no copy: each still misses what it missed before.
    if (result.failure) missed.insert(before.begin(), before.end());
    history_.missed[name] = missed;
    if (result.failure) return;
    // If each of two copies got one of two writes, no copy shows which write was later until a write reaches
    // both. A copy that got the element but not its line in the index counts as missed as well, so if
    // both were missed it is not known which has the element.
    const bool same_copy = missed == before && missed.size() == 1;
    if (result.copies.size() == 2 && !missed.empty() && !before.empty() && !same_copy)
      history_.undecided.insert(name);
    if (missed.empty()) history_.undecided.erase(name);
    if (history_.undecided.contains(name)) return;
    history_.reported[name] = value;
    if (new_value) history_.unknown[name].erase(value);
  }

  // Checks the value of a name that no client changes meanwhile.
  void look(const std::string& name) {
    if (!history_.reported.contains(name)) return;
    const std::uint64_t changes = history_.changes[name];
    const auto got = elements_.get(std::span(&name, 1)).front();
    if (got.failure || !missed_by(got).empty() || history_.changes[name] != changes) return;
    if (!history_.may_be(name, got.yes ? Value(got.value) : std::nullopt))
      history_.violation = name + " was read as something else than was acknowledged last";
  }

  Context& context_;
  SimulatedClient& client_;
  History& history_;
  Elements elements_;
};

struct Setting {
  std::size_t copies = 2;
  Mistake mistake = Mistake::none;
};

using Fetched = std::map<std::string, std::string>;

// Returns true if each server that holds a copy has the fetched value.
bool in_each_copy(Simulation& simulation, const Context& observer, const std::string& name,
                  const Fetched& fetched) {
  const std::string key = Elements(observer, "hash", "h").key_of(name);
  const auto servers_of_it = copy_servers(observer, key);
  return std::all_of(servers_of_it.begin(), servers_of_it.end(), [&](std::size_t server) {
    const auto item = simulation.servers().server(server).peek(key);
    const bool live = item && (item->flags & removed_flag) == 0;
    return live ? fetched.contains(name) && fetched.at(name) == item->value : !fetched.contains(name);
  });
}

std::optional<std::string> schedule(std::uint64_t seed, const Setting& setting) {
  Simulation simulation(seed, {.servers = servers, .faults = {.ghosts = false}, .max_skew = 3s});
  History history;
  for (int i = 0; i < 2; ++i) {
    simulation.client([&](Context& honest, SimulatedClient& client) {
      Careless careless(honest.cluster, setting.mistake, false);
      const bool alone = setting.mistake == Mistake::another_number && client.index() == 1;
      Context context{careless, honest.clock, honest.random, honest.key_prefix, alone ? 1 : setting.copies};
      Client(context, client, history).run();
    });
  }
  simulation.run();
  if (history.violation) return history.violation;
  Context& honest = simulation.observer();
  Careless careless(honest.cluster, setting.mistake, true);
  Context observer{careless, honest.clock, honest.random, honest.key_prefix, setting.copies};
  Fetched fetched;
  const auto listing = Elements(observer, "hash", "h").fetch([&](Elements::Found& found) {
    fetched[found.name] = found.value;
  });
  for (const auto& [name, expected] : history.reported) {
    const auto found = fetched.find(name);
    if (!history.may_be(name, found == fetched.end() ? std::nullopt : Value(found->second)))
      return name + " is not what was acknowledged last";
    if (listing.copies_whole && !in_each_copy(simulation, observer, name, fetched))
      return name + " is not in each copy after a fetch that called them whole";
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("versions: what was acknowledged last is what everybody reads, whichever copies were not reached") {
  check_schedules([](std::uint64_t seed) { return schedule(seed, {.copies = 2 + seed % 2}); }, 0.1);
}

TEST_CASE(
    "versions: the simulation catches a stale copy that counts for being the first, a version that is not "
    "raised, a "
    "reader that does not write back, and a client that says another number of copies") {
  for (const Mistake mistake : {Mistake::position_decides, Mistake::version_not_raised,
                                Mistake::reader_does_not_write_back, Mistake::another_number}) {
    CAPTURE(static_cast<int>(mistake));
    CHECK(finds_violation(
        [&](std::uint64_t seed) { return schedule(seed, {.copies = 2, .mistake = mistake}); }));
  }
}

}  // namespace mcds::versions_simulation
