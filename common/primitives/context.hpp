// Everything that a structure may use of the outside world.
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
  std::string key_prefix;  // the namespace: put before every key and hashed with it
  std::size_t copies = 1;  // of each key, on that many distinct servers

  Context in_copies(std::size_t number) const { return {cluster, clock, random, key_prefix, number}; }
};

// Asking again and again until there is an answer or a wait is over. The pauses grow, and have jitter, so
// that those who wait together do not go on asking together.
class Polling {
 public:
  // wait: Duration::max() for ever.
  Polling(const Context& context, Duration wait, Duration first, Duration slowest)
      : context_(context), wait_(wait), pause_(first), slowest_(slowest) {}

  bool over() const { return waited() >= wait_; }
  // At most until the wait is over.
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

// In how many copies something is kept, and what follows from that number. Whatever one copy lacks beside
// several is asked here, by what it means; a structure has one code for every number.

// If nothing says how many copies there are, so many are looked for at most.
constexpr std::size_t most_copies = 16;

// The one question. To be asked where one copy is stored otherwise, or would cost a trip or time more; what
// is only more or less of something is of_several().
constexpr bool is_only(std::size_t copies) {
  return copies < 2;
}

// What there is because of other copies, which an only one has not: its number in its key, what is asked
// beside it, for how long word of what others may have missed stays.
template <typename T>
T of_several(std::size_t copies, T value) {
  if (is_only(copies)) value = T{};
  return value;
}

// For what only one copy can do. Throws InvalidInput that says `why`.
inline void expect_only(std::size_t copies, std::string_view why) {
  if (!is_only(copies)) throw InvalidInput(std::string(why));
}

// "1 copy", "3 copies".
inline std::string in_words(std::size_t copies) {
  return std::to_string(copies) + (is_only(copies) ? " copy" : " copies");
}

// The field `copies`, which an only one has not.
inline void add_number_of_copies(JsonObject& line, std::size_t copies) {
  if (!is_only(copies)) line.number("copies", copies);
}

}  // namespace mcds
