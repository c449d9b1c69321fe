// What bounds a run of the program as a whole, and how it treats servers that do not answer. All its clusters
// share one, threads included.
#pragma once

#include <algorithm>
#include <atomic>
#include <string>

#include "common/base/clock.hpp"
#include "common/base/errors.hpp"

namespace mcds {

class RunLimits {
 public:
  enum class Sick {
    skip,        // its requests fail at once until a trial succeeds
    hold,        // the same, after they were held for one timeout
    try_always,  // as if it were well: what must not be left undone
  };
  Sick sick() const { return sick_; }
  void treat(Sick sick) { sick_ = sick; }

  // After it nothing is waited for, and nothing sent. Once the run is interrupted, it has passed.
  SteadyTime deadline() const { return signal_ != 0 ? SteadyTime() : SteadyTime(Duration(deadline_)); }
  void set_deadline(SteadyTime when) { deadline_ = when.time_since_epoch().count(); }
  // A signal ends the run as its deadline does: what is under way is finished, nothing else is begun.
  void expect_signals() { expects_signals_ = true; }
  void interrupt(int signal) { signal_ = signal; }  // in a signal's handler
  int signal() const { return signal_; }            // that has interrupted it, or 0
  // Returns whether a deadline or a signal may end the run before its work is done.
  bool may_be_cut() const { return expects_signals_ || deadline() != SteadyTime::max(); }
  bool over(SteadyTime now) const { return now >= deadline(); }
  SteadyTime earlier(SteadyTime when) const { return std::min(when, deadline()); }
  std::string why_over() const { return signal_ != 0 ? "interrupted" : "the deadline has passed"; }
  Failure failure(const std::string& server = {}) const {
    return {ErrorCode::try_again, "not finished: " + why_over(), server};
  }
  // Throws it once it is over.
  void check(SteadyTime now) const {
    if (over(now)) throw failure();
  }

 private:
  std::atomic<Sick> sick_ = Sick::skip;
  std::atomic<Duration::rep> deadline_ = Duration::max().count();
  std::atomic<int> signal_ = 0;
  std::atomic<bool> expects_signals_ = false;
};

}  // namespace mcds
