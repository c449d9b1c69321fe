// Reads Python's pickle, protocols 0 to 5 (Lib/pickletools.py), without running it: a class or function
// becomes a name, shown with the arguments that it would be called with.
#include <algorithm>
#include <bit>
#include <map>

#include "common/base/bytes.hpp"
#include "common/base/text.hpp"
#include "common/values/document.hpp"

namespace mcds::values {

namespace {

using Kind = Document::Kind;

class Pickle {
 public:
  Pickle(Document& document, std::string_view bytes) : document_(document), in_(bytes) {}

  Id whole() {
    for (;;) {
      const std::uint8_t opcode = in_.byte();
      if (opcode == '.') break;
      execute(opcode);
    }
    in_.expect_end();
    return pop();
  }

 private:
  void push(Id id) {
    document_.charge(sizeof(Id));
    stack_.push_back(id);
  }
  Id& top() {
    if (stack_.size() <= floor()) in_.fail("the pickle takes more than it has put on its stack");
    return stack_.back();
  }
  Id pop() {
    const Id id = top();
    stack_.pop_back();
    return id;
  }
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  // Pops the values that were pushed since the last mark.
  std::vector<Id> pop_mark() {
    if (marks_.empty()) in_.fail("the pickle takes a mark that it has not set");
    const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<Id> ids(first, stack_.end());
    stack_.erase(first, stack_.end());
    marks_.pop_back();
    return ids;
  }
  std::vector<Id> pop_last(std::size_t count) {
    std::vector<Id> ids(count);
    while (count > 0) ids[--count] = pop();
    return ids;
  }

  Id list_of(const std::vector<Id>& ids) {
    const Id list = document_.list();
    for (const Id id : ids) document_.push(list, id);
    return list;
  }
  // Returns the list in a set or object that further elements are appended to.
  Id member_list(Id map, const char* tag) {
    const std::vector<Id>& items = document_[map].items;
    document_.charge(items.size());  // for the time it takes
    for (std::size_t i = 0; i + 1 < items.size(); i += 2)
      if (document_.is_json(items[i], std::string("\"") + tag + '"')) return items[i + 1];
    const Id list = document_.list();
    document_.tag(map, tag, list);
    return list;
  }
  void add_items(Id map, const std::vector<Id>& ids) {
    if (document_[map].kind != Kind::map || ids.size() % 2 != 0) in_.fail("names and values for no mapping");
    for (std::size_t i = 0; i < ids.size(); i += 2) document_.member(map, ids[i], ids[i + 1]);
  }
  // Adds elements to a list, a set, or the result of a call.
  void add_elements(Id container, const std::vector<Id>& ids, const char* tag) {
    const Kind kind = document_[container].kind;
    if (kind != Kind::list && kind != Kind::map) in_.fail("elements for no list");
    const Id list = kind == Kind::list ? container : member_list(container, tag);
    if (document_[list].kind != Kind::list) in_.fail("elements for no list");
    for (const Id id : ids) document_.push(list, id);
  }

  // Returns a class or function: a name that may be called.
  Id global(std::string_view module, std::string_view name) {
    const Id id = document_.tagged("@global", document_.bytes(std::string(module) + '.' + std::string(name)));
    document_[id].text = std::string(module) + '.' + std::string(name);
    return id;
  }
  bool is_global(Id id, std::initializer_list<std::string_view> names) {
    return document_[id].kind == Kind::map && std::ranges::find(names, document_[id].text) != names.end();
  }

  // Returns the result of calling `function` if that is known to be plain data; otherwise shows the call.
  Id call(Id function, Id arguments) {
    if (document_[function].kind != Kind::map || document_[function].text.empty())
      in_.fail("a call of no function");
    const std::vector<Id> given =
        document_[arguments].kind == Kind::list ? document_[arguments].items : std::vector<Id>();
    const bool first_is = !given.empty();
    const Kind kind = first_is ? document_[given[0]].kind : Kind::json;
    if (is_global(function, {"_codecs.encode"}) && kind == Kind::bytes && is_latin1_call(given))
      return document_.latin1(given[0]);
    if (is_global(function,
                  {"builtins.bytes", "__builtin__.bytes", "builtins.bytearray", "__builtin__.bytearray"})) {
      if (!first_is) return document_.bytes("");
      if (kind == Kind::bytes) return is_latin1_call(given) ? document_.latin1(given[0]) : given[0];
    }
    if (is_global(function,
                  {"builtins.set", "__builtin__.set", "builtins.frozenset", "__builtin__.frozenset"}))
      if (!first_is || kind == Kind::list)
        return document_.tagged("@set", first_is ? given[0] : document_.list());
    if (is_global(function, {"collections.OrderedDict"}) && !first_is) return document_.map();
    if (is_global(function, {"copy_reg.__newobj__", "copyreg.__newobj__"}) && kind == Kind::map)
      return object(given[0], list_of({given.begin() + 1, given.end()}));
    if (is_global(function, {"copy_reg._reconstructor", "copyreg._reconstructor"}) && kind == Kind::map) {
      const Id made = object(given[0], document_.list());
      if (given.size() < 3 || document_.is_json(given[2], "null")) return made;
      if (document_[given[2]].kind == Kind::list) {
        document_.tag(made, "@items", given[2]);
      } else {
        build(made, given[2]);
      }
      return made;
    }
    const Id made = document_.map();
    document_.charge(document_[function].items.size() * sizeof(Id));
    document_[made].items = document_[function].items;
    document_[made].text = "call";
    document_.tag(made, "args", arguments);
    return made;
  }
  bool is_latin1_call(const std::vector<Id>& given) {
    return given.size() == 2 && document_[given[1]].text.starts_with("latin");
  }

