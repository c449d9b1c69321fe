// Holds the table of client formats, the decoders of text and numbers, and the choice of a decoder.
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

using namespace std::string_view_literals;
using values::Document;
using values::Id;

constexpr std::string_view python_forms = "16=text 2=integer 4=integer 1=pickle otherwise=bytes";

// The table follows the clients' own sources; tests/interop/values_test.py runs the clients.
constexpr ValueFormat formats[] = {
    {"auto", "any client: guessed from the bytes", "", "", "otherwise=guess"},
    {"pymemcache", "pymemcache 3.5 with its serde, Django's PyMemcacheCache", "pymemcache", "8=zlib",
     python_forms},
    {"python-memcached", "python-memcached 1.59, Django's MemcachedCache", "python-memcached", "8=zlib",
     python_forms},
    {"pylibmc", "pylibmc 1.6, Django's PyLibMCCache", "pylibmc", "8=zlib",
     "16=text 4=integer 2=boolean 1=pickle otherwise=bytes"},
    {"bmemcached", "python-binary-memcached 0.31", "bmemcached", "8=zlib",
     "16=bytes 2=integer 4=integer 1=pickle otherwise=text"},
    {"php-session", "PHP sessions of the handler \"php\"", "php-memcached-session php-memcache-session",
     "2=zlib", "otherwise=php-session"},
    {"php-memcached", "php-memcached 3.2", "php-memcached", "80=sized-fastlz 48=sized-zlib 144=sized-zstd",
     "0/15=text 1/15=integer 2/15=real 3/15=boolean 4/15=php 5/15=igbinary 6/15=json 7/15=msgpack "
     "otherwise=bytes"},
    {"php-memcache", "php-memcache 8.0 (PECL memcache)", "php-memcache", "2=zlib",
     "256/3840=boolean 768/3840=integer 1792/3840=real 1=php otherwise=text"},
    {"perl", "Cache::Memcached 1.30, Cache::Memcached::Fast 0.28", "perl-cache-memcached", "2=zlib",
     "1=storable otherwise=text"},
    {"dalli", "dalli 3.0", "dalli", "2=zlib", "1=marshal otherwise=text"},
    {"rails", "Rails MemCacheStore 6.1, 7.0, 7.1 over dalli", "rails", "2=zlib", "otherwise=rails"},
    {"node-memcached", "npm memcached 2.2", "node-memcached", "",
     "2/65535=json 4/65535=latin1 8/65535=real otherwise=escaped"},
    {"spymemcached", "spymemcached 2.9, SerializingTranscoder", "spymemcached", "2=zlib",
     "256/65280=boolean 512/65280=int32 768/65280=int64 1024/65280=time 1280/65280=int8 1536/65280=float32 "
     "1792/65280=float64 2048/65280=bytes 1=java otherwise=text"},
    {"spymemcached-whalin", "spymemcached 2.9, WhalinTranscoder", "", "2=zlib",
     "8=java 32=text 64=text 2048=text 8192=boolean 4=int32 16384=int64 1024=time 1=int8 256=int32 16=char "
     "128=float32 512=float64 4096=bytes otherwise=text"},
    {"raw", "clients that leave the value to the application: gomemcache, memjs 1.3", "", "",
     "otherwise=text"},
};

std::uint64_t big_endian(std::string_view bytes, std::size_t size) {
  if (bytes.size() > size) values::fail("at most " + std::to_string(size) + " bytes are expected", size);
  return values::Input(bytes).big(bytes.size());  // leading zeros may be missing
}
template <typename Integer>
Id read_integer(Document& document, std::string_view bytes) {
  return document.json(std::to_string(static_cast<Integer>(big_endian(bytes, sizeof(Integer)))));
}

Id read_number(Document& document, std::string_view bytes) {
  if (const auto value = document.integer(bytes)) return *value;
  if (const auto value = document.real(bytes)) return *value;
  values::fail("a number is expected", 0);
}

Id read_boolean(Document& document, std::string_view bytes) {
  if (bytes.size() > 1 || bytes.find_first_not_of("\0\1"sv
                                                  "01") != std::string_view::npos)
    values::fail("a boolean is expected", 0);
  return document.boolean(bytes == "1" || bytes == "\1");
}

