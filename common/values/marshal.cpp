// Reads Ruby's Marshal 4.8 (marshal.c), and the entries that ActiveSupport::Cache::MemCacheStore stores in
// it: objects of the class Entry (Rails 6.1), or strings of a mark and a packed entry (7.0), or of a
// signature, a type, expiry, version and payload (7.1, activesupport/lib/active_support/cache/coder.rb).
#include "common/base/bytes.hpp"
#include "common/base/text.hpp"
#include "common/values/document.hpp"

namespace mcds::values {

namespace {

using Kind = Document::Kind;

class Marshal {
 public:
  Marshal(Document& document, std::string_view bytes) : document_(document), in_(bytes) {}

  Id whole() {
    in_.expect("\x04\x08");
    const Id value = read();
    in_.expect_end();
    return value;
  }

 private:
  std::int64_t fixnum() {
    const auto c = static_cast<std::int8_t>(in_.byte());
    if (c == 0) return 0;
    if (c > 4) return c - 5;
    if (c < -4) return c + 5;
    const auto size = static_cast<std::size_t>(c > 0 ? c : -c);
    const auto value = static_cast<std::int64_t>(in_.little(size));
    return c > 0 ? value : value - (std::int64_t{1} << 8 * size);
  }
  std::uint64_t count() {
    const std::int64_t number = fixnum();
    if (number < 0) in_.fail("a count below 0");
    return static_cast<std::uint64_t>(number);
  }
  std::string_view string() { return in_.take(count()); }

  std::string_view symbol() { return symbol(static_cast<char>(in_.byte())); }
  std::string_view symbol(char type) {
    if (type == 'I') {
      if (++depth_ > max_depth) in_.fail("nested too deep");
      const std::string_view name = symbol();
      for (std::uint64_t left = count(); left > 0; --left) {
        symbol();
        read();
      }
      --depth_;
      return name;
    }
    if (type == ';') {
      const std::uint64_t number = count();
      if (number >= symbols_.size()) in_.fail("a link to no symbol");
      return symbols_[static_cast<std::size_t>(number)];
    }
    if (type != ':') in_.fail("a symbol is expected");
    document_.charge(sizeof(std::string_view));
    symbols_.push_back(string());
    return symbols_.back();
  }

  Id keep(Id id) {
    document_.charge(sizeof(Id));
    objects_.push_back(id);
    return id;
  }

  // Adds instance variables to an object. Those of a string name its encoding and are not shown.
  void variables(Id target) {
    for (std::uint64_t left = count(); left > 0; --left) {
      std::string_view name = symbol();
      const Id value = read();
      if (document_[target].kind != Kind::map || name == "E" || name == "encoding") continue;
      if (name.starts_with('@')) name.remove_prefix(1);
      document_.member(target, document_.bytes(name), value);
    }
  }
  Id read() {
    if (++depth_ > max_depth) in_.fail("nested too deep");
    bool has_variables = in_.left() > 0 && in_.rest().front() == 'I';
    if (has_variables) in_.byte();
    const Id value = read(static_cast<char>(in_.byte()), has_variables);
    if (has_variables) variables(value);
    --depth_;
    return value;
  }

  // Reads a value of this type. If instance variables stand inside it, `has_variables` becomes false.
  Id read(char type, bool& has_variables) {
    switch (type) {
      case '0': return document_.null();
      case 'T': return document_.boolean(true);
      case 'F': return document_.boolean(false);
      case 'i': return document_.json(std::to_string(fixnum()));
      case 'l': {
        const bool negative = in_.byte() == '-';
        return keep(document_.big_integer(in_.take(count() * 2), negative));
      }
      case 'f':
        if (const auto value = document_.real(string())) return keep(*value);
        in_.fail("a number is expected");
      case '"': return keep(document_.bytes(string()));
      case ':':
      case ';': return document_.bytes(symbol(type));
      case '@': {
        const std::uint64_t number = count();
        if (number >= objects_.size()) in_.fail("a link to no object");
        return objects_[static_cast<std::size_t>(number)];
      }
      case 'C':  // a string, array or hash of another class: shown without it
      case 'e': symbol(); return read();
      case 'c':
      case 'm':
      case 'M': return keep(document_.tagged("@global", document_.bytes(string())));
      default: return read_container(type, has_variables);
    }
  }

