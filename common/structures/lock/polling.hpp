// Waiting for a lock: attempt after attempt, with jitter.
#pragma once

#include <functional>

#include "common/structures/lock/lock.hpp"

namespace mcds {

// Whether waiting may help.
bool may_pass(const Failure& failure);

// Until an attempt has a lease or `wait` is over. While waiting, failures that may pass are waited for too.
// `first` is true for the first attempt only.
Lock::Answer poll(const Context& context, Duration wait,
                  const std::function<Lock::Answer(bool first)>& attempt);

}  // namespace mcds
