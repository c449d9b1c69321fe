// Passes a child's output on to ours as it comes, and keeps a copy.
//
// It never blocks while the child runs: a slow reader of ours slows the child down, as it would without
// us. A closed or full stdout does not end the copy: the child continues as long as the copy is useful.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "tools/cli/child.hpp"

namespace mcds {

class Relay final : public ChildOutput {
 public:
  // Keeps at most `max_kept` bytes of both streams together.
  explicit Relay(std::size_t max_kept) : max_kept_(max_kept) {}

  bool take(int stream, std::string_view bytes) override;
  int waits_for(int stream) const override;
  void proceed(int stream) override;

  // Whether the copies are complete.
  bool complete() const { return !overflow_; }
  // Stream 1 or 2.
  std::string& kept(int stream) { return of(stream).kept; }

  // The rest, once the child has ended. Throws ClosedPipe or Failure(output_failed) for stdout as Output
  // does, also when it happened while the child ran.
  void finish();

 private:
  struct Stream {
    std::string pending;  // from `passed` on, not yet passed on
    std::size_t passed = 0;
    std::string kept;
    int error = 0;  // of our side: nothing more can be passed on
  };
  Stream& of(int stream) { return streams_[stream == 1 ? 0 : 1]; }
  const Stream& of(int stream) const { return streams_[stream == 1 ? 0 : 1]; }
  void keep(Stream& stream, std::string_view bytes);

  std::size_t max_kept_;
  bool overflow_ = false;
  std::array<Stream, 2> streams_;
};

}  // namespace mcds
