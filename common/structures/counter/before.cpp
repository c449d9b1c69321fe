// Counters in several copies as versions before 0.3 kept them, under the key of one copy:
//   plain   Digits in every copy, of which the largest counts. The flags are the number of its life, which
//           every set began anew: only copies of the newest count, and 0 is the first or any. 0 or nothing
//           with flags of 0x80000000 more was removed.
//   exact   C2 <life> <life>:<changes>:<sum>[,…] <ids> [@<expiry>] *<checksum>, or C1: each life counts as
//           the copy has it that knows most changes of it; one of 2^63 changes or more is over. The flags as
//           above.
#include <algorithm>
#include <map>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/primitives/record.hpp"
#include "common/primitives/several/versions.hpp"
#include "common/structures/counter/recopy.hpp"

namespace mcds {

namespace {

constexpr std::uint32_t life_bits = 0x7fffffff;
constexpr std::uint64_t over = std::uint64_t{1} << 63;

using Lives = std::map<std::string, CounterRecord::Count, std::less<>>;

// Of C2: its expiry; false: it is none.
bool read_lives(std::string_view value, Lives& into, std::optional<std::int64_t>& expires_at) {
  const auto body = unseal(value);
  if (!body) return false;
  const auto words = split(*body, ' ');
  if (words.size() < 4 || words.size() > 5 || words[0] != "C2") return false;
  for (const std::string_view entry : split(words[2], ',')) {
    const auto parts = split(entry, ':');
    const auto changes = parts.size() == 3 ? parse_u64(parts[1]) : std::nullopt;
    const auto sum = parts.size() == 3 ? parse_u64(parts[2]) : std::nullopt;
    if (!changes || !sum) return false;
    into[std::string(parts[0])].learn({*changes, *sum});
  }
  if (words.size() == 5) expires_at = parse_i64(words[4].substr(1));
  return true;
}

std::uint32_t life_of(const CounterCopyOfBefore& copy) {
  return std::max<std::uint32_t>(copy.flags & life_bits, 1);
}

}  // namespace

std::optional<CounterRecord> record_of_before(const std::string& name,
                                              const std::vector<CounterCopyOfBefore>& copies) {
  std::uint32_t newest = 0;
  for (const CounterCopyOfBefore& copy : copies) newest = std::max(newest, life_of(copy));
  CounterRecord record;
  CounterRecord::Base& base = record.base;
  base.number = 1;
  Lives lives;
  bool exact = false;
  std::optional<std::uint64_t> plain;
  for (const CounterCopyOfBefore& copy : copies) {
    const auto number = plain_number(copy.value);
    const bool counts = life_of(copy) == newest || (copy.flags == 0 && !number);
    if (!counts || is_removal(copy.value, copy.flags)) continue;
    if (number) {
      plain = std::max(plain.value_or(0), *number);
    } else if (const auto single = CounterRecord::parse(copy.value, 1)) {
      exact = true;
      lives[single->life].learn({single->changes(), single->sum()});
      base.expires_at = single->base.expires_at;
    } else if (read_lives(copy.value, lives, base.expires_at)) {
      exact = true;
    } else {
      throw CorruptData(no_counter_message(name, "text"));
    }
  }
  bool exists = false;
  for (const auto& [life, count] : lives) {
    if (count.changes == 0 || count.changes >= over) continue;
    exists = true;
    base.value += count.sum;
  }
  if (static_cast<std::int64_t>(base.value) < 0) base.value = 0;
  if (!exact || !exists) {
    if (!plain) return std::nullopt;
    base.value = *plain;
  }
  base.kind = CounterRecord::Base::Kind::set;
  return record;
}

}  // namespace mcds
