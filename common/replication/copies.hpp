// The copies of a key are on the N distinct servers that follow it in its placement, the owner first.
//
// A copy that fails does not keep the others from being written. The outcome lists each copy.
#pragma once

#include "common/base/errors.hpp"
#include "common/primitives/context.hpp"

namespace mcds {

// The result for one copy of a key. Answers that list all copies have one for each.
struct CopyOutcome {
  std::size_t server = 0;
  std::optional<std::uint64_t> number = {};  // a counter's value here; nullopt: missing, or not a number
  std::optional<Failure> failure = {};       // why the copy was not written, or may not have been
  std::optional<bool> yes = {};              // a lock is held there; a cache entry was found or stored
};

// Returns the servers of the key's copies, the owner first. Throws InvalidInput if there are too few.
std::vector<std::size_t> copy_servers(const Context& context, std::string_view key);
std::vector<std::size_t> copy_servers(const Placement& placement, std::size_t copies, std::string_view key);

// The replies for the copies of each request, in the order of copy_servers.
class CopyReplies {
 public:
  // `replies` has all copies of the first request, then those of the second, and so on.
  CopyReplies(std::vector<Reply> replies, std::size_t copies)
      : replies_(std::move(replies)), copies_(copies) {}
  std::size_t size() const { return replies_.size() / copies_; }
  std::span<Reply> operator[](std::size_t request) {
    return std::span(replies_).subspan(request * copies_, copies_);
  }
  std::span<const Reply> operator[](std::size_t request) const {
    return std::span(replies_).subspan(request * copies_, copies_);
  }

 private:
  std::vector<Reply> replies_;
  std::size_t copies_;
};

// Returns each request once per copy, directed to that copy's server.
std::vector<Request> to_copies(const Context& context, std::span<const Request> requests);
// Sends all requests as one batch.
CopyReplies execute_copies(const Context& context, std::span<const Request> requests);

// Returns the request that reads one copy with its cas token, and with `with_age` its remaining ttl. A single
// copy is read by a plain get: its reader does not write it, and some other servers have no gets.
Request read_of_copy(const Context& context, std::string key, bool with_age = false);

// Returns the outcome of one copy, with the failure of `reply` if it has one.
CopyOutcome copy_outcome(const Context& context, const Reply& reply);

}  // namespace mcds