  Id read_container(char type, bool& has_variables) {
    if (type == '[') {
      const Id list = keep(document_.list());
      for (std::uint64_t left = count(); left > 0; --left) document_.push(list, read());
      return list;
    }
    if (type == '{' || type == '}') {
      const Id map = keep(document_.map());
      for (std::uint64_t left = count(); left > 0; --left) {
        const Id name = read();
        document_.member(map, name, read());
      }
      if (type == '}') read();  // the default value
      return map;
    }
    // Ruby numbers a Regexp before its variables, and what a class has dumped itself after them.
    if (type == '/' || type == 'u') {
      const Id made = type == '/' ? keep(document_.map()) : document_.object(symbol());
      document_.tag(made, type == '/' ? "@regexp" : "@data", document_.bytes(string()));
      if (type == '/') in_.byte();
      if (std::exchange(has_variables, false)) variables(made);
      return type == '/' ? made : keep(made);
    }
    if (type != 'o' && type != 'S' && type != 'U')
      in_.fail("an unsupported type " + in_quotes({&type, 1}) + " ends");
    const Id object = keep(document_.object(symbol()));
    if (type == 'U') document_.tag(object, "@data", read());
    if (type != 'U') variables(object);  // the members of a Struct are written alike
    return object;
  }

  Document& document_;
  Input in_;
  std::vector<std::string_view> symbols_;
  std::vector<Id> objects_;
  std::size_t depth_ = 0;
};

// Returns the value of a member of an object, or nullopt.
std::optional<Id> member_of(Document& document, Id object, std::string_view name) {
  const std::vector<Id>& items = document[object].items;
  for (std::size_t i = 0; i + 1 < items.size(); i += 2)
    if (document[items[i]].text == name) return items[i + 1];
  return {};
}

Id inflated_marshal(Document& document, std::string_view bytes, std::size_t max_bytes,
                    std::vector<std::string>& encoding) {
  encoding.emplace_back("zlib");
  const std::string plain = decompress("zlib", bytes, max_bytes, encoding.back());
  encoding.emplace_back("marshal");
  return read_marshal(document, plain);
}

}  // namespace

Id read_marshal(Document& document, std::string_view bytes) {
  return Marshal(document, bytes).whole();
}

Id read_rails(Document& document, std::string_view bytes, std::size_t max_bytes,
              std::vector<std::string>& encoding) {
  std::string payload(bytes);
  if (bytes.starts_with("\x04\x08")) {
    encoding.push_back("marshal");
    const Id outer = read_marshal(document, bytes);
    if (document[outer].kind == Kind::map && document[outer].text == "ActiveSupport::Cache::Entry") {
      encoding.push_back("rails-6.1");
      const auto value = member_of(document, outer, "value");
      if (!value) return document.null();
      const auto compressed = member_of(document, outer, "compressed");
      if (!compressed || !document.is_json(*compressed, "true")) return *value;
      return inflated_marshal(document, std::string(document[*value].text), max_bytes, encoding);
    }
    if (document[outer].kind != Kind::bytes) return outer;
    payload = document[outer].text;
  }
  using namespace std::string_view_literals;
  Input in(payload);
  if (payload.starts_with("\0\x11"sv)) {
    encoding.push_back("rails-7.1");
    in.take(2);
    const std::uint8_t type = in.byte();
    in.take(8);  // the expiry
    const auto version = static_cast<std::int32_t>(in.little(4));
    if (version > 0) in.take(static_cast<std::uint64_t>(version));
    std::string plain(in.rest());
    if (type >= 0x80) {
      encoding.emplace_back("zlib");
      plain = decompress("zlib", in.rest(), max_bytes, encoding.back());
    }
    if (type % 0x80 != 1) return document.bytes(plain);
    encoding.push_back("marshal");
    return read_marshal(document, plain);
  }
  if (payload.starts_with("\0\x04"sv) || payload.starts_with("\x01\x78"sv)) {
    encoding.push_back("rails-7.0");
    const bool compressed = in.byte() == 1;
    if (!compressed) encoding.push_back("marshal");
    const Id entry = compressed ? inflated_marshal(document, in.rest(), max_bytes, encoding)
                                : read_marshal(document, in.rest());
    if (document[entry].kind != Kind::list || document[entry].items.empty()) return document.null();
    return document[entry].items.front();
  }
  if (encoding.empty()) encoding.emplace_back("text");
  return document.bytes(payload);
}

}  // namespace mcds::values
