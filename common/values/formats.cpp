// The formats of clients, text and numbers, and what each form is decoded by.
#include <algorithm>
#include <bit>

#include "common/base/bounds.hpp"
#include "common/base/bytes.hpp"
#include "common/base/json.hpp"
#include "common/base/json_reader.hpp"
#include "common/base/units.hpp"
#include "common/values/document.hpp"

namespace mcds {

namespace {

using enum ValueForm;
using namespace std::string_view_literals;

constexpr FlagRule anything_is_text[] = {{0, 0, text}};
constexpr FlagRule python_compressions[] = {{8, 8, inflate}};
constexpr FlagRule python_forms[] = {
    {16, 16, text}, {2, 2, integer}, {4, 4, integer}, {1, 1, pickle}, {0, 0, bytes}};
constexpr FlagRule pylibmc_forms[] = {
    {16, 16, text}, {4, 4, integer}, {2, 2, boolean}, {1, 1, pickle}, {0, 0, bytes}};
constexpr FlagRule bmemcached_forms[] = {
    {16, 16, bytes}, {2, 2, integer}, {4, 4, integer}, {1, 1, pickle}, {0, 0, text}};
constexpr FlagRule php_memcached_compressions[] = {
    {0xd0, 0x50, sized_fastlz}, {0xb0, 0x30, sized_inflate}, {0x90, 0x90, sized_zstd}};
constexpr FlagRule php_memcached_forms[] = {{15, 0, text},    {15, 1, integer}, {15, 2, real},
                                            {15, 3, boolean}, {15, 4, php},     {15, 5, igbinary},
                                            {15, 6, json},    {15, 7, msgpack}, {0, 0, bytes}};
constexpr FlagRule flag_2_is_compressed[] = {{2, 2, inflate}};
constexpr FlagRule php_memcache_forms[] = {
    {0xf00, 0x100, boolean}, {0xf00, 0x300, integer}, {0xf00, 0x700, real}, {1, 1, php}, {0, 0, text}};
constexpr FlagRule session_forms[] = {{0, 0, php_session}};
constexpr FlagRule perl_forms[] = {{1, 1, storable}, {0, 0, text}};
constexpr FlagRule dalli_forms[] = {{1, 1, marshal}, {0, 0, text}};
constexpr FlagRule rails_forms[] = {{0, 0, rails}};
constexpr FlagRule node_memcached_forms[] = {
    {~0U, 2, json}, {~0U, 4, latin1}, {~0U, 8, real}, {0, 0, escaped_text}};
constexpr FlagRule spymemcached_forms[] = {{0xff00, 0x100, big_endian_i8},
                                           {0xff00, 0x200, big_endian_i32},
                                           {0xff00, 0x300, big_endian_i64},
                                           {0xff00, 0x400, milliseconds},
                                           {0xff00, 0x500, big_endian_i8},
                                           {0xff00, 0x600, big_endian_f32},
                                           {0xff00, 0x700, big_endian_f64},
                                           {0xff00, 0x800, bytes},
                                           {1, 1, java},
                                           {0, 0, text}};
constexpr FlagRule whalin_forms[] = {{8, 8, java},
                                     {32, 32, text},
                                     {64, 64, text},
                                     {2048, 2048, text},
                                     {8192, 8192, boolean},
                                     {4, 4, big_endian_i32},
                                     {16384, 16384, big_endian_i64},
                                     {1024, 1024, milliseconds},
                                     {1, 1, big_endian_i8},
                                     {256, 256, big_endian_i16},
                                     {16, 16, big_endian_char},
                                     {128, 128, big_endian_f32},
                                     {512, 512, big_endian_f64},
                                     {4096, 4096, bytes},
                                     {0, 0, text}};
constexpr FlagRule anything_is_guessed[] = {{0, 0, guess}};

constexpr ValueFormat formats[] = {
    {"auto", "any client: guessed from the bytes", "", {}, anything_is_guessed},
    {"pymemcache", "pymemcache 3.5 with its serde, Django's PyMemcacheCache", "pymemcache",
     python_compressions, python_forms},
    {"python-memcached", "python-memcached 1.59, Django's MemcachedCache", "python-memcached",
     python_compressions, python_forms},
    {"pylibmc", "pylibmc 1.6, Django's PyLibMCCache", "pylibmc", python_compressions, pylibmc_forms},
    {"bmemcached", "python-binary-memcached 0.31", "bmemcached", python_compressions, bmemcached_forms},
    {"php-session", "PHP sessions of the handler \"php\"", "php-memcached-session php-memcache-session",
     flag_2_is_compressed, session_forms},
    {"php-memcached", "php-memcached 3.2", "php-memcached", php_memcached_compressions, php_memcached_forms},
    {"php-memcache", "php-memcache 8.0 (PECL memcache)", "php-memcache", flag_2_is_compressed,
     php_memcache_forms},
    {"perl", "Cache::Memcached 1.30, Cache::Memcached::Fast 0.28", "perl-cache-memcached",
     flag_2_is_compressed, perl_forms},
    {"dalli", "dalli 3.0", "dalli", flag_2_is_compressed, dalli_forms},
    {"rails", "Rails MemCacheStore 6.1, 7.0, 7.1 over dalli", "rails", flag_2_is_compressed, rails_forms},
    {"node-memcached", "npm memcached 2.2", "node-memcached", {}, node_memcached_forms},
    {"spymemcached", "spymemcached 2.9, SerializingTranscoder", "spymemcached", flag_2_is_compressed,
     spymemcached_forms},
    {"spymemcached-whalin", "spymemcached 2.9, WhalinTranscoder", "", flag_2_is_compressed, whalin_forms},
    {"raw",
     "clients that leave the value to the application: gomemcache, memjs 1.3",
     "",
     {},
     anything_is_text},
};

constexpr std::string_view form_names[] = {
    "bytes",    "text",    "integer", "real",  "boolean", "json",     "php",     "php-session",
    "igbinary", "pickle",  "marshal", "rails", "text",    "bytes",    "integer", "integer",
    "integer",  "integer", "real",    "real",  "text",    "time",     "zlib",    "zstd",
    "fastlz",   "zlib",    "zstd",    "guess", "msgpack", "storable", "java"};

using values::Document;
using values::Id;

// Returns the form that nothing but such bytes begins with, or nullopt.
std::optional<ValueForm> form_by_magic(std::string_view bytes) {
  if (bytes.starts_with("\x1f\x8b")) return inflate;
  if (bytes.starts_with("\x28\xb5\x2f\xfd")) return zstd;
  if (bytes.starts_with("\0\0\0\1"sv) || bytes.starts_with("\0\0\0\2"sv)) return igbinary;
  if (bytes.starts_with("\x04\x08") || bytes.starts_with("\0\x11"sv)) return rails;
  if (bytes.starts_with("\xac\xed\0\5"sv)) return java;
  if (bytes.size() > 2 && bytes[0] == '\x80' && bytes[1] <= 5 && bytes.ends_with('.')) return pickle;
  return {};
}

class Decoder {
 public:
  Decoder(std::size_t max_bytes, DecodedValue& decoded)
      : max_bytes_(max_bytes), document_(max_bytes), decoded_(decoded) {}

