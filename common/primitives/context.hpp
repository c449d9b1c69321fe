// Context holds everything outside itself that a structure may use.
#pragma once

#include "common/base/clock.hpp"
#include "common/base/errors.hpp"
#include "common/base/json.hpp"
#include "common/base/random.hpp"
#include "common/cluster/cluster.hpp"

namespace mcds {

struct Context {
  Cluster& cluster;
  Clock& clock;
  Random& random;
  std::string key_prefix;  // the namespace, which precedes every key and is hashed with it
  std::size_t copies = 1;  // of each key, on distinct servers

  Context in_copies(std::size_t number) const { return {cluster, clock, random, key_prefix, number}; }
};

// Repeats a query until it is answered or the wait is over. The pauses grow and have jitter, so that clients
// that wait together do not keep querying together.
class Polling {
 public:
  // `wait` may be Duration::max() to wait without limit.
  Polling(const Context& context, Duration wait, Duration first, Duration slowest)
      : context_(context), wait_(wait), pause_(first), slowest_(slowest) {}

  bool over() const { return waited() >= wait_; }
  // Sleeps for the next pause, but not beyond the end of the wait.
  void pause() {
    const double jittered = static_cast<double>(pause_.count()) * (0.5 + context_.random.unit());
    const Duration left = std::max(wait_ - waited(), Duration::zero());
    const Duration pause = std::min(left, Duration(static_cast<Duration::rep>(jittered)));
    context_.clock.sleep_for(pause);
    pause_ = std::min(pause_ + pause_ / 2, slowest_);
  }

 private:
  Duration waited() const { return context_.clock.steady() - started_; }

  const Context& context_;
  Duration wait_, pause_, slowest_;
  SteadyTime started_ = context_.clock.steady();
};

// Only the functions below depend on the number of copies. A structure has the same code for every number.

// The highest number of copies that is searched if nothing states the number.
constexpr std::size_t max_copies = 16;

// Returns true if there is a single copy. Use this where a single copy is stored differently or saves time or
// a round trip; where only an amount differs, use value_if_replicated().
constexpr bool has_single_copy(std::size_t copies) {
  return copies < 2;
}

// Returns `value` if there are several copies, else an empty value. Several copies need a number in their
// keys, additional requests, and tombstones that last.
template <typename T>
T value_if_replicated(std::size_t copies, T value) {
  if (has_single_copy(copies)) value = T{};
  return value;
}

// Throws InvalidInput with the message `why` unless there is a single copy.
inline void require_single_copy(std::size_t copies, std::string_view why) {
  if (!has_single_copy(copies)) throw InvalidInput(std::string(why));
}

// Returns "1 copy", "3 copies", and so on.
inline std::string copy_count_text(std::size_t copies) {
  return std::to_string(copies) + (has_single_copy(copies) ? " copy" : " copies");
}

// Adds the field `copies` unless there is a single copy.
inline void add_number_of_copies(JsonObject& line, std::size_t copies) {
  if (!has_single_copy(copies)) line.number("copies", copies);
}

}  // namespace mcds
