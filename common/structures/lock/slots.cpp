#include "common/structures/lock/slots.hpp"

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/structures/lock/value.hpp"

namespace mcds {

namespace {

bool is_slot(std::string_view name) {
  constexpr std::string_view mark = ":slot:";
  const std::size_t at = name.rfind(mark);
  return at != std::string_view::npos && parse_u64(name.substr(at + mark.size())).has_value();
}

std::vector<Lock> locks_of(const Context& context, std::string_view name, std::size_t slots,
                           Duration max_ttl) {
  if (slots == 0 || slots > max_lock_slots) {
    throw InvalidInput("--slots: give a number from 1 to " + std::to_string(max_lock_slots));
  }
  if (is_slot(name)) {
    throw InvalidInput(
        "a lock's name must not end in ':slot:' and a number, which is reserved for slots; use another name");
  }
  std::vector<Lock> locks;
  for (std::size_t slot = 0; slot < slots; ++slot)
    locks.push_back(Lock::of_slot(context, name, slot, max_ttl));
  return locks;
}

}  // namespace

std::size_t slot_of(std::string_view token) {
  const std::size_t point = token.find('.');
  if (point == std::string_view::npos) return 0;
  const auto slot = parse_u64(token.substr(point + 1));
  return slot && *slot < max_lock_slots ? static_cast<std::size_t>(*slot) : 0;
}

std::string slot_suffix(std::size_t slot) {
  return '.' + std::to_string(slot);
}

Failure other_slots(std::size_t asked, std::size_t held, const std::string& server) {
  const auto as_option = [](std::size_t slots) {
    return slots == 1 ? std::string("without --slots") : "with --slots " + std::to_string(slots);
  };
  return {ErrorCode::bad_data,
          "the lock is in use " + as_option(held) + ", not " + as_option(asked) +
              "; every client of a lock must use the same number",
          server};
}

LockSlots::LockSlots(Context context, std::string_view name, std::size_t slots, Duration max_ttl)
    : context_(std::move(context)), name_(name), locks_(locks_of(context_, name, slots, max_ttl)) {}

LockSlots::Answer LockSlots::acquire(Lock::AcquireOptions acquire_options) {
  acquire_options.holder.slots = size();
  locks_.front().check_ttl(acquire_options.ttl);
  tokens_.clear();
  for (const Lock& lock : locks_) tokens_.push_back(lock.new_tokens());
  try {
    Lock::Answer answer = Lock::poll(context_, acquire_options.wait,
                                     [&](bool first) { return try_all(acquire_options, first); });
    return {std::move(answer), answered_};
  } catch (const Interrupted&) {
    for (std::size_t slot = 0; slot < size(); ++slot) locks_[slot].withdraw(tokens_[slot]);
    throw;
  } catch (const UnknownOutcome& failure) {
    // The message names the tokens of one slot only.
    std::string message = failure.what();
    for (std::size_t slot = 0; slot < size(); ++slot) {
      if (slot == answered_ || tokens_[slot].spent.empty()) continue;
      message += "; the same holds for --token " + tokens_[slot].text();
    }
    throw UnknownOutcome(message, failure.server());
  }
}

std::vector<Lock::Shown> LockSlots::show() const {
  std::vector<Lock::Shown> all = Lock::show(context_, locks_);
  for (Lock::Shown& shown : all) shown.name = name_;
  return all;
}

Lock::Answer LockSlots::try_all(const Lock::AcquireOptions& acquire_options, bool first) {
  if (size() == 1) return locks_.front().try_now(acquire_options, tokens_.front(), first);
  const std::vector<Lock::Shown> shown = show();
  for (const Lock::Shown& one : shown) {
    const std::size_t slots = slots_of(one.holder).value_or(size());
    if (one.failure && one.failure->code() == ErrorCode::bad_data) raise(*one.failure);
    if (one.held && slots != size())
      throw other_slots(size(), slots, context_.cluster.address_of(one.server));
  }
  std::optional<Lock::Answer> busy;
  std::optional<Failure> failed;
  bool unknown = false;
  for (const std::size_t slot : order()) {
    const Lock::Shown& seen = shown[slot];
    const bool pending = !tokens_[slot].spent.empty();
    if (!pending && seen.failure) {
      if (!failed) failed = seen.failure;
      continue;
    }
    if (!unknown) answered_ = slot;
    if (!pending && seen.held) {
      busy = {std::nullopt, seen.holder, seen.server, seen.copies};
      continue;
    }
    try {
      Lock::Answer answer = locks_[slot].try_now(acquire_options, tokens_[slot], !pending);
      if (answer.lease) {
        answered_ = slot;
        withdraw_others();
        return answer;
      }
      busy = std::move(answer);
    } catch (const Failure& failure) {
      if (!may_pass(failure.code())) throw;
      const bool is_unknown = failure.code() == ErrorCode::unknown_outcome;
      if (!failed || (is_unknown && !unknown)) failed = failure;
      unknown = unknown || is_unknown;
    }
  }
  if (failed) raise(*failed);
  return std::move(*busy);
}

// Returns the slots with an unknown outcome first, then the others from a random one on.
std::vector<std::size_t> LockSlots::order() const {
  std::vector<std::size_t> slots;
  const auto start = static_cast<std::size_t>(context_.random.below(size()));
  for (std::size_t i = 0; i < size(); ++i) slots.push_back((start + i) % size());
  std::ranges::stable_partition(slots, [&](std::size_t slot) { return !tokens_[slot].spent.empty(); });
  return slots;
}

// Releases all slots but one. A slot that cannot be released now expires.
void LockSlots::withdraw_others() {
  for (std::size_t slot = 0; slot < size(); ++slot) {
    if (slot != answered_) static_cast<void>(attempt([&] { locks_[slot].withdraw(tokens_[slot]); }));
  }
}

}  // namespace mcds
