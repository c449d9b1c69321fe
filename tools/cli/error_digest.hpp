// The failures of a batch, reported by server and cause: stderr stays short for any batch, and a file has
// them all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/errors.hpp"

namespace mcds {

// Lines of the input, or names of the command line, with the same failure.
struct FailedGroup {
  ErrorCode code;
  std::string message, server;
  bool lines = true;    // otherwise names
  std::string cause{};  // the message without names
  std::uint64_t count = 0, told = 0;
  std::vector<std::string> first{};  // the first three of them

  // `line 7`, `lines 1, 2, 3 and 4997 more`, `b, c`.
  std::string whom() const;
};

class ErrorDigest {
 public:
  void add_line(const Failure& failure, std::uint64_t line, std::uint64_t count);
  void add_name(const Failure& failure, std::string_view name);

  // The messages while more may come: new causes, at most three in all.
  std::vector<FailedGroup> news();
  // The messages at the end: causes of which more is known than was reported, the most frequent first; what
  // is too much is summed up by a last one without a server. At most six.
  std::vector<FailedGroup> rest();
  bool empty() const { return groups_.empty(); }
  // Failures that no group shows by its line or name.
  bool hides_any() const;

 private:
  FailedGroup& group_of(const Failure& failure, bool lines);
  std::vector<FailedGroup> groups_;
  std::size_t last_ = 0;  // where the latest was added: mostly the next one too
  std::size_t news_ = 0;
};

}  // namespace mcds
