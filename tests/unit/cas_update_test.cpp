#include "common/primitives/cas_update.hpp"

#include <doctest/doctest.h>

#include "common/base/errors.hpp"
#include "tests/support/world.hpp"

namespace mcds::test::cas_update_test {

namespace {

// Answers every store with this outcome and stores nothing.
class Refusing final : public Decorator {
 public:
  Refusing(Cluster& inner, Outcome outcome) : Decorator(inner), outcome_(outcome) {}
  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override {
    std::vector<Reply> replies;
    for (const Request& request : batch) {
      const bool stores = request.op == Op::add || request.op == Op::cas;
      stores_ += stores ? 1 : 0;
      replies.push_back(stores ? Reply::of(outcome_, 0) : inner().execute(request));
    }
    return replies;
  }
  int stores() const { return stores_; }

 private:
  Outcome outcome_;
  int stores_ = 0;
};

}  // namespace

TEST_CASE("cas update: a server that stores nothing is called that after some attempts, not busy clients") {
  for (const Outcome outcome : {Outcome::not_stored, Outcome::exists}) {
    World world(1);
    if (outcome == Outcome::exists)
      CHECK(world.memory.execute(Request::set("k", "1", Exptime::never())).outcome == Outcome::stored);
    Refusing refusing(world.memory, outcome);
    const Context context{refusing, world.clock, world.random, {}, 1};
    const SteadyTime began = world.clock.steady();
    try {
      cas_update(context, "k", [](const Observed&) { return Write{"2"}; });
      FAIL("it was called stored");
    } catch (const NotApplied& failure) {
      CHECK(failure.code() == ErrorCode::refused);
      CHECK(std::string(failure.what()).find(outcome == Outcome::exists ? "EXISTS" : "NOT_STORED") !=
            std::string::npos);
    }
    CHECK(refusing.stores() == 10);
    CHECK(world.clock.steady() - began < std::chrono::seconds(1));
  }
}

}  // namespace mcds::test::cas_update_test
