#include "common/primitives/several/recopying.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/bytes.hpp"
#include "common/primitives/key_names.hpp"
#include "common/primitives/record.hpp"
#include "common/primitives/several/copies.hpp"

namespace mcds {

namespace {

constexpr int most_writes = 3;  // while replies get lost

Contention overtaken() {
  return Contention("another client is changing the number of copies; try again");
}

}  // namespace

std::string encode(const RecopyMark& mark) {
  std::string line;
  append_all(line, {"M1 ", mark.from.text(), " ", std::to_string(mark.to), " ", mark.mover});
  return seal(line) + '\n' + mark.moving;
}

std::optional<RecopyMark> decode_recopy_mark(std::string_view value) {
  const std::size_t end = value.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const auto body = unseal(value.substr(0, end));
  if (!body) return std::nullopt;
  const auto words = split(*body, ' ');
  if (words.size() != 4 || words[0] != "M1") return std::nullopt;
  const auto from = KeptNumber::parse(words[1]);
  const auto to = parse_u64(words[2]);
  if (!from || from->copies > most_copies || !to || *to > most_copies) return std::nullopt;
  RecopyMark mark{.from = *from};
  mark.to = static_cast<std::size_t>(*to);
  mark.mover = words[3];
  mark.moving = value.substr(end + 1);
  return mark;
}

Recopying::Recopying(const Context& context, std::string_view structure, std::string_view name)
    : context_(context), key_(structure_key(context, structure, name)) {
  key_.insert(context.key_prefix.size() + structure.size(), 1, '0');
}

std::vector<Request> Recopying::asks() const {
  const Context asked = context_.in_copies(asked_copies());
  std::vector<Request> batch;
  for (const std::size_t server : context_.cluster.placement().servers_of(key_, asked.copies))
    batch.push_back(read_of_copy(asked, key_).on(server));
  return batch;
}

Recopying::Told Recopying::told(std::span<const Reply> replies) const {
  if (replies.size() < asked_copies()) return {};
  const VersionedItem item = versions_of(context_.in_copies(replies.size())).item_of(key_, replies);
  const auto failed = [](const VersionedCopy& copy) { return copy.failure.has_value(); };
  if (std::ranges::all_of(item.copies, failed)) raise(*item.copies[0].failure);
  Told told;
  const VersionedCopy* newest = nullptr;
  for (const VersionedCopy& copy : item.copies) {
    if (copy.removed) told.done = std::max(told.done.value_or(0), copy.number);
    if (copy.live() && (newest == nullptr || copy.number > newest->number)) newest = &copy;
  }
  if (newest != nullptr) told.change = seen(*newest);
  return told;
}

std::optional<Recopying::Seen> Recopying::seen(const VersionedCopy& copy) {
  auto mark = decode_recopy_mark(copy.value);
  return mark ? std::optional(Seen{std::move(*mark), copy.number}) : std::nullopt;
}

std::optional<Recopying::Seen> Recopying::look() const {
  const std::vector<Request> batch = asks();
  auto first = told(context_.cluster.execute(batch)).change;
  if (!first) return std::nullopt;
  // A mover that had no answer from some may have left its word in others only.
  const Versions versions =
      versions_of(context_.in_copies(std::max({first->mark.from.copies, first->mark.to, asked_copies()})));
  std::vector<VersionedItem> items = versions.read(std::span(&key_, 1));
  const VersionedItem& item = items.front();
  // Silence does not mean that it is gone.
  if (item.newest() == nullptr && item.any_failed()) return first;
  if (!item.live()) {
    auto owed = Versions::owed(items);
    versions.write(owed);
    return std::nullopt;
  }
  return seen(*item.newest());
}

void Recopying::begin(const KeptNumber& from, std::size_t to) {
  mark_ = {.from = from, .to = to};
  RecopyMark next = mark_;
  next.mover = context_.random.token();
  put(next, Writing::first);
  settled_at_ = context_.clock.steady() + recopy_settling;
}

void Recopying::take_over(const Seen& left) {
  mark_ = left.mark;
  taken_over_ = true;
  const auto items = versions_of(safe_context()).read(std::span(&key_, 1));
  if (!items.front().live() || items.front().newest()->number != left.number) throw overtaken();
  written_ = items.front().newest()->value;
  const auto newest = decode_recopy_mark(*written_);
  if (!newest || !(newest->from == mark_.from) || newest->to != mark_.to) throw overtaken();
  RecopyMark next = *newest;
  next.mover = context_.random.token();
  put(next, Writing::next);
}

void Recopying::write(std::string moving) {
  RecopyMark next = mark_;
  next.moving = std::move(moving);
  put(next, Writing::next);
}

void Recopying::settle() const {
  if (!settled_at_) return;
  const Duration left = *settled_at_ - context_.clock.steady();
  if (left > Duration::zero()) context_.clock.sleep_for(left);
}

// Into every copy, by cas on what this mover knows to be there, or not at all.
void Recopying::put(const RecopyMark& next, Writing writing) {
  const bool removed = writing == Writing::removal;
  const std::string value = removed ? "" : encode(next);
  const Versions versions = versions_of(safe_context());
  for (int attempt = 0;; ++attempt) {
    std::vector<VersionedItem> items = versions.read(std::span(&key_, 1));
    VersionedItem& item = items.front();
    item.expect_all();
    const VersionedCopy* newest = item.newest();
    // Clients ask for the first two copies. What another one alone has is left from a change that was done.
    const bool asked =
        std::any_of(item.copies.begin(), item.copies.begin() + static_cast<std::ptrdiff_t>(asked_copies()),
                    [](const VersionedCopy& copy) { return copy.live(); });
    const bool there = item.live() && (asked || writing != Writing::first);
    // An attempt whose reply was lost may have done it, in some copies or in all.
    const bool ours =
        attempt != 0 && newest != nullptr && newest->removed == removed && newest->value == value;
    if (!ours && (there != written_.has_value() || (there && newest->value != *written_))) throw overtaken();
    const auto number = ours ? newest->number : item.next_number();
    if (!number) throw no_version_left(key_);
    VersionedWrite write{.item = &item, .number = *number, .removed = removed, .value = value, .once = true};
    versions.write(std::span(&write, 1));
    const VersionedCopy* failed = nullptr;
    for (const VersionedCopy& copy : item.copies) {
      if (copy.failure && (failed == nullptr || copy.failure->code() == ErrorCode::try_again)) failed = &copy;
    }
    if (failed == nullptr) break;
    if (failed->failure->code() == ErrorCode::try_again) throw overtaken();
    if (attempt + 1 == most_writes || failed->failure->code() != ErrorCode::unknown_outcome)
      raise(*failed->failure);
  }
  put_at_ = context_.clock.steady();
  mark_ = next;
  written_.reset();
  if (!removed) written_ = value;
}

}  // namespace mcds
