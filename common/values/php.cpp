// Reads PHP's serialize() (ext/standard/var_unserializer.re), the sessions of its handler "php", and igbinary
// 1 and 2 (github.com/igbinary/igbinary).
#include <bit>
#include <set>

#include "common/base/bytes.hpp"
#include "common/values/document.hpp"

namespace mcds::values {

namespace {

// Base of both readers: builds arrays and objects, and resolves references to them.
class PhpReader {
 protected:
  PhpReader(Document& document, std::string_view bytes) : document_(document), in_(bytes) {}

  void deeper() {
    if (++depth_ > max_depth) in_.fail("nested too deep");
  }
  // Adds an element. An array is a list if its keys are 0, 1, 2, …, as for json_encode().
  void element(Id map, std::size_t i, Id name, Id value) {
    if (!document_.is_json(name, std::to_string(i))) lists_.erase(map);
    document_.member(map, name, value);
  }
  Id open_array() {
    const Id map = document_.map();
    lists_.insert(map);
    return map;
  }
  void close_array(Id map) {
    if (lists_.erase(map) == 0) return;
    Document::Value& value = document_[map];
    value.kind = Document::Kind::list;
    std::size_t kept = 0;
    for (std::size_t i = 1; i < value.items.size(); i += 2) value.items[kept++] = value.items[i];
    value.items.resize(kept);
  }
  // Removes the class or asterisk between NULs from the name of a private or protected member.
  Id member_name(Id name) {
    std::string& text = document_[name].text;
    const std::size_t end = text.starts_with('\0') ? text.find('\0', 1) : std::string::npos;
    if (end != std::string::npos) text.erase(0, end + 1);
    return name;
  }

  // Returns the n-th value, for a reference to it. Throws CorruptData if that has not been read.
  Id slot(std::uint64_t n) const {
    if (n >= slots_.size() || slots_[static_cast<std::size_t>(n)] == unread)
      in_.fail("a reference to nothing");
    return slots_[static_cast<std::size_t>(n)];
  }

  static constexpr Id unread = ~Id{0};
  Document& document_;
  Input in_;
  std::vector<Id> slots_;  // the values that references count
  std::size_t depth_ = 0;  // not decremented after a failure, which ends the reading

 private:
  std::set<Id> lists_;
};

class PhpText : PhpReader {
 public:
  PhpText(Document& document, std::string_view bytes) : PhpReader(document, bytes) {}

  Id whole() {
    const Id value = read();
    in_.expect_end();
    return value;
  }

  // Reads NAME|VALUE, one after the other.
  Id session() {
    const Id map = document_.map();
    while (in_.left() > 0) {
      const Id name = document_.bytes(in_.until('|'));
      document_.member(map, name, read());
    }
    return map;
  }

 private:
  std::uint64_t length(char end = ':') {
    const auto number = parse_u64(in_.until(end));
    if (!number) in_.fail("a length is expected");
    return *number;
  }
  std::string_view quoted(char close) {
    const std::uint64_t size = length();
    in_.expect("\"");
    const std::string_view text = in_.take(size);
    in_.expect("\"");
    in_.expect({&close, 1});
    return text;
  }

  Id number(bool integer) {
    const std::string_view text = in_.until(';');
    if (const auto value = integer ? document_.integer(text) : document_.real(text)) return *value;
    in_.fail("a number is expected");
  }

  // Reads the members of an array or object, between braces.
  void members(Id map, bool object) {
    const std::uint64_t count = length();
    in_.expect("{");
    for (std::uint64_t i = 0; i < count; ++i) {
      const Id name = read(true);
      const Id value = read();
      object ? document_.member(map, member_name(name), value) : element(map, i, name, value);
    }
    in_.expect("}");
  }

  Id read(bool is_name = false) {
    deeper();
    const char type = static_cast<char>(in_.byte());
    in_.expect(type == 'N' ? ";" : ":");
    if (is_name && type != 'i' && type != 's') in_.fail("a name is expected");
    const std::size_t own = slots_.size();
    if (!is_name && type != 'R') slots_.push_back(unread);
    const Id value = read(type);
    // An array or object has its slot set already: it may refer to itself.
    if (!is_name && type != 'R') slots_[own] = value;
    --depth_;
    return value;
  }

  Id read(char type) {
    const std::size_t here = slots_.size() - 1;
    switch (type) {
      case 'N': return document_.null();
      case 'b': return document_.boolean(in_.until(';') != "0");
      case 'i': return number(true);
      case 'd': return number(false);
      case 's': return document_.bytes(quoted(';'));
      case 'a': {
        const Id map = slots_[here] = open_array();
        members(map, false);
        close_array(map);
        return map;
      }
      case 'O': {
        const Id object = slots_[here] = document_.object(quoted(':'));
        members(object, true);
        return object;
      }
      case 'C': {  // the class has its own format
        const Id object = document_.object(quoted(':'));
        const std::uint64_t size = length();
        in_.expect("{");
        document_.tag(object, "@data", document_.bytes(in_.take(size)));
        in_.expect("}");
        return object;
      }
      case 'E': {
        const std::string_view name = quoted(';');
        const Id object = document_.object(name.substr(0, name.find(':')));
        document_.tag(object, "@enum", document_.bytes(name.substr(name.find(':') + 1)));
        return object;
      }
      case 'r':
      case 'R': return slot(length(';') - 1);
      default: in_.fail("a type that PHP's serialize() does not write ends");
    }
  }
};

class Igbinary : PhpReader {
 public:
  Igbinary(Document& document, std::string_view bytes) : PhpReader(document, bytes) {}

