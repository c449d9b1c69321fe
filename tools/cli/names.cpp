#include "tools/cli/names.hpp"

#include <algorithm>

#include "tools/cli/line_batch.hpp"
#include "tools/cli/session.hpp"

namespace mcds {

namespace {

constexpr std::size_t window_names = 2048;

class NameLines final : public LineBatch {
 public:
  NameLines(Session& session, const NameTasks& tasks)
      : LineBatch(session, false, Answers::each_line), tasks_(tasks) {}

 private:
  void take(std::string line) override {
    if (line.empty()) return;
    checked([&] { tasks_.check(line); });
    names_.push_back(std::move(line));
    numbers_.push_back(line_number());
    if (names_.size() >= window_names) send();
  }

  void send() override {
    if (names_.empty()) return;
    note(tasks_.act(names_, [&](std::size_t i, const Failure& failure) { fail(failure, numbers_[i]); }));
    names_.clear();
    numbers_.clear();
  }

  const NameTasks& tasks_;
  std::vector<std::string> names_;
  std::vector<std::size_t> numbers_;
};

}  // namespace

ExitStatus for_names(Session& session, const std::vector<std::string>& names, const NameTasks& tasks) {
  if (names == std::vector<std::string>{"-"}) return NameLines(session, tasks).run();
  if (std::find(names.begin(), names.end(), "-") != names.end())
    throw InvalidInput("- reads all names from standard input; give no other names");
  ExitStatus failed = ExitStatus::ok;
  const ExitStatus status = tasks.act(names, [&](std::size_t i, const Failure& failure) {
    session.output().error_of(names[i], names, failure);
    failed = worse(failed, status_of(failure.code()));
  });
  return worse(status, failed);
}

}  // namespace mcds
