// One change of a counter's value, plain or exact, by the cas loop.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/primitives/cas_update.hpp"
#include "common/primitives/several/kept.hpp"
#include "common/structures/counter/record.hpp"

namespace mcds {

struct CounterUpdateOptions {
  bool create_exact = false;  // what a missing counter becomes
  bool exact_only = false;    // a plain one is InvalidInput
  bool new_expiry = false;    // `ttl` also replaces the expiry of an existing counter
  std::optional<Duration> ttl = {};
  Kept* kept = nullptr;  // null: there is one copy, whatever is found
};

struct CounterUpdateResult {
  std::optional<std::uint64_t> before;  // nullopt: was missing
  std::optional<std::uint64_t> after;   // nullopt: is missing
  bool exact = false;
  std::size_t server = 0;
};

class CounterUpdate {
 public:
  // What becomes of the present value (nullopt: missing); nullopt leaves it alone.
  using Next = std::function<std::optional<std::uint64_t>(std::optional<std::uint64_t> now)>;

  // `name` is for messages only.
  CounterUpdate(const Context& context, std::string name, std::string key, Next next,
                CounterUpdateOptions options)
      : context_(context),
        name_(std::move(name)),
        key_(std::move(key)),
        next_(std::move(next)),
        options_(options) {}

  // `next` is applied once or not at all; UnknownOutcome if that is unknown.
  CounterUpdateResult run();

 private:
  // What one round tried to write; the round's id is in the record if and only if it was applied.
  struct Attempt {
    std::string id;
    std::uint64_t changes = 0;  // of the record it started from; 0: created
    Observed observed;
    CounterUpdateResult result;
    std::string written;
  };

  std::optional<Write> decide(const Observed& observed);
  bool must_look_again(const Observed& observed);
  std::optional<Write> change_missing(const Observed& observed);
  std::optional<Write> change_exact(const Observed& observed, const CounterRecord& record);
  std::optional<Write> change_plain(const Observed& observed);
  std::optional<Write> leave(const Observed& observed, std::optional<std::uint64_t> value, bool exact);
  Write attempt(const Observed& observed, CounterRecord record, CounterUpdateResult result);
  Write noted(Write write);
  void check_unchanged(const Observed& observed) const;
  void check_conclusive(const CounterRecord& record) const;
  [[noreturn]] void give_up() const;
  Exptime plain_exptime(const Observed& observed) const;

  const Context& context_;
  std::string name_;
  std::string key_;
  Next next_;
  CounterUpdateOptions options_;
  std::vector<Attempt> attempts_;
  CounterUpdateResult result_;
  bool again_ = false;
};

// With one copy, of what is under the key. True: it was held, and is to be read again.
bool thaw_single(const Context& context, Kept& kept, const std::string& key, const Reply& seen);
// Throws what says that an earlier version kept it in several copies. Flags of one copy tell that there may
// be others.
void expect_only_copy(Kept& kept, const std::string& name, const Reply& seen);
// Removes what was created, if it is still the same.
bool take_back(const Context& context, const std::string& key, const std::string& value);

}  // namespace mcds
