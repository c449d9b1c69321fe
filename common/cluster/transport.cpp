#include "common/cluster/transport.hpp"

#include "common/base/bounds.hpp"
#include "common/base/bytes.hpp"

namespace mcds {

void ServerProtocol::take_version(std::string text) {
  version = std::move(text);
  release = 0;
  std::uint32_t number = 0;
  std::string_view rest = version;
  for (int part = 0; part < 3; ++part) {
    const std::string_view digits = rest.substr(0, rest.find_first_not_of("0123456789"));
    const auto value = parse_u64(digits);
    if (!value || *value > 99) return;
    number = number * 100 + static_cast<std::uint32_t>(*value);
    rest.remove_prefix(digits.size());
    if (part == 2) break;
    if (!rest.starts_with('.')) return;
    rest.remove_prefix(1);
  }
  release = number;
}

std::optional<std::string> refusal_before_sending(const Request& request) {
  if (request.op != Op::version && request.op != Op::stats) {
    if (request.key.empty()) return "the key is empty; give it a name";
    if (request.key.size() > max_key_size) return "the key is longer than 250 bytes; use a shorter name";
    if (!goes_in_base64(request.op) && !is_one_word(request.key))
      return "the key has a space or control character: it can be read, touched, removed, added and set, but "
             "not "
             "changed otherwise; use another name";
  } else if (std::ranges::any_of(request.key, [](unsigned char c) { return c <= 0x1f || c == 0x7f; })) {
    return "the argument of stats has a control character; remove it";
  }
  const bool compares = request.op == Op::cas || request.op == Op::remove_if;
  if (compares && request.cas.value == 0)
    return "the server does not support cas; start it without -C, or with --cas yes";
  if (request.prefix.size() + request.value.size() > max_item_value_size)
    return "the value is larger than 64 MiB; store a smaller one";
  return std::nullopt;
}

bool goes_in_base64(Op op) {
  return op == Op::get || op == Op::gets || op == Op::probe || op == Op::touch || op == Op::remove ||
         op == Op::remove_if || op == Op::add || op == Op::set;
}

bool changes_nothing(Op op) {
  return op == Op::get || op == Op::gets || op == Op::probe || op == Op::version || op == Op::stats;
}

bool needs_meta(Op op) {
  return op == Op::gets || op == Op::probe || op == Op::remove_if || op == Op::incr_or_create;
}

}  // namespace mcds