  Id object(Id class_of, Id arguments) {
    const Document::Value& name = document_[class_of];
    const Id made = document_.object(name.kind == Kind::map ? std::string(name.text) : "?");
    if (document_[arguments].kind != Kind::list || !document_[arguments].items.empty())
      document_.tag(made, "@args", arguments);
    return made;
  }

  // Sets the state of an object, as opcode BUILD does. A dictionary, or a pair of it and one for __slots__,
  // becomes members of the object; any other state becomes a single member.
  void build(Id target, Id state) {
    if (document_[target].kind != Kind::map) in_.fail("a state for no object");
    const auto is_members = [&](Id id) {
      return document_[id].kind == Kind::map && document_[id].text.empty();
    };
    std::vector<Id> parts{state};
    if (document_[state].kind == Kind::list && document_[state].items.size() == 2)
      parts = document_[state].items;
    bool all = document_[target].text != "call";
    for (const Id part : parts) all = all && (is_members(part) || document_.is_json(part, "null"));
    if (!all) return document_.tag(target, document_[target].text == "call" ? "state" : "@state", state);
    for (const Id part : parts) {
      if (part == target || !is_members(part)) continue;
      document_.charge(document_[part].items.size() * sizeof(Id));
      const std::vector<Id> items = document_[part].items;
      add_items(target, items);
    }
  }

  Id integer(std::int64_t value) { return document_.json(std::to_string(value)); }
  Id line_integer(std::string_view line) {
    if (line.ends_with('L')) line.remove_suffix(1);
    if (line == "00" || line == "01") return document_.boolean(line == "01");
    if (const auto id = document_.integer(line)) return *id;
    in_.fail("an integer is expected");
  }
  Id signed_integer(std::string_view little_endian) {
    const bool negative = !little_endian.empty() && static_cast<std::uint8_t>(little_endian.back()) >= 0x80;
    std::string magnitude(little_endian.substr(0, 8192));
    for (std::size_t i = 0, carry = 1; negative && i < magnitude.size(); ++i) {
      carry += static_cast<std::uint8_t>(~static_cast<std::uint8_t>(magnitude[i]));
      magnitude[i] = static_cast<char>(carry);
      carry >>= 8;
    }
    return document_.big_integer(magnitude, negative);
  }

  // Reads a literal of protocol 0: repr() of a string of Python 2, or the escapes of "raw-unicode-escape".
  Id literal(std::string_view line, bool unicode) {
    if (!unicode) {
      if (line.size() < 2 || line.front() != line.back() || (line.front() != '\'' && line.front() != '"'))
        in_.fail("a quoted string is expected");
      line = line.substr(1, line.size() - 2);
    }
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const char c = line[i], next = i + 1 < line.size() ? line[i + 1] : '\0';
      const std::size_t digits = c != '\\'                 ? 0
                                 : next == 'u' && unicode  ? 4
                                 : next == 'U' && unicode  ? 8
                                 : next == 'x' && !unicode ? 2
                                                           : 0;
      if (digits > 0) {
        const std::string_view hex = line.substr(i + 2, digits);
        const auto code = hex.size() == digits
                              ? parse_hex64(lower_case(std::string(16 - digits, '0').append(hex)))
                              : std::nullopt;
        if (!code) in_.fail("an escape is broken");
        unicode ? append_utf8(text, static_cast<std::uint32_t>(*code))
                : void(text += static_cast<char>(*code));
        i += 1 + digits;
      } else if (unicode) {
        append_utf8(text, static_cast<std::uint8_t>(c));
      } else if (c == '\\') {
        text += next == 'n' ? '\n' : next == 'r' ? '\r' : next == 't' ? '\t' : next;
        ++i;
      } else {
        text += c;
      }
    }
    return document_.bytes(text);
  }
  void put(std::uint64_t number) {
    document_.charge(48);
    memo_[number] = top();
  }
  void get(std::uint64_t number) {
    const auto found = memo_.find(number);
    if (found == memo_.end()) in_.fail("the pickle takes what it has not stored");
    push(found->second);
  }
  std::uint64_t line_number() {
    const auto number = parse_u64(in_.until('\n'));
    if (!number) in_.fail("a number is expected");
    return *number;
  }
  std::string text_of(Id id) {
    if (document_[id].kind != Kind::bytes) in_.fail("a name is expected");
    document_.charge(document_[id].text.size());
    return document_[id].text;
  }

