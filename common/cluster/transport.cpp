#include "common/cluster/transport.hpp"

#include <algorithm>

#include "common/base/bounds.hpp"

namespace mcds {

namespace {

bool has_key(Op op) {
  return op != Op::version && op != Op::stats;
}

bool breaks_lines(std::string_view text, unsigned char last_unsafe) {
  return std::any_of(text.begin(), text.end(),
                     [&](unsigned char c) { return c <= last_unsafe || c == 0x7f; });
}

}  // namespace

std::optional<std::string> refusal_before_sending(const Request& request) {
  if (has_key(request.op)) {
    if (request.key.empty()) return "the key is empty; give it a name";
    if (request.key.size() > max_key_size) return "the key is longer than 250 bytes; use a shorter name";
    if (breaks_lines(request.key, 0x20)) return "the key has a space or control character; use another name";
  } else if (breaks_lines(request.key, 0x1f)) {
    return "the argument of stats has a control character; remove it";
  }
  const bool compares = request.op == Op::cas || request.op == Op::remove_if;
  if (compares && request.cas.value == 0) return "the server does not support cas; start it without -C";
  if (request.prefix.size() + request.value.size() > largest_value)
    return "the value is larger than 64 MiB; store a smaller one";
  return std::nullopt;
}

bool changes_nothing(Op op) {
  return op == Op::get || op == Op::gets || op == Op::probe || op == Op::version || op == Op::stats;
}

bool needs_meta(Op op) {
  return op == Op::gets || op == Op::probe || op == Op::remove_if || op == Op::incr_or_create;
}

}  // namespace mcds
