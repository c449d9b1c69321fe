// Tables and hashes with two copies, while one server after the other loses everything, with a read repair in
// between: data that all copies acknowledged survives, and removed elements stay removed.
#include <doctest/doctest.h>

#include <map>

#include "common/base/errors.hpp"
#include "common/structures/elements/elements.hpp"
#include "tests/support/server_losses.hpp"

namespace mcds::elements_copies_simulation {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t servers = 3;

enum class Mistake { none, healing_without_tombstones };

struct History {
  // For each name, what its only writer last wrote, if all copies acknowledged it.
  std::map<std::string, std::optional<std::string>> settled;
  std::optional<std::string> violation;
};

class Writer {
 public:
  Writer(Context& context, SimulatedClient& client, Mistake mistake, History& history)
      : context_(context),
        client_(client),
        mistake_(mistake),
        history_(history),
        elements_(context_, "hash", "h") {}

  void run() {
    for (int i = 0; i < 6; ++i) {
      const std::string name =
          "own" + std::to_string(client_.index()) + (context_.random.below(2) == 0 ? "a" : "b");
      try {
        act(name, std::to_string(i));
      } catch (const Failure&) {
      }
      client_.sleep_for(std::chrono::milliseconds(context_.random.below(6000)));
    }
  }

 private:
  void act(const std::string& name, const std::string& value) {
    const auto choice = context_.random.below(4);
    if (choice == 0) return look(name);
    history_.settled.erase(name);
    const Duration begun = client_.simulation().time().elapsed();
    ElementResult result;
    if (choice == 1) {
      result = removed(name);
    } else {
      const Element element{name, value};
      result = choice == 2 ? set_behind_another(element) : elements_.set(std::span(&element, 1)).front();
    }
    const bool all = all_written(result.copies);
    const bool prompt = client_.simulation().time().elapsed() - begun < 4s;
    // A write that did not reach every copy, or took as long as a read repair waits, may be lost with the
    // next server. A write without a reply may still be executed.
    if (!all || result.failure) uncertain_ = true;
    if (!uncertain_ && prompt) history_.settled[name] = choice == 1 ? std::nullopt : std::optional(value);
  }

  // Sets an element while a batch with a new element is in flight, so that it is assumed to be new as well.
  // It is written when a third element is being listed.
  ElementResult set_behind_another(const Element& element) {
    const std::string own = "fresh" + std::to_string(client_.index()) + ' ' + std::to_string(fresh_++);
    const Element first{own + 'a', "1"}, second{own + 'b', "1"}, third{own + 'c', "1"};
    static_cast<void>(elements_.set(std::span(&first, 1)));
    const auto before = elements_.begin_set(std::span(&second, 1));
    const auto answers = elements_.begin_set(std::span(&element, 1));
    const auto behind = elements_.begin_set(std::span(&third, 1));
    static_cast<void>(before());
    const ElementResult result = answers().front();
    static_cast<void>(behind());
    return result;
  }

  ElementResult removed(const std::string& name) {
    if (mistake_ == Mistake::none) return elements_.remove(std::span(&name, 1)).front();
    ElementResult result;
    for (const Reply& reply :
         context_.cluster.execute(to_copies(context_, std::array{Request::remove(elements_.key_of(name))})))
      result.copies.push_back(copy_outcome(context_, reply));
    return result;
  }

  void look(const std::string& name) {
    const auto expected = history_.settled.find(name);
    if (expected == history_.settled.end()) return;
    const ElementResult got = elements_.get(std::span(&name, 1)).front();
    if (!all_written(got.copies) || got.failure) return;
    if (got.yes != expected->second.has_value() || (got.yes && got.value != *expected->second))
      history_.violation = "get of " + name;
  }

  Context& context_;
  SimulatedClient& client_;
  Mistake mistake_;
  History& history_;
  Elements elements_;
  bool uncertain_ = false;
  int fresh_ = 0;
};

// Returns true if every copy has everything now.
bool repaired(const Elements& elements) {
  try {
    const auto listing = elements.fetch([](Elements::Found&) {});
    return listing.complete() && listing.copies_whole;
  } catch (const Failure&) {
    return false;
  }
}

void lose_servers(const Context& context, SimulatedClient& client) {
  const Elements elements(context, "hash", "h");
  for (int i = 0; i < 3; ++i) {
    client.sleep_for(std::chrono::milliseconds(context.random.below(8000)));
    client.simulation().servers().restart(context.random.below(servers));
    // Requests that were in flight have arrived by then, or are not acknowledged in time.
    client.sleep_for(5s);
    for (int attempt = 0; !repaired(elements); ++attempt) {
      if (attempt == 10) return;
      client.sleep_for(1s);
    }
  }
}

std::optional<std::string> schedule(std::uint64_t seed, Mistake mistake) {
  Simulation simulation(
      seed,
      {.servers = servers, .faults = {.ghosts = false}, .max_skew = 3s, .server = {.item_size = 16384}});
  History history;
  for (int i = 0; i < 2; ++i) {
    simulation.client([&](Context& context, SimulatedClient& client) {
      Context twice = in_copies(context, 2);
      Writer(twice, client, mistake, history).run();
    });
  }
  simulation.client(
      [&](Context& context, SimulatedClient& client) { lose_servers(in_copies(context, 2), client); });
  simulation.run();
  if (history.violation) return history.violation;
  const Elements elements(in_copies(simulation.observer(), 2), "hash", "h");
  std::map<std::string, std::string> fetched;
  elements.fetch([&](Elements::Found& found) { fetched[found.name] = found.value; });
  for (const auto& [name, value] : history.settled) {
    const auto got = elements.get(std::span(&name, 1)).front();
    if (got.yes != value.has_value() || (value && got.value != *value))
      return name + " is not what its only writer left";
    if (value.has_value() != fetched.contains(name))
      return name + " is acknowledged and not listed, or removed and listed";
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE(
    "elements, copies: one server after the other loses everything, healed between: nothing acknowledged is "
    "lost or comes back") {
  check_schedules([](std::uint64_t seed) { return schedule(seed, Mistake::none); }, 0.25);
}

TEST_CASE("elements, copies: the simulation catches a removal that leaves no tombstone") {
  CHECK(finds_violation(
      [](std::uint64_t seed) { return schedule(seed, Mistake::healing_without_tombstones); }));
}

}  // namespace mcds::elements_copies_simulation