  void execute(std::uint8_t opcode) {
    Id made = 0;
    if (is_scalar(opcode, made) || is_call(opcode, made)) return push(made);
    if (changes_container(opcode)) return;
    switch (opcode) {
      case 0x80: in_.byte(); return;   // protocol
      case 0x95: in_.take(8); return;  // frame
      case '(': document_.charge(sizeof(std::size_t)); return marks_.push_back(stack_.size());
      case '0': pop(); return;
      case '1': pop_mark(); return;
      case '2': return push(top());
      case 'p': return put(line_number());
      case 'q': return put(in_.byte());
      case 'r': return put(in_.little(4));
      case 0x94: return put(memo_.size());
      case 'g': return get(line_number());
      case 'h': return get(in_.byte());
      case 'j': return get(in_.little(4));
      default: in_.fail("an unsupported opcode " + std::to_string(opcode) + " ends");
    }
  }

  // Each of the next three returns true if it knows the opcode. This one reads numbers and strings.
  bool is_scalar(std::uint8_t opcode, Id& made) {
    switch (opcode) {
      case 'N': return made = document_.null(), true;
      case 0x88:
      case 0x89: return made = document_.boolean(opcode == 0x88), true;
      case 'I':
      case 'L': return made = line_integer(in_.until('\n')), true;
      case 'J': return made = integer(static_cast<std::int32_t>(in_.little(4))), true;
      case 'K': return made = integer(in_.byte()), true;
      case 'M': return made = integer(static_cast<std::int64_t>(in_.little(2))), true;
      case 0x8a: return made = signed_integer(in_.take(in_.byte())), true;
      case 0x8b: return made = signed_integer(in_.take(in_.little(4))), true;
      case 'F':
        if (const auto value = document_.real(in_.until('\n'))) return made = *value, true;
        in_.fail("a number is expected");
      case 'G': return made = document_.real(std::bit_cast<double>(in_.big(8))), true;
      case 'S':
      case 'V': return made = literal(in_.until('\n'), opcode == 'V'), true;
      case 'T':
      case 'B':
      case 'X': return made = document_.bytes(in_.take(in_.little(4))), true;
      case 'U':
      case 'C':
      case 0x8c: return made = document_.bytes(in_.take(in_.byte())), true;
      case 0x8d:
      case 0x8e:
      case 0x96: return made = document_.bytes(in_.take(in_.little(8))), true;
      default: return false;
    }
  }

  // Makes containers and names of classes and functions, and shows calls.
  bool is_call(std::uint8_t opcode, Id& made) {
    std::vector<Id> ids;
    switch (opcode) {
      case ']':
      case ')': return made = document_.list(), true;
      case 'l':
      case 't': return made = list_of(pop_mark()), true;
      case 0x85:
      case 0x86:
      case 0x87: return made = list_of(pop_last(opcode - 0x84U)), true;
      case '}':
      case 'd':
        made = document_.map();
        if (opcode == 'd') add_items(made, pop_mark());
        return true;
      case 0x8f: return made = document_.tagged("@set", document_.list()), true;
      case 0x91: return made = document_.tagged("@set", list_of(pop_mark())), true;
      case 'c':
      case 'i': {
        const std::string_view module = in_.until('\n');
        made = global(module, in_.until('\n'));
        if (opcode == 'i') made = object(made, list_of(pop_mark()));
        return true;
      }
      case 0x93: ids = pop_last(2); return made = global(text_of(ids[0]), text_of(ids[1])), true;
      case 'o':
        ids = pop_mark();
        if (ids.empty()) in_.fail("a class is expected");
        return made = object(ids[0], list_of({ids.begin() + 1, ids.end()})), true;
      case 'R': ids = pop_last(2); return made = call(ids[0], ids[1]), true;
      case 0x81: ids = pop_last(2); return made = object(ids[0], ids[1]), true;
      case 0x92:
        ids = pop_last(3);
        made = object(ids[0], ids[1]);
        if (!document_[ids[2]].items.empty()) document_.tag(made, "@kwargs", ids[2]);
        return true;
      case 'P': return made = document_.tagged("@persistent", document_.bytes(in_.until('\n'))), true;
      case 'Q': return made = document_.tagged("@persistent", pop()), true;
      default: return false;
    }
  }

  bool changes_container(std::uint8_t opcode) {
    const bool marked = opcode == 'e' || opcode == 'u' || opcode == 0x90;
    if (!marked && opcode != 'a' && opcode != 's' && opcode != 'b') return false;
    const std::vector<Id> ids = marked ? pop_mark() : pop_last(opcode == 's' ? 2 : 1);
    if (opcode == 'b') {
      build(top(), ids[0]);
    } else if (opcode == 's' || opcode == 'u') {
      add_items(top(), ids);
    } else {
      add_elements(top(), ids, opcode == 0x90 ? "@set" : "@items");
    }
    return true;
  }

  Document& document_;
  Input in_;
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;
  std::map<std::uint64_t, Id> memo_;
};

}  // namespace

Id read_pickle(Document& document, std::string_view bytes) {
  return Pickle(document, bytes).whole();
}

}  // namespace mcds::values