  void decode(const ValueFormat& format, std::uint32_t flags, std::string_view bytes) {
    std::string plain;
    if (const auto compression = form_of(format.compressions, flags)) {
      std::string name;
      plain = values::decompress(*compression, bytes, max_bytes_, name);
      decoded_.encoding.push_back(name);
      bytes = plain;
    }
    const ValueForm form = *form_of(format.forms, flags);
    if (form == guess) return decode_guessed(bytes);
    decode(form, bytes);
    const auto magic = form_by_magic(bytes);
    if (magic && decoded_.problem.empty() && (form == text || form == ValueForm::bytes))
      decoded_.problem = meaning(format, flags, form) + ", but these begin as those of " +
                         std::string(name_of(*magic)) + " do; --decode auto shows them";
  }

  // Tries what begins as these bytes do. Text is what nothing else is.
  void decode_guessed(std::string_view bytes) {
    decoded_.guessed = true;
    std::string plain;
    for (const ValueForm form : {inflate, zstd, sized_inflate, sized_zstd}) {
      std::string name;
      const auto tried = attempt([&] { return values::decompress(form, bytes, max_bytes_, name); });
      if (tried.failure()) continue;
      plain = tried.value();
      decoded_.encoding.push_back(name);
      bytes = plain;
      break;
    }
    const ValueForm likely = form_by_magic(bytes).value_or(is_json(bytes)                      ? json
                                                           : bytes.ends_with('.')              ? pickle
                                                           : bytes.find('|') < bytes.find(':') ? php_session
                                                                                               : php);
    const std::vector<std::string> encoding = decoded_.encoding;
    const auto tried = attempt([&] { decode(likely, bytes); });
    if (!tried.failure()) return;
    decoded_.encoding = encoding;
    decode(text, bytes);
  }

