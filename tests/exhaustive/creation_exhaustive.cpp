// Two clients create one structure with different copy counts: at most one gets the answer that it did.
#include <array>

#include "common/base/bytes.hpp"
#include "common/cluster/decorators.hpp"
#include "common/structures/counter/counter.hpp"
#include "common/structures/elements/elements.hpp"
#include "tests/exhaustive/pairs.hpp"

namespace mcds {

namespace {

enum class Told { nothing, yes, refused, unknown };
enum class Looks { twice, once };

// A client that sees the root of the other copy count only when it first checks.
class LooksOnce final : public Decorator {
 public:
  LooksOnce(Cluster& inner, std::string root) : Decorator(inner), root_(std::move(root)) {}
  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override {
    std::vector<Reply> replies = inner().execute(batch);
    bool looked = false;
    for (std::size_t i = 0; i < replies.size(); ++i) {
      if (batch[i].key != root_) continue;
      looked = true;
      if (again_) replies[i] = Reply::of(Outcome::miss, replies[i].server);
    }
    again_ = again_ || looked;
    return replies;
  }

 private:
  std::string root_;
  bool again_ = false;
};

void create(Context context, const std::string& structure, const std::string& value) {
  if (structure == "counter") {
    static_cast<void>(Counter(context).incr("x", parse_u64(value).value() + 1));
    return;
  }
  const Element element{"n", value};
  const auto result = Elements(context, structure, "x").set(std::span(&element, 1)).front();
  if (result.failure) raise(*result.failure);
}

bool has(Context context, const std::string& structure, const std::string& value) {
  if (structure == "counter") {
    const std::vector<std::string> names{"x"};
    const CounterAnswer found = Counter(context).get(names).front();
    return found.done && found.value == parse_u64(value).value() + 1;
  }
  const std::string name = "n";
  return Elements(context, structure, "x").get(std::span(&name, 1)).front().value == value;
}

std::string prefix(const std::string& structure, std::size_t copies) {
  return structure + (copies == 1 ? "" : std::to_string(copies)) + ":x";
}

Scenario creators(std::string structure, std::array<std::size_t, 2> numbers, Looks looks = Looks::twice) {
  return [=](Trial& run) {
    auto reported = std::make_shared<std::array<Told, 2>>();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      run.client([=](Context& honest, Actor& client) {
        LooksOnce once(honest.cluster, prefix(structure, numbers[1 - i]));
        Cluster& cluster = looks == Looks::once ? static_cast<Cluster&>(once) : honest.cluster;
        const Context context{cluster, honest.clock, honest.random, honest.key_prefix, numbers[i]};
        client.operation("create in " + std::to_string(numbers[i]), [&] {
          try {
            (*reported)[i] = Told::unknown;
            create(context, structure, std::to_string(i));
            (*reported)[i] = Told::yes;
          } catch (const Failure& failure) {
            if (failure.code() != ErrorCode::unknown_outcome) (*reported)[i] = Told::refused;
            throw;
          }
          return "created";
        });
      });
    }
    run.check([=, &run](Context& observer) -> std::optional<std::string> {
      if ((*reported)[0] == Told::yes && (*reported)[1] == Told::yes)
        return "both were told that they created it";
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        if ((*reported)[i] == Told::yes &&
            !has(in_copies(observer, numbers[i]), structure, std::to_string(i)))
          return "what was acknowledged is not there";
        if ((*reported)[i] != Told::refused) continue;
        for (std::size_t server = 0; server < run.servers().size(); ++server) {
          for (const auto& [key, item] : run.servers().server(server).items()) {
            if (key.starts_with(prefix(structure, numbers[i]))) return "what was refused has left " + key;
          }
        }
      }
      return std::nullopt;
    });
  };
}

Bounds two_servers(int faults) {
  Bounds bounds{.faults = faults, .hasty_attempts = 1, .servers = 2};
  bounds.server.item_size = 2000;
  return bounds;
}

}  // namespace

TEST_CASE("exhaustive creation: in one copy and in two at the same time, at most one is told that it did") {
  // A creation that is executed after its removal begins a plain counter (counter.hpp).
  Bounds none_late = two_servers(0);
  none_late.kinds.delayed = false;
  exhaustive::holds("creation: counter, 1 | 2", creators("counter", {1, 2}), none_late);
  exhaustive::holds("creation: hash, 1 | 2", creators("hash", {1, 2}), two_servers(0), 0);
}

TEST_CASE("exhaustive creation: caught when broken") {
  exhaustive::caught("creation, broken: looks once", creators("counter", {1, 2}, Looks::once),
                     two_servers(0));
}

}  // namespace mcds