  Id whole() {
    const std::uint64_t version = in_.big(4);
    if (version != 1 && version != 2) in_.fail("version 1 or 2 of igbinary is expected");
    const Id value = read(in_.byte());
    in_.expect_end();
    return value;
  }

 private:
  // Returns the size of the number after a type: of three types in a row it is 1, 2 and 4 bytes.
  static std::size_t width(std::uint8_t type, std::uint8_t first) { return std::size_t{1} << (type - first); }

  Id integer(std::uint8_t type) {
    const std::size_t size = type >= 0x20 ? 8 : std::size_t{1} << (type - 0x06) / 2;
    const std::string text = std::to_string(in_.big(size));
    return *document_.integer(type % 2 == 1 && text != "0" ? '-' + text : text);
  }

  // Reads a string, or a reference to an earlier one.
  std::string_view string(std::uint8_t type) {
    if (type == 0x0d) return {};
    if (type >= 0x0e && type <= 0x10) {
      const std::uint64_t number = in_.big(width(type, 0x0e));
      if (number >= strings_.size()) in_.fail("a reference to no string");
      return strings_[static_cast<std::size_t>(number)];
    }
    if ((type < 0x11 || type > 0x13) && type != 0x26) in_.fail("a string is expected");
    strings_.push_back(in_.take(in_.big(type == 0x26 ? 8 : width(type, 0x11))));
    return strings_.back();
  }

  void members(Id map, std::uint8_t type, bool object) {
    if (type < 0x14 || type > 0x16) in_.fail("an array is expected");
    const std::uint64_t count = in_.big(width(type, 0x14));
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint8_t key = in_.byte();
      const bool number = (key >= 0x06 && key <= 0x0b) || key == 0x20 || key == 0x21;
      const Id name = number ? integer(key) : document_.bytes(string(key));
      const Id value = read(in_.byte());
      object ? document_.member(map, member_name(name), value) : element(map, i, name, value);
    }
  }

  Id object(std::uint8_t type) {
    std::string_view name;
    if (type <= 0x19) {
      strings_.push_back(in_.take(in_.big(width(type, 0x17))));
      name = strings_.back();
    } else {
      name = string(static_cast<std::uint8_t>(type - 0x1a + 0x0e));
    }
    const Id object = document_.object(name);
    slots_.push_back(object);
    const std::uint8_t next = in_.byte();
    if (next >= 0x1d && next <= 0x1f) {
      document_.tag(object, "@data", document_.bytes(in_.take(in_.big(width(next, 0x1d)))));
    } else if (next == 0x27) {
      document_.tag(object, "@enum", document_.bytes(string(in_.byte())));
    } else {
      members(object, next, true);
    }
    return object;
  }

  Id read(std::uint8_t type) {
    deeper();
    const Id value = read_type(type);
    --depth_;
    return value;
  }

  Id read_type(std::uint8_t type) {
    if (type == 0x00) return document_.null();
    if (type == 0x04 || type == 0x05) return document_.boolean(type == 0x05);
    if ((type >= 0x06 && type <= 0x0b) || type == 0x20 || type == 0x21) return integer(type);
    if (type == 0x0c) return document_.real(std::bit_cast<double>(in_.big(8)));
    if (type <= 0x03 || (type >= 0x22 && type <= 0x24)) {
      return slot(in_.big(width(type, type <= 0x03 ? 0x01 : 0x22)));
    }
    if (type >= 0x14 && type <= 0x16) {
      const Id map = open_array();
      slots_.push_back(map);
      members(map, type, false);
      close_array(map);
      return map;
    }
    if (type >= 0x17 && type <= 0x1c) return object(type);
    if (type != 0x25) return document_.bytes(string(type));
    // A PHP reference has a number. Arrays and objects have theirs anyway, other values get it here.
    const std::uint8_t next = in_.byte();
    const bool counts = (next >= 0x14 && next <= 0x1c) || next <= 0x03 || (next >= 0x22 && next <= 0x24);
    const std::size_t own = slots_.size();
    if (!counts) slots_.push_back(unread);
    const Id value = read(next);
    if (!counts) slots_[own] = value;
    return value;
  }

  std::vector<std::string_view> strings_;
};

}  // namespace

Id read_php(Document& document, std::string_view bytes) {
  return PhpText(document, bytes).whole();
}

Id read_php_session(Document& document, std::string_view bytes) {
  return PhpText(document, bytes).session();
}

Id read_igbinary(Document& document, std::string_view bytes) {
  return Igbinary(document, bytes).whole();
}

}  // namespace mcds::values
