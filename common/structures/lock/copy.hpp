// One server's copy of a lock: the exchanges that take, renew and free it, each a small state machine over
// requests and replies. They do no I/O themselves, so that any number of copies can be driven side by side,
// one batch per round (see drive()). lock.hpp has the layout and the promises.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/primitives/context.hpp"

namespace mcds {

// `<token> <holder as JSON>`, as stored.
struct LockValue {
  std::string token;
  std::string holder;  // a JSON object; empty when another program left none

  // Total: whatever is stored under a lock's key holds the lock.
  static LockValue parse(std::string_view stored);
};

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

// The add, with the fence's increment in the same trip if wanted. A lost reply is read back: our token means
// ours.
class AcquireCopy final : public LockExchange {
 public:
  struct Plan {
    std::size_t server;
    std::string key, token, value;
    std::string fence_key;  // empty: no fence
    const Clock& clock;     // a missing fence starts from its microseconds
    Exptime exptime = Exptime::never();
    bool fence_with_add = true;  // otherwise only after the add succeeded
  };
  enum class Result { pending, won, busy, failed };

  explicit AcquireCopy(Plan plan) : plan_(std::move(plan)) {}
  std::vector<Request> requests() const override;
  void take(std::span<const Reply> replies, SteadyTime sent) override;

  Result result() const { return result_; }
  std::size_t server() const { return plan_.server; }
  // Won: its stamp, if the server told it, and when the add went out that our time counts from.
  const std::optional<CasUnique>& cas() const { return cas_; }
  SteadyTime counts_from() const { return counts_from_; }
  // Won by reading our token, not by the answer to an add.
  bool read_back() const { return read_back_; }
  // Won: the fencing token. When there is none although wanted, failure() says why.
  const std::optional<std::uint64_t>& fence() const { return fence_; }
  // Busy: what is stored, if it could be read.
  const std::optional<LockValue>& rival() const { return rival_; }
  // Failed, or without a fence.
  const Reply& failure() const { return failure_; }
  // An add may have been applied without our knowing, or may yet be.
  bool in_doubt() const { return in_doubt_; }

 private:
  enum class Step { add, read, fence, settled };
  void take_add(std::span<const Reply> replies);
  void take_read(const Reply& reply);
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
  bool read_back_ = false;
  int adds_ = 0;
  int fences_ = 0;
};

// Stores `value` with a new exptime over what carries our token, by cas.
class RenewCopy final : public LockExchange {
 public:
  enum class Result { pending, renewed, lost, contended, failed };

  // Without `value` what is stored stays. `cas`: of our value on this connection, if known: saves the read.
  RenewCopy(std::size_t server, std::string key, std::string token, std::optional<std::string> value,
            Exptime exptime, std::optional<CasUnique> cas);
  std::vector<Request> requests() const override;
  void take(std::span<const Reply> replies, SteadyTime sent) override;

  Result result() const { return result_; }
  const std::optional<CasUnique>& cas() const { return cas_; }
  SteadyTime counts_from() const { return sent_; }
  // Lost: who has it instead, if anybody.
  const std::optional<LockValue>& rival() const { return rival_; }
  const Reply& failure() const { return failure_; }

 private:
  void take_read(const Reply& reply);
  void take_cas(const Reply& reply);
  void fail(const Reply& reply);

  std::size_t server_;
  std::string key_;
  std::string token_;
  std::optional<std::string> value_;
  Exptime exptime_;
  std::optional<CasUnique> cas_;
  std::optional<LockValue> rival_;
  Result result_ = Result::pending;
  SteadyTime sent_{};
  Reply failure_;
  int attempts_ = 0;
  int unanswered_reads_ = 0;
};

// Compare-and-delete of what carries our token; without a token, of whatever is there.
class ReleaseCopy final : public LockExchange {
 public:
  enum class Result { pending, released, not_owner, not_held, contended, failed };

  ReleaseCopy(std::size_t server, std::string key, std::optional<std::string> token,
              std::optional<CasUnique> cas);
  std::vector<Request> requests() const override;
  void take(std::span<const Reply> replies, SteadyTime sent) override;

  Result result() const { return result_; }
  // What was read last: whom it belonged to, or belongs to.
  const std::optional<LockValue>& value() const { return value_; }
  const Reply& failure() const { return failure_; }

 private:
  void take_read(const Reply& reply);
  void take_remove(const Reply& reply);

  std::size_t server_;
  std::string key_;
  std::optional<std::string> token_;
  std::optional<CasUnique> cas_;
  std::optional<LockValue> value_;
  Result result_ = Result::pending;
  Reply failure_;
  bool in_doubt_ = false;
  int attempts_ = 0;
  int unanswered_reads_ = 0;
};

}  // namespace mcds
