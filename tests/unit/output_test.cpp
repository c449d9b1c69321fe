// Answers whose reader does not take them in time.
#include "tools/cli/output.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

namespace mcds::output_test {

namespace {

// A run that is over, whose standard output is a pipe of two pages. The first page is full.
class FullPipe {
 public:
  FullPipe() {
    fcntl(pipe_.write_end, F_SETPIPE_SZ, 2 * PIPE_BUF);
    write_all(pipe_.write_end, std::string(PIPE_BUF, ' '));
    dup2(pipe_.write_end, STDOUT_FILENO);
    limits_->set_deadline(SteadyTime());
    output.bound(limits_, changed);
  }
  ~FullPipe() { restore(); }
  FullPipe(const FullPipe&) = delete;
  FullPipe& operator=(const FullPipe&) = delete;

  std::optional<ErrorCode> failure_of(std::string_view answer) {
    const auto failure = attempt([&] { output.answer({}, answer); }).failure();
    return failure ? std::optional(failure->code()) : std::nullopt;
  }
  // Returns what is in the pipe.
  std::string read() const {
    std::string bytes(2 * PIPE_BUF, '\0');
    bytes.resize(static_cast<std::size_t>(::read(pipe_.read_end, bytes.data(), bytes.size())));
    return bytes;
  }
  void restore() { dup2(before_, STDOUT_FILENO); }

  Output output{OutputMode::value};
  std::shared_ptr<std::atomic<bool>> changed = std::make_shared<std::atomic<bool>>();

 private:
  Pipe pipe_ = Pipe::make();
  Descriptor before_{dup(STDOUT_FILENO)};
  std::shared_ptr<RunLimits> limits_ = std::make_shared<RunLimits>();
};

constexpr std::size_t page = PIPE_BUF;

}  // namespace

TEST_CASE("output: the rest of a line that was not read in time goes before the next line") {
  FullPipe run;
  const std::string line(page + 100, 'x');
  const auto first = run.failure_of(line);
  std::string read = run.read();
  const auto second = run.failure_of("next");
  read += run.read();
  run.restore();
  CHECK(first == ErrorCode::try_again);
  CHECK_FALSE(second);
  CHECK(read == std::string(page, ' ') + line + "\nnext\n");
}

TEST_CASE("output: whole lines are written; the others are known, and given up") {
  FullPipe run;
  *run.changed = true;
  run.output.batched(true);
  const std::string line(page - 100, 'x');
  const auto first = run.failure_of(line);
  const std::uint64_t end = run.output.end();
  const auto second = run.failure_of(line);
  const bool drained = run.output.drain();
  run.output.give_up();
  std::string read = run.read();
  const auto third = run.failure_of("third");
  const bool drained_then = run.output.drain();
  run.restore();
  CHECK((!first && !second && !third && !drained && drained_then));
  CHECK(read == std::string(page, ' ') + line + '\n');
  CHECK((run.output.has_written(end) && !run.output.has_written(end + 1)));
  CHECK(run.output.unread().code() == ErrorCode::unknown_outcome);
}

}  // namespace mcds::output_test
