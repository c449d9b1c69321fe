// What takes a counter's place while it is put into another number of copies (recopy.cpp): `H <expiry>
// <value> *<checksum>`, the expiry in UNIX seconds, `-` without one. No server increments it, and whoever
// reads it waits until the change is done.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/bytes.hpp"
#include "common/primitives/context.hpp"
#include "common/primitives/record.hpp"

namespace mcds {

struct HeldCounter {
  std::string value;
  std::optional<std::int64_t> expires_at = {};

  std::string text() const {
    return seal("H " + (expires_at ? std::to_string(*expires_at) : "-") + ' ' + value);
  }
  Exptime exptime(WallTime now) const {
    return expires_at ? Exptime::at(WallTime(std::chrono::seconds(*expires_at)), now) : Exptime::never();
  }
  // Gives it back: nobody is putting it elsewhere.
  Request thaw(const Context& context, const std::string& key, CasUnique cas) const {
    return Request::compare_and_set(key, value, exptime(context.clock.wall()), cas);
  }
  static std::optional<HeldCounter> parse(std::string_view text) {
    const auto body = unseal(text);
    if (!body || !body->starts_with("H ")) return std::nullopt;
    const std::size_t blank = body->find(' ', 2);
    if (blank == std::string_view::npos) return std::nullopt;
    return HeldCounter{std::string(body->substr(blank + 1)), parse_i64(body->substr(2, blank - 2))};
  }
};

}  // namespace mcds
