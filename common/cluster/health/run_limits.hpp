// What bounds a run of the program as a whole, and how it treats servers that do not answer. All its clusters
// share one, threads included.
#pragma once

#include <algorithm>
#include <atomic>

#include "common/base/clock.hpp"

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

  // After it nothing is waited for, and nothing sent.
  SteadyTime deadline() const { return SteadyTime(Duration(deadline_)); }
  void set_deadline(SteadyTime when) { deadline_ = when.time_since_epoch().count(); }
  bool over(SteadyTime now) const { return now >= deadline(); }
  SteadyTime earlier(SteadyTime when) const { return std::min(when, deadline()); }

 private:
  std::atomic<Sick> sick_ = Sick::skip;
  std::atomic<Duration::rep> deadline_ = Duration::max().count();
};

}  // namespace mcds
