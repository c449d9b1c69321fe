// The copies of a key: the N distinct servers that follow it in its placement, the owner first.
//
// A copy that fails does not keep the others from being written: the outcome lists each copy.
#pragma once

#include "common/base/errors.hpp"
#include "common/primitives/context.hpp"

namespace mcds {

// The result for one copy, for answers that list all of them.
struct CopyOutcome {
  std::size_t server = 0;
  std::optional<std::uint64_t> number = {};  // a counter's value there; nullopt: missing, or not a number
  std::optional<Failure> failure = {};       // then it was not written, or perhaps
  std::optional<bool> yes = {};  // a lock's: whether it is held there; a cache entry's: found, or stored
};

// Throws InvalidInput when the pool has too few servers.
std::vector<std::size_t> copy_servers(const Context& context, std::string_view key);
std::vector<std::size_t> copy_servers(const Placement& placement, std::size_t copies, std::string_view key);

// Replies of each request's copies, in the order of copy_servers.
class CopyReplies {
 public:
  // Of the first request's copies, of the second's …
  CopyReplies(std::vector<Reply> replies, std::size_t copies)
      : replies_(std::move(replies)), copies_(copies) {}
  std::size_t size() const { return replies_.size() / copies_; }
  std::span<Reply> operator[](std::size_t request) {
    return std::span(replies_).subspan(request * copies_, copies_);
  }
  std::span<const Reply> operator[](std::size_t request) const {
    return std::span(replies_).subspan(request * copies_, copies_);
  }
  std::vector<Reply> take_all() && { return std::move(replies_); }

 private:
  std::vector<Reply> replies_;
  std::size_t copies_;
};

// Each of them to each of its copies.
std::vector<Request> to_copies(const Context& context, std::span<const Request> requests);
// One batch.
CopyReplies execute_copies(const Context& context, std::span<const Request> requests);
std::vector<Reply> execute_copies(const Context& context, const Request& request);

// Reads one of them, with its cas unique, and `with_age` what is left of it; not so of an only copy, which
// who reads it does not write: some servers of other makers know no gets.
Request read_of_copy(const Context& context, std::string key, bool with_age = false);

// The failure of `reply`'s copy, or nothing.
CopyOutcome copy_outcome(const Context& context, const Reply& reply);
// Of all copies, with the numbers that stored or hit replies carry.
std::vector<CopyOutcome> copy_outcomes(const Context& context, std::span<const Reply> replies);
// For one key's copies after Replicas::each.
std::vector<CopyOutcome> copy_outcomes(const Context& context, std::string_view key,
                                       std::span<const std::optional<Failure>> failures);

// The reply that stands for all copies when none did what was wanted: one that may have been applied before
// one that was not, and a failure before a miss.
const Reply& telling(std::span<const Reply> replies);

// The failure that decides a write's outcome: nullopt if any copy was written; otherwise a copy that may have
// been comes before those that were not.
std::optional<Failure> failure_of_all(std::span<const std::optional<Failure>> copies);

// Throws the first failure: where every copy must have been written, or read.
void expect_all(std::span<const std::optional<Failure>> copies);

}  // namespace mcds