// Returns the same JSON, with names that begin with @ escaped.
Id read_json(Document& document, std::string_view bytes) {
  std::string out, name;
  const auto fault = json_fault(bytes, [&](JsonPart part) {
    if (part.kind == JsonPart::Kind::name && part.text.starts_with('@'))
      part.text = name = '@' + std::string(part.text);
    append_json_part(out, part);
  });
  if (fault) values::fail("the JSON is broken", *fault);
  return document.json(out);
}

// Undoes what npm memcached does: it puts a backslash before each CR and LF, and stores the bytes of a Buffer
// as Latin-1 characters in UTF-8.
Id read_escaped(Document& document, std::string_view bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] != '\\' || i + 1 == bytes.size() || (bytes[i + 1] != '\r' && bytes[i + 1] != '\n'))
      out += bytes[i];
  return document.bytes(out);
}
Id read_latin1(Document& document, std::string_view bytes) {
  return document.latin1(read_escaped(document, bytes));
}

Id read_char(Document& document, std::string_view bytes) {
  std::string text;
  append_utf8(text, static_cast<std::uint32_t>(big_endian(bytes, 4)));
  return document.bytes(text);
}

Id read_time(Document& document, std::string_view bytes) {
  const auto time = static_cast<std::int64_t>(big_endian(bytes, 8));
  if (time < 0 || time / 1000 > latest_second) values::fail("a time until the year 9999 is expected", 0);
  return document.bytes(format_time(WallTime(std::chrono::milliseconds(time))));
}

Id read_text(Document& document, std::string_view bytes) {
  return document.bytes(bytes);
}

struct Form {
  std::string_view name;
  Id (*read)(Document& document, std::string_view bytes);  // nullptr: recognized but not decoded
};
constexpr Form forms[] = {
    {"text", read_text},
    {"bytes", read_text},
    {"escaped", read_escaped},
    {"latin1", read_latin1},
    {"integer", read_number},
    {"real", read_number},
    {"boolean", read_boolean},
    {"json", read_json},
    {"php", values::read_php},
    {"php-session", values::read_php_session},
    {"igbinary", values::read_igbinary},
    {"pickle", values::read_pickle},
    {"marshal", values::read_marshal},
    {"int8", read_integer<std::int8_t>},
    {"int32", read_integer<std::int32_t>},
    {"int64", read_integer<std::int64_t>},
    {"float32",
     [](Document& document, std::string_view bytes) {
       return document.real(std::bit_cast<float>(static_cast<std::uint32_t>(big_endian(bytes, 4))));
     }},
    {"float64",
     [](Document& document, std::string_view bytes) {
       return document.real(std::bit_cast<double>(big_endian(bytes, 8)));
     }},
    {"char", read_char},
    {"time", read_time},
    {"msgpack", nullptr},
    {"storable", nullptr},
    {"java", nullptr},
};

// Returns the name of the first rule that the flags match, or an empty one.
std::string_view matching(std::string_view rules, std::uint32_t flags) {
  while (!rules.empty()) {
    std::string_view name = take_word(rules), mask = take_word(name, '=');
    if (mask == "otherwise") return name;
    const std::uint64_t bits = *parse_u64(take_word(mask, '/'));
    if ((flags & (mask.empty() ? bits : *parse_u64(mask))) == bits) return name;
  }
  return {};
}

// Returns the form that is certain from the first bytes, or an empty name.
std::string_view form_by_magic(std::string_view bytes) {
  if (bytes.starts_with("\x1f\x8b")) return "gzip";
  if (bytes.starts_with("\x28\xb5\x2f\xfd")) return "zstd";
  if (bytes.starts_with("\0\0\0\1"sv) || bytes.starts_with("\0\0\0\2"sv)) return "igbinary";
  if (bytes.starts_with("\x04\x08") || bytes.starts_with("\0\x11"sv)) return "rails";
  if (bytes.starts_with("\xac\xed\0\5"sv)) return "java";
  if (bytes.size() > 2 && bytes[0] == '\x80' && bytes[1] <= 5 && bytes.ends_with('.')) return "pickle";
  return {};
}

// Returns the information in the header of a form that is not decoded.
std::string header_of(std::string_view form, std::string_view bytes) {
  constexpr std::string_view java_object = "\xac\xed\0\5sr"sv;
  values::Input in(bytes);
  if (form == "java" && bytes.starts_with(java_object)) {
    in.take(java_object.size());
    return ", of an object of " + quote_bytes(in.take(in.big(2))) + ',';
  }
  if (form != "storable" || bytes.size() < 2) return {};
  const std::string major = std::to_string(in.byte() >> 1);
  return " of version " + major + '.' + std::to_string(in.byte());
}

