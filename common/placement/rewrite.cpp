#include "common/placement/rewrite.hpp"

#include <algorithm>

#include "common/base/bytes.hpp"

namespace mcds::rewrite {

namespace {

constexpr std::size_t max_key_length = 250;

std::optional<std::string_view> between(std::string_view key, char first, char last) {
  const auto open = key.find(first);
  if (open == std::string_view::npos) return std::nullopt;
  const auto close = key.find(last, open + 1);
  if (close == std::string_view::npos) return std::nullopt;
  return key.substr(open + 1, close - open - 1);
}

// pymemcache: cuts every code point to its low 8 bits; malformed bytes stay unchanged.
std::string low_bytes_of(std::string_view utf8) {
  std::string text;
  for_each_code_point(
      utf8, [&](char32_t value) { text += static_cast<char>(value & 0xff); }, [&](char c) { text += c; });
  return text;
}

bool is_utf8_tail(char c) {
  return (static_cast<unsigned char>(c) & 0xc0U) == 0x80;
}

std::size_t characters(std::string_view utf8) {
  return utf8.size() - static_cast<std::size_t>(std::ranges::count_if(utf8, is_utf8_tail));
}

std::string_view first_characters(std::string_view utf8, std::size_t count) {
  std::size_t at = 0;
  while (at < utf8.size() && count > 0) {
    ++at;
    while (at < utf8.size() && is_utf8_tail(utf8[at])) ++at;
    --count;
  }
  return utf8.substr(0, at);
}

std::string_view dalli_cut(std::string_view key, std::size_t kept, std::string& buffer) {
  if (characters(key) <= max_key_length) return key;
  return buffer = std::string(first_characters(key, kept)) + ":md5:" + md5_hex(key);
}

std::string python_escaped(char c, char quote) {
  constexpr std::string_view digits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  if (c == quote || c == '\\') return {'\\', c};
  if (c == '\t') return "\\t";
  if (c == '\n') return "\\n";
  if (c == '\r') return "\\r";
  if (byte >= 0x20 && byte < 0x7f) return {c};
  return {'\\', 'x', digits[byte >> 4], digits[byte & 15U]};
}

}  // namespace

std::string_view tagged(std::string_view key, char open, char close) {
  const auto tag = between(key, open, close);
  return tag && !tag->empty() ? *tag : key;
}

std::string_view twemproxy_tag(std::string_view key, std::string&) {
  return tagged(key, '{', '}');
}

std::string_view proxy_tag(std::string_view key, std::string&) {
  return between(key, '{', '}').value_or(key);
}

std::string_view without_route(std::string_view key, std::string&) {
  if (!key.starts_with('/')) return key;
  const auto cluster = key.find('/', 1);
  const auto end = cluster == std::string_view::npos ? cluster : key.find('/', cluster + 1);
  return end == std::string_view::npos ? key : key.substr(end + 1);
}

std::string_view mcrouter(std::string_view key, std::string& buffer) {
  key = without_route(key, buffer);
  return key.substr(0, key.find("|#|"));
}

std::string_view pecl_memcache(std::string_view key, std::string& buffer) {
  const auto unsafe = [](char c) { return static_cast<unsigned char>(c) <= 0x20; };
  key = key.substr(0, max_key_length);
  if (std::ranges::none_of(key, unsafe)) return key;
  buffer = key;
  std::replace_if(buffer.begin(), buffer.end(), unsafe, '_');
  return buffer;
}

std::string_view pecl_session(std::string_view key, std::string& buffer) {
  constexpr std::string_view lock = ".lock";
  if (key.ends_with(lock)) key.remove_suffix(lock.size());
  std::string other;
  const std::string text(pecl_memcache(key, other));
  return buffer = text + "-0";
}

std::string_view npm_memcached(std::string_view key, std::string& buffer) {
  if (key.size() > max_key_length) return buffer = md5_hex(key);
  const std::string_view whole = key;
  const auto next = [&] { return std::min(key.find("$$"), key.find("$&")); };
  if (next() == std::string_view::npos) return key;
  buffer.clear();
  for (auto at = next(); at != std::string_view::npos; at = next()) {
    buffer.append(key.substr(0, at)).append(key[at + 1] == '&' ? whole : "$");
    key.remove_prefix(at + 2);
  }
  return buffer.append(key);
}

std::string_view fast_safe(std::string_view key, std::string& buffer) {
  constexpr std::size_t longest = 200;
  constexpr std::string_view digits = "0123456789ABCDEF";
  buffer.clear();
  for (const char c : key) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7f)
      buffer += c;
    else
      buffer += {'%', digits[byte >> 4], digits[byte & 15U]};
  }
  if (buffer.size() > longest) buffer = sha1_hex(buffer);
  return buffer == key ? key : buffer;
}

std::string_view swift(std::string_view key, std::string& buffer) {
  const bool is_md5 = key.size() == 32 && key.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  return is_md5 ? key : buffer = md5_hex(key);
}

std::string_view dalli(std::string_view key, std::string& buffer) {
  return dalli_cut(key, 212, buffer);
}
std::string_view dalli_with_namespace(std::string_view key, std::string& buffer) {
  return dalli_cut(key, 213, buffer);
}

std::string_view pymemcache_str(std::string_view key, std::string& buffer) {
  const auto ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::ranges::all_of(key, ascii)) return key;
  return buffer = low_bytes_of(key);
}

std::string_view pymemcache_bytes(std::string_view key, std::string& buffer) {
  const bool apostrophe = key.find('\'') != std::string_view::npos;
  const char quote = apostrophe && key.find('"') == std::string_view::npos ? '"' : '\'';
  buffer = {'b', quote};
  for (const char c : key) buffer += python_escaped(c, quote);
  buffer += quote;
  return buffer;
}

}  // namespace mcds::rewrite
