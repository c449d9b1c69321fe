// Removes the keys of a selection.
#include "common/operations/removal.hpp"

#include <doctest/doctest.h>

#include "tests/support/world.hpp"

using namespace mcds;
using namespace mcds::test;

TEST_CASE("removal: a key that is not removed says why: refused, not answered, in doubt") {
  for (const auto& [mishap, code] : {std::pair{Mishap::refused, ErrorCode::refused},
                                     {Mishap::unreachable, ErrorCode::unavailable},
                                     {Mishap::lost_reply, ErrorCode::unknown_outcome}}) {
    World world(1);
    world.memory.execute(Request::set("k", "v", Exptime::never()));
    std::vector<ErrorCode> codes;
    SelectedRemoval removal(
        world.context, {},
        {[](const std::string&, std::size_t, const char*) {},
         [&](const std::string&, const Failure& failure) { codes.push_back(failure.code()); }});
    removal.take({.key = "k"});
    world.faults.choose([mishap = mishap](const Request& request) {
      return request.op == Op::remove_if ? std::optional(mishap) : std::nullopt;
    });
    removal.finish();
    CHECK(codes == std::vector{code});
    CHECK(removal.report().failed == 1);
  }
}

TEST_CASE("removal: a key that could not be read is not in doubt") {
  World world(1);
  std::optional<ErrorCode> code;
  SelectedRemoval removal(world.context, {},
                          {[](const std::string&, std::size_t, const char*) {},
                           [&](const std::string&, const Failure& failure) { code = failure.code(); }});
  removal.take({.key = "k"});
  world.faults.once(Op::probe, Mishap::lost_reply);
  removal.finish();
  CHECK(code == ErrorCode::unavailable);
}