  static std::optional<ValueForm> form_of(std::span<const FlagRule> rules, std::uint32_t flags) {
    for (const FlagRule& rule : rules)
      if ((flags & rule.mask) == rule.bits) return rule.form;
    return {};
  }
  static std::string meaning(const ValueFormat& format, std::uint32_t flags, ValueForm form) {
    return "flags " + std::to_string(flags) + " mean " + std::string(name_of(form)) + " for " +
           std::string(format.name);
  }

 private:
  void decode(ValueForm form, std::string_view bytes) {
    if (form != rails) decoded_.encoding.emplace_back(name_of(form));
    const Id value = read(form, bytes);
    if (decoded_.problem.empty()) decoded_.json = document_.text(value);
  }

  Id number(std::string_view bytes, bool integer) {
    if (const auto value = document_.integer(bytes)) return *value;
    if (const auto value = document_.real(bytes); value && !integer) return *value;
    values::fail(integer ? "an integer is expected" : "a number is expected", 0);
  }

  std::uint64_t big_endian(std::string_view bytes, std::size_t size) {
    if (bytes.size() > size) values::fail("at most " + std::to_string(size) + " bytes are expected", size);
    return values::Input(bytes).big(bytes.size());
  }

  // Undoes what a client does to characters.
  Id characters(std::string_view bytes, ValueForm form) {
    std::string out;
    if (form == escaped_text) {
      for (std::size_t i = 0; i < bytes.size(); ++i)
        if (bytes[i] != '\\' || i + 1 == bytes.size() || (bytes[i + 1] != '\r' && bytes[i + 1] != '\n'))
          out += bytes[i];
      return document_.bytes(out);
    }
    const std::string plain = document_[characters(bytes, escaped_text)].text;
    for_each_code_point(
        plain,
        [&](char32_t c) {
          if (c > 0xff) values::fail("a character above U+00FF", 0);
          out += static_cast<char>(c);
        },
        [](char) { values::fail("UTF-8 is expected", 0); });
    return document_.bytes(out);
  }

