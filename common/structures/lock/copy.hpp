// One server's copy of a lock: the exchanges that take, renew and free it, each a small state machine over
// requests and replies. They do no I/O, so any number of copies can be driven in parallel, one batch per
// round (see drive()). lock.hpp describes the layout and the guarantees.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/primitives/context.hpp"
#include "common/structures/lock/value.hpp"

namespace mcds {

class LockExchange {
 public:
  virtual ~LockExchange() = default;
  // What to send next, to one server; empty once settled.
  virtual std::vector<Request> requests() const = 0;
  // The replies to requests(), which were sent at `sent`.
  virtual void take(std::span<const Reply> replies, SteadyTime sent) = 0;
};

// Runs exchanges to their end, all of them in one batch per round.
void drive(Context& context, std::span<LockExchange* const> exchanges);

// Tokens of one acquire. An add whose reply was lost may be applied at any time, even after the lock was won,
// lost and another's, so it is never repeated with its token. A token that is read was therefore stored since
// its add without a break, and a client that renews by it has held the lock all the time.
struct AddTokens {
  std::string next;                // of the next add
  std::vector<std::string> spent;  // of adds that may have been applied, or may yet be; the latest last
  bool vanished = false;    // an add without a reply left nothing: another add, with a new token, may succeed
  std::string suffix = {};  // of every token: the slot, where the lock has several

  // What `next` may stand for is not known any more.
  void spend(Random& random);
  bool is_ours(std::string_view token) const;
  // For messages: a lock that turns up later is released with one of these.
  std::string text() const;
};
std::string new_lock_token(Random& random);

// When a fence that began with this number ends: a week behind the moment that the number is, so that the
// present time, with which the next begins, is above all that were drawn.
Exptime fence_end(std::uint64_t microseconds);

// The add, with the fence's increment in the same trip if wanted. A lost reply is read back: our token means
// ours, one that was spent is exchanged for it by cas.
class AcquireCopy final : public LockExchange {
 public:
  struct Plan {
    std::size_t server;
    std::string key;
    AddTokens tokens;
    std::string value;      // begins with the next token
    std::string fence_key;  // empty: no fence
    const Clock& clock;     // a missing fence starts from its microseconds
    Exptime exptime = Exptime::never();
    bool fence_with_add = true;  // otherwise only after the add succeeded
    bool adds_again =
        true;  // what is gone when it is read; not where the server's vote was read behind the add
  };
  enum class Result { pending, won, busy, failed };

  explicit AcquireCopy(Plan plan) : plan_(std::move(plan)) {}
  std::vector<Request> requests() const override;
  void take(std::span<const Reply> replies, SteadyTime sent) override;

  Result result() const { return result_; }
  std::size_t server() const { return plan_.server; }
  // Won: its stamp, if the server returned it, and when the add was sent, from which our time counts.
  const std::optional<CasUnique>& cas() const { return cas_; }
  SteadyTime counts_from() const { return counts_from_; }
  // Won: the fencing token. If it is missing although requested, failure() says why.
  const std::optional<std::uint64_t>& fence() const { return fence_; }
  // Busy: what is stored, if it could be read.
  const std::optional<LockValue>& rival() const { return rival_; }
  // Failed, or without a fence.
  const Reply& failure() const { return failure_; }
  // An add may have been applied unnoticed, or may still be.
  bool in_doubt() const { return in_doubt_; }
  // Failed: nothing was there when an add in doubt was read back.
  bool vanished() const { return vanished_; }

 private:
  enum class Step { add, read, exchange, fence, settled };
  void take_add(std::span<const Reply> replies);
  void take_read(const Reply& reply);
  void take_exchange(const Reply& reply);
  void take_fence(const Reply& reply);
  void won(CasUnique cas);
  void settle(Result result);
  Request fence_request() const;

  Plan plan_;
  Step step_ = Step::add;
  Result result_ = Result::pending;
  SteadyTime counts_from_{};
  std::optional<CasUnique> cas_;
  std::optional<std::uint64_t> fence_;
  std::optional<LockValue> rival_;
  Reply failure_;
  bool in_doubt_ = false;
  bool vanished_ = false;
  CasUnique spent_cas_{};
  int adds_ = 0;
  int exchanges_ = 0;
  int fences_ = 0;
};

// What has our token, by its cas unique: stored with a new exptime, or removed.
class HeldCopy final : public LockExchange {
 public:
  struct Plan {
    std::size_t server;
    std::string key;
    std::optional<std::string> token;           // nullopt: whatever is there
    std::optional<CasUnique> cas = {};          // of it on this connection, if known; it saves the read
    std::optional<Exptime> renewed_until = {};  // nullopt: it is removed
    std::optional<std::string> value = {};      // to be stored; nullopt: what is there
    std::size_t copies = 1;                     // of the lock
  };
  // The later one of two copies is that of the lock.
  enum class Result { pending, contended, gone, not_ours, failed, done, other_number };

  explicit HeldCopy(Plan plan);
  std::vector<Request> requests() const override;
  void take(std::span<const Reply> replies, SteadyTime sent) override;

  Result result() const { return result_; }
  bool is_lost() const { return result_ == Result::gone || result_ == Result::not_ours; }
  std::size_t server() const { return plan_.server; }
  // Done: the new stamp, if the server returned it, and when it was sent.
  const std::optional<CasUnique>& cas() const { return plan_.cas; }
  SteadyTime counts_from() const { return sent_; }
  // What was read last: the former or present holder.
  const std::optional<LockValue>& value() const { return value_; }
  const Reply& failure() const { return failure_; }

 private:
  void take_read(const Reply& reply);
  void take_change(const Reply& reply);

  Plan plan_;
  std::optional<LockValue> value_;
  Result result_ = Result::pending;
  SteadyTime sent_{};
  Reply failure_;
  bool removal_in_doubt_ = false;
  int attempts_ = 0;
  int unanswered_reads_ = 0;
};

}  // namespace mcds
