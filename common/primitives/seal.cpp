#include "common/primitives/seal.hpp"

#include "common/base/bytes.hpp"

namespace mcds {

namespace {

constexpr std::size_t mark_size = 2;      // " *"
constexpr std::size_t checksum_size = 8;  // hex digits

}  // namespace

std::string seal(std::string_view body) {
  std::string line(body);
  append_seal(line, 0);
  return line;
}

void append_seal(std::string& text, std::size_t start) {
  append_all(text, {" *", checksum(std::string_view(text).substr(start))});
}

std::optional<std::string_view> unseal(std::string_view line) {
  if (line.size() < mark_size + checksum_size) return std::nullopt;
  const std::string_view body = line.substr(0, line.size() - mark_size - checksum_size);
  if (line.substr(body.size(), mark_size) != " *") return std::nullopt;
  if (line.substr(body.size() + mark_size) != checksum(body)) return std::nullopt;
  return body;
}

}  // namespace mcds
