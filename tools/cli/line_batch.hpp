// Standard input or a file, line by line, for a verb that takes many lines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/errors.hpp"
#include "tools/cli/exit_status.hpp"
#include "tools/cli/input.hpp"
#include "tools/cli/progress.hpp"

namespace mcds {

class Session;

// A line that fails is reported by its number, with others of the same cause, and stops the others only with `fail_fast`; what was taken before it is sent
// all the same, and so is it when the input cannot be read to its end.
class LineBatch {
 public:
  enum class Answers { each_line, once };  // each_line: a terminal that shows them needs no progress beside
  LineBatch(Session& session, bool fail_fast, Answers answers, const std::string& file = "-");
  virtual ~LineBatch() = default;
  LineBatch(const LineBatch&) = delete;
  LineBatch& operator=(const LineBatch&) = delete;

  // The worst of the lines.
  ExitStatus run();

 protected:
  // Keeps a line, and sends the kept lines when there are enough. Throws Failure if this line is invalid; InvalidInput when
  // none will be.
  virtual void take(std::string line) = 0;
  // Sends the kept lines, if any: at the end, and before waiting for more input.
  virtual void send() = 0;

  // What `check` returns of a line: what would be a misuse of a word of the command line is bad data there.
  template <typename Check>
  static auto checked(const Check& check) {
    try {
      return check();
    } catch (const InvalidInput& failure) {
      throw Failure(ErrorCode::bad_data, failure.what());
    }
  }

  // Of the line being taken, from 1.
  std::size_t line_number() const { return lines_.number(); }
  void fail(const Failure& failure, std::size_t line);
  // Of `count` lines that were sent as one, the first being `line`.
  void fail_together(const Failure& failure, std::size_t line, std::size_t count);
  void note(ExitStatus status) { worst_ = worse(worst_, status); }
  ExitStatus worst() const { return worst_; }
  std::uint64_t failed() const { return failed_; }

  Session& session_;

 private:
  void read();
  std::string summary() const;
  void finish();
  void take_or_fail(std::string line);

  bool fail_fast_;
  LineReader lines_;
  SteadyTime started_;
  std::optional<Progress> progress_;
  ExitStatus worst_ = ExitStatus::ok;
  std::uint64_t failed_ = 0;  // lines
};

}  // namespace mcds