class Decoder {
 public:
  Decoder(std::size_t max_bytes, DecodedValue& decoded)
      : max_bytes_(max_bytes), document_(max_bytes), decoded_(decoded) {}

  void decode(const ValueFormat& format, std::uint32_t flags, std::string_view bytes) {
    meaning_ = matching(format.compressions, flags);
    const std::string plain = meaning_.empty() ? std::string() : decompressed(meaning_, bytes);
    if (!meaning_.empty()) bytes = plain;
    meaning_ = matching(format.forms, flags);
    if (meaning_ == "guess") return decode_guessed(bytes);
    decode(meaning_, bytes);
    const std::string_view magic = form_by_magic(bytes);
    if (!magic.empty() && decoded_.problem.empty() && (meaning_ == "text" || meaning_ == "bytes"))
      decoded_.problem = "the flags mean " + std::string(meaning_) + ", but the value begins as " +
                         std::string(magic) + " does; --decode auto shows it";
  }

  // Tries the form that these first bytes suggest; if it fails, decodes them as text.
  void decode_guessed(std::string_view bytes) {
    decoded_.guessed = true;
    std::string plain;
    for (const std::size_t length_size : {0U, 4U}) {
      const std::string_view head = bytes.substr(std::min(length_size, bytes.size()));
      const bool zstd = head.starts_with("\x28\xb5\x2f\xfd");
      if (!zstd && !head.starts_with('\x78') && !head.starts_with("\x1f\x8b")) continue;
      const std::string form = std::string(length_size > 0 ? "sized-" : "") + (zstd ? "zstd" : "zlib");
      if (attempt([&] { plain = decompressed(form, bytes); }).failure()) continue;
      bytes = plain;
      break;
    }
    std::string_view likely = form_by_magic(bytes);
    if (likely.empty())
      likely = is_json(bytes)                      ? "json"
               : bytes.ends_with('.')              ? "pickle"
               : bytes.find('|') < bytes.find(':') ? "php-session"
                                                   : "php";
    const std::vector<std::string> encoding = decoded_.encoding;
    if (!attempt([&] { decode(likely, bytes); }).failure()) return;
    decoded_.encoding = encoding;
    decode("text", bytes);
  }

  // Returns the last rule that was applied; after a failure, the one that failed.
  std::string_view meaning() const { return meaning_; }

 private:
  std::string decompressed(std::string_view form, std::string_view bytes) {
    std::string name;
    std::string plain = values::decompress(form, bytes, max_bytes_, name);
    decoded_.encoding.push_back(name);
    return plain;
  }

  void decode(std::string_view form, std::string_view bytes) {
    if (form == "rails") {
      decoded_.json = document_.text(values::read_rails(document_, bytes, max_bytes_, decoded_.encoding));
      return;
    }
    decoded_.encoding.emplace_back(form);
    const Form* found = std::ranges::find(forms, form, &Form::name);
    if (found != std::end(forms) && found->read != nullptr) {
      decoded_.json = document_.text(found->read(document_, bytes));
    } else {
      decoded_.problem = std::string(form) + header_of(form, bytes) + " is named, not read";
    }
  }

  std::size_t max_bytes_;
  Document document_;
  DecodedValue& decoded_;
  std::string_view meaning_;
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

DecodedValue decode_value(const ValueFormat& format, std::uint32_t flags, std::string_view bytes,
                          std::size_t max_bytes) {
  DecodedValue decoded, guessed;
  Decoder decoder(max_bytes, decoded);
  const auto tried = attempt([&] { decoder.decode(format, flags, bytes); });
  if (!tried.failure()) return decoded;
  const std::string problem = "flags " + std::to_string(flags) + " mean " + std::string(decoder.meaning()) +
                              " for " + std::string(format.name) + ": " + tried.failure()->what();
  // Another client may have written the value.
  const auto other = attempt([&] { Decoder(max_bytes, guessed).decode_guessed(bytes); });
  if (!other.failure() && guessed.problem.empty() && guessed.encoding.back() != "text") decoded = guessed;
  decoded.problem = problem;
  return decoded;
}

}  // namespace mcds
