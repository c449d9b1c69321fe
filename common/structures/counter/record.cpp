#include "common/structures/counter/record.hpp"

#include <algorithm>

#include "common/base/bounds.hpp"
#include "common/base/bytes.hpp"
#include "common/primitives/record.hpp"

namespace mcds {

std::string CounterRecord::text() const {
  return seal("C1 " + std::to_string(sequence) + ' ' + std::to_string(sum) + ' ' +
              CounterRecordEnd{ids, expires_at}.text());
}

std::string CounterRecordEnd::text() const {
  std::string text;
  for (const std::string& id : ids) text += (text.empty() ? "" : ",") + id;
  if (ids.empty()) text += '-';
  if (expires_at) text += " @" + std::to_string(*expires_at);
  return text;
}

std::optional<CounterRecordEnd> CounterRecordEnd::parse(std::span<const std::string_view> words) {
  if (words.empty() || words.size() > 2) return std::nullopt;
  CounterRecordEnd end;
  for (const std::string_view id : split(words[0], ',')) {
    if (words[0] == "-") break;
    if (!parse_hex64(id)) return std::nullopt;
    end.ids.emplace_back(id);
  }
  if (words.size() == 1) return end;
  if (!words[1].starts_with('@')) return std::nullopt;
  end.expires_at = parse_i64(words[1].substr(1));
  const bool is_time = end.expires_at && *end.expires_at >= 0 && *end.expires_at <= latest_second;
  return is_time ? std::optional(std::move(end)) : std::nullopt;
}

std::optional<CounterRecord> CounterRecord::parse(std::string_view text) {
  const auto body = unseal(text);
  if (!body) return std::nullopt;
  const auto words = split(*body, ' ');
  if (words.size() < 4 || words[0] != "C1") return std::nullopt;
  const auto sequence = parse_u64(words[1]);
  const auto sum = parse_u64(words[2]);
  if (!sequence || !sum) return std::nullopt;
  auto end = CounterRecordEnd::parse(std::span(words).subspan(3));
  if (!end) return std::nullopt;
  return CounterRecord{*sequence, *sum, std::move(end->ids), end->expires_at};
}

bool CounterRecord::has(std::string_view id) const {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

CounterRecord CounterRecord::changed(std::uint64_t new_sum, std::string id) const {
  CounterRecord next = *this;
  ++next.sequence;
  next.sum = new_sum;
  if (next.ids.size() == kept_ids) next.ids.erase(next.ids.begin());
  next.ids.push_back(std::move(id));
  return next;
}

std::string no_counter_message(const std::string& name, std::string_view value) {
  if (value.starts_with("C2 "))
    return "the counter '" + name + "' has several copies; give their number with --copies";
  return "what is stored for '" + name + "' is not a counter; remove it or use another name";
}

std::optional<std::uint64_t> plain_number(std::string_view value) {
  return parse_padded_u64(value);
}

}  // namespace mcds
