// A duration in an answer.
#pragma once

#include <string_view>

#include "common/base/clock.hpp"
#include "common/base/json.hpp"

namespace mcds {

// Whole seconds, or with the milliseconds: "ttl_s":60, "ttl_s":1.5.
inline void add_seconds(JsonObject& object, std::string_view name, Duration duration) {
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(duration);
  if (whole == duration)
    object.number(name, static_cast<std::uint64_t>(whole.count()));
  else
    object.real(name, static_cast<double>(duration / std::chrono::milliseconds(1)) / 1000);
}

}  // namespace mcds
