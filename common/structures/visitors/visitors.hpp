// Visitors counts hits per period, and visitors with an id once per period. It is a double buffer of
// counters: one is filled while the one before it is read. Its contract is at the end of this file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/errors.hpp"
#include "common/primitives/context.hpp"

namespace mcds {

class Visitors {
 public:
  // Throws InvalidInput unless `period` is a whole number of seconds, at least 1, and the name is usable.
  Visitors(const Context& context, std::string_view name, Duration period);

  struct Hit {
    bool counted = true;        // false: this id was already counted in this period
    std::uint64_t current = 0;  // the running period's count; valid only if counted
    WallTime period_started_at;
    std::size_t server = 0;  // of the counter
  };
  // Makes hits count in the period of `at`, and value() return that period, instead of the running and the
  // last one. Throws InvalidInput unless it is one of these two; others are not kept.
  void use_period_at(WallTime at);

  // Counts a hit. Throws NotApplied (not counted) and UnknownOutcome (may have been counted).
  Hit hit();
  Hit hit(std::string_view id);

  // Counts each id once and returns one answer per id; `current` is the count after the batch. If the server
  // of an id fails, its answer has the failure, and the other ids are counted anyway.
  struct IdHit : Hit {
    std::optional<Failure> failure;
  };
  std::vector<IdHit> hit(std::span<const std::string> ids);

  struct Value {
    std::uint64_t visitors = 0;  // of the last full period
    std::uint64_t current = 0;   // of the running one so far
    WallTime period_started_at;  // of the last full period
    double elapsed = 0;          // of the running period, 0 … 1
    std::size_t server = 0;      // of the last full period's counter

    // Returns the estimated hits of the T seconds before now: the last period's share that still counts, plus
    // the running period. For evenly spread hits the standard error is that of a binomial draw; its mean over
    // a period is 0.41 sqrt(mean).
    double estimate() const;
    double standard_error() const;
  };
  Value value();

  // Returns `visitors` with normal noise of `fraction` times its value, for display.
  std::uint64_t jittered(double visitors, double fraction);

  static constexpr Duration usual_period = std::chrono::minutes(5);
  // Returns the period in use under this name, or the usual one if none is. If there are several, throws
  // InvalidInput that names them.
  static Duration period_in_use(const Context& context, std::string_view name);

  // Removes the current counts, of every period in use, and the record of these periods. The marks of counted
  // ids expire with their period. Returns false if there was nothing. First reads everything, and if it finds
  // another program's value throws CorruptData and removes nothing. Removes by key and not by cas token,
  // because hits change what was read.
  static bool drop(const Context& context, std::string_view name);

  Duration period() const { return std::chrono::seconds(period_s_); }
  // Returns the keys of the active and the shadow counter as of now.
  std::vector<std::string> keys() const;

 private:
  std::int64_t period_of(WallTime time) const {
    return std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count() / period_s_;
  }
  WallTime start_of(std::int64_t period) const { return WallTime(std::chrono::seconds(period * period_s_)); }
  std::string key_of(std::int64_t period) const { return base_ + ':' + std::to_string(period); }
  Exptime exptime_of(std::int64_t period) const;
  struct Claim;
  enum class ClaimState { open, ours, taken, failed };
  Hit count(std::int64_t period, std::uint64_t hits);
  std::vector<Claim> claim(std::int64_t period, std::span<const std::string> ids);
  // Throws InvalidInput if the period that was asked for is not kept any more.
  std::int64_t period_to_hit() const;
  void note_period(std::int64_t period) const;
  void take_back(std::span<Claim* const> claims, const Failure& why);
  void take_added(Claim& one, const Reply& reply) const;

  Context context_;
  std::string conf_;  // visitors:<name>:conf
  std::string base_;  // visitors:<name>:<T>
  std::int64_t period_s_;
  std::optional<std::int64_t> fixed_;  // set by use_period_at()
};

}  // namespace mcds

// Key layout
//   visitors:<name>:<T>:<p>          decimal digits: the hits of period p = floor(now / T), T in whole
//                                    seconds
//   visitors:<name>:<T>:<p>:<id>     `V<16 random hex digits>`: this visitor was counted in period p
//   visitors:<name>:conf             the T in use, except 300: common/primitives/active_variants.hpp
//   Example: name `site`, T = 300, at UNIX time 1795234133: hits go to visitors:site:300:5984113 (the
//   shadow), and `value` reads visitors:site:300:5984112 (the active one).
//   Every exptime is the end of period p + 1, plus 2 s, plus half a period, counted from the boundary.
//
// Invariants
//   The number of the period is in the key, so a period never contains hits of another, whatever the traffic
//   and skew. (Two alternating keys, p mod 2, would mix as soon as a clock is behind.)
//   An acknowledged hit of period p, by the client's clock, is in key p until every clock less than half a
//   period away has left period p + 1, even a single hit in the first or last microsecond of its period.
//   A visitor with an id is counted at most once per period: only the hit whose `add` is stored counts.
//
// Round trips (steady / worst)
//   hit 1 / 1; with an id 2, or 1 if already counted / 2 more per lost reply, at most three times; value 1 /
//   1. A batch of ids costs as much as one id. A server without meta commands takes 3 for the first hit of a
//   period. The first hit of a period takes 3 more if T is not 300, and value without a T takes 1 more if a T
//   other than 300 is in use.
//
// When things fail
//   Crash between an id's add and the count: that visitor is not counted in this period.
//   The counter cannot be reached: the marks of the hit are removed, so that the next attempt counts (69); 80
//   if that fails. A client that met such a mark meanwhile got the answer that the visitor is counted.
//   The conf key cannot be written: the first hit of a T that is neither in it nor was counted in the period
//   before is refused (NotApplied, with the code `refused` if the server answers). A T whose line is lost is
//   written again by the first hit of the next period; until then a reader has to give it. A conf key that
//   cannot be read fails a reader without a T.
//   Lost reply: an add is looked up by its digits and repeated with the same digits. The outcome of a count
//   stays unknown (UnknownOutcome), because a repetition might count twice.
//   Eviction, flush_all, restart: the count starts again at 0, undetected; an evicted id counts again.
//   Skew: a hit belongs to the period of its client's clock; below half a period nothing is lost.
//
// Source
//   The shadow and active counter of "Counting visitors" in the memcached articles, with the period in the
//   name.