  Id read(ValueForm form, std::string_view bytes) {
    switch (form) {
      case integer: return number(bytes, true);
      case real: return number(bytes, false);
      case boolean:
        if (bytes.size() > 1 || bytes.find_first_not_of("\0\1"sv
                                                        "01") != std::string_view::npos)
          values::fail("a boolean is expected", 0);
        return document_.boolean(bytes == "1" || bytes == "\1");
      case json: {
        JsonReader reader(bytes);
        while (reader.next()) {
        }
        if (!reader.valid()) values::fail("the JSON is broken", reader.position());
        return document_.json(*compact_json(bytes));
      }
      case php: return values::read_php(document_, bytes);
      case php_session: return values::read_php_session(document_, bytes);
      case igbinary: return values::read_igbinary(document_, bytes);
      case pickle: return values::read_pickle(document_, bytes);
      case marshal: return values::read_marshal(document_, bytes);
      case rails: return values::read_rails(document_, bytes, max_bytes_, decoded_.encoding);
      case escaped_text:
      case latin1: return characters(bytes, form);
      case big_endian_i8:
        return document_.json(std::to_string(static_cast<std::int8_t>(big_endian(bytes, 1))));
      case big_endian_i16:
        return document_.json(std::to_string(static_cast<std::int16_t>(big_endian(bytes, 2))));
      case big_endian_i32:
        return document_.json(std::to_string(static_cast<std::int32_t>(big_endian(bytes, 4))));
      case big_endian_i64:
        return document_.json(std::to_string(static_cast<std::int64_t>(big_endian(bytes, 8))));
      case big_endian_f32:
        return document_.real(std::bit_cast<float>(static_cast<std::uint32_t>(big_endian(bytes, 4))));
      case big_endian_f64: return document_.real(std::bit_cast<double>(big_endian(bytes, 8)));
      case big_endian_char: {
        const auto code = static_cast<std::uint32_t>(big_endian(bytes, 2));
        return document_.bytes(*json_unquote("\"\\u" + hex64(code).substr(12) + '"'));
      }
      case milliseconds: {
        const auto time = static_cast<std::int64_t>(big_endian(bytes, 8));
        if (time < 0 || time / 1000 > latest_second)
          values::fail("a time until the year 9999 is expected", 0);
        return document_.bytes(format_time(WallTime(std::chrono::milliseconds(time))));
      }
      case java: {
        const std::string_view head = "\xac\xed\0\5sr"sv;
        values::Input in(bytes);
        if (!bytes.starts_with(head)) return name(form, {});
        in.take(head.size());
        return name(form, ", of an object of " + quote_bytes(in.take(in.big(2))) + ',');
      }
      case storable:
        return name(form, bytes.size() < 2
                              ? ""
                              : " of version " + std::to_string(static_cast<std::uint8_t>(bytes[0]) >> 1) +
                                    '.' + std::to_string(static_cast<std::uint8_t>(bytes[1])));
      case msgpack: return name(form, {});
      default: return document_.bytes(bytes);
    }
  }

  // Says what the value is, instead of what it holds.
  Id name(ValueForm form, const std::string& what) {
    decoded_.problem = std::string(name_of(form)) + what + " is named, not read";
    return document_.null();
  }

  std::size_t max_bytes_;
  Document document_;
  DecodedValue& decoded_;
};

}  // namespace

std::span<const ValueFormat> value_formats() {
  return formats;
}

const ValueFormat* value_format_named(std::string_view name) {
  const auto found = std::ranges::find(formats, name, &ValueFormat::name);
  return found == std::end(formats) ? nullptr : found;
}

const ValueFormat* value_format_of(std::string_view profile) {
  for (const ValueFormat& format : formats)
    for (const std::string_view beginning : split(format.profiles, ' '))
      if (!beginning.empty() && profile.starts_with(beginning)) return &format;
  return nullptr;
}

std::string_view name_of(ValueForm form) {
  return form_names[static_cast<std::size_t>(form)];
}

DecodedValue decode_value(const ValueFormat& format, std::uint32_t flags, std::string_view bytes,
                          std::size_t max_bytes) {
  DecodedValue decoded;
  const auto tried = attempt([&] { Decoder(max_bytes, decoded).decode(format, flags, bytes); });
  if (!tried.failure()) return decoded;
  const auto compression = Decoder::form_of(format.compressions, flags);
  const ValueForm form =
      compression && decoded.encoding.empty() ? *compression : *Decoder::form_of(format.forms, flags);
  const std::string problem = Decoder::meaning(format, flags, form) + ": " + tried.failure()->what();
  // Perhaps another client wrote it.
  DecodedValue guessed;
  const auto other = attempt([&] { Decoder(max_bytes, guessed).decode_guessed(bytes); });
  if (!other.failure() && guessed.problem.empty() && guessed.encoding.back() != "text") decoded = guessed;
  decoded.problem = problem;
  return decoded;
}

}  // namespace mcds
