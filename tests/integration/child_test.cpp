// The pipes of a child, for the verbs that feed it or keep its output; the rest is tested through `mcds lock
// run`.
#include "tools/cli/child.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <stdexcept>

namespace mcds::child_test {

namespace {

class Collected final : public ChildOutput {
 public:
  std::string output, errors;
  bool take(int stream, std::string_view bytes) override {
    (stream == 1 ? output : errors) += bytes;
    return true;
  }
  int waits_for(int) const override { return -1; }
  void proceed(int) override {}
};

class Refused final : public ChildOutput {
 public:
  bool take(int, std::string_view) override { return false; }
  int waits_for(int) const override { return -1; }
  void proceed(int) override {}
};

class Broken final : public ChildOutput {
 public:
  bool take(int, std::string_view) override { throw std::runtime_error("stdout is closed"); }
  int waits_for(int) const override { return -1; }
  void proceed(int) override {}
};

struct Done {
  ChildResult result;
  std::string output, errors;
};

Done run(std::vector<std::string> command, std::optional<std::string> input = std::nullopt,
         std::optional<Duration> max_run = std::nullopt) {
  std::signal(SIGPIPE, SIG_IGN);
  Done done;
  SystemClock clock;
  const CleanupProcess cleanup;
  const HeldSignals held;
  ChildOptions options{.command = std::move(command)};
  options.input = std::move(input);
  options.max_run = max_run;
  options.environment = {{"CHILD_TEST", "a b"}};
  Collected collected;
  options.output = &collected;
  done.result = run_child(options, clock, cleanup, held);
  done.output = std::move(collected.output);
  done.errors = std::move(collected.errors);
  return done;
}

}  // namespace

TEST_CASE("child: input and output of any size go through, byte for byte") {
  std::string input(3 << 20, '\0');
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<char>(i * 7 + i / 251);
  const Done done = run({"cat"}, input);
  CHECK(done.result.exit_code() == 0);
  CHECK(done.output == input);
  CHECK(done.errors.empty());
}

TEST_CASE("child: the streams are kept apart, the environment is added to") {
  const Done done = run({"sh", "-c", "echo \"$CHILD_TEST\"; echo err >&2; test -n \"$PATH\"; exit 7"}, "");
  CHECK(done.output == "a b\n");
  CHECK(done.errors == "err\n");
  CHECK(done.result.exit_code() == 7);
}

TEST_CASE("child: one that does not read its input, or closes its output, ends as it likes") {
  CHECK(run({"true"}, std::string(3 << 20, 'x')).result.exit_code() == 0);
  CHECK(run({"sh", "-c", "exec >&- 2>&- <&-; sleep 0.1; exit 3"}, std::string(3 << 20, 'x'))
            .result.exit_code() == 3);
}

TEST_CASE("child: what a process that left the group still writes is not waited for") {
  const Done done = run({"sh", "-c", "echo first; setsid sleep 1 & sleep 0.1"});
  CHECK(done.output == "first\n");
}

TEST_CASE("child: one that writes for ever is stopped in time") {
  const Done done = run({"yes"}, std::nullopt, std::chrono::milliseconds(200));
  CHECK(done.result.reason == ChildResult::Reason::max_run);
  CHECK(done.output.size() > 1000);
}

TEST_CASE("child: an exception of ours ends it") {
  const SystemClock clock;
  const auto start = clock.steady();
  ChildOptions options{.command = {"sh", "-c", "echo up; exec sleep 100"}};
  Broken broken;
  options.output = &broken;
  SystemClock waiting;
  const CleanupProcess cleanup;
  const HeldSignals held;
  CHECK_THROWS_AS(run_child(options, waiting, cleanup, held), std::runtime_error);
  CHECK(clock.steady() - start < std::chrono::seconds(10));
}

TEST_CASE("child: output that nobody wants ends it as a closed pipe does") {
  ChildOptions options{.command = {"yes"}};
  Refused refused;
  options.output = &refused;
  SystemClock clock;
  const CleanupProcess cleanup;
  const HeldSignals held;
  CHECK(run_child(options, clock, cleanup, held).signal == SIGPIPE);
}

TEST_CASE("child: what cannot be run is distinguished") {
  CHECK(run({"no-such-command"}).result.exit_code() == 127);
  CHECK(run({"/"}).result.exit_code() == 126);
}

}  // namespace mcds::child_test
