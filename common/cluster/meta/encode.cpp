#include <array>
#include <charconv>

#include "common/cluster/meta/wire.hpp"

namespace mcds::meta {

namespace {

// A line of gets stays well below the 2 KiB that older 1.6 servers look at before they have the whole line.
constexpr std::size_t longest_get_line = 1900;

void add(std::string& out, std::string_view text) { out += text; }

void add(std::string& out, std::uint64_t number) {
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), static_cast<std::size_t>(end - digits.data()));
}

void add(std::string& out, std::int64_t number) { add(out, static_cast<std::uint64_t>(number)); }
void add(std::string& out, std::uint32_t number) { add(out, std::uint64_t{number}); }

template <typename... Parts>
void line(std::string& out, const Parts&... parts) {
  (add(out, parts), ...);
  out += "\r\n";
}

void storage(std::string& out, std::string_view command, const Request& request, bool with_cas = false) {
  add(out, command);
  add(out, request.key);
  out += ' ';
  add(out, request.flags);
  out += ' ';
  add(out, request.exptime.wire());
  out += ' ';
  add(out, std::uint64_t{request.value.size()});
  if (with_cas) {
    out += ' ';
    add(out, request.cas.value);
  }
  out += "\r\n";
  out += request.value;
  out += "\r\n";
}

Command encode_gets(std::span<const Request* const> requests, std::size_t first, std::string& out) {
  const std::size_t start = out.size();
  Command command{first, 0};
  out += "get";
  while (first + command.count < requests.size()) {
    const Request& request = *requests[first + command.count];
    const bool fits = command.count == 0 || out.size() - start + 1 + request.key.size() <= longest_get_line;
    if (request.op != Op::get || !fits) break;
    out += ' ';
    out += request.key;
    ++command.count;
  }
  out += "\r\n";
  return command;
}

}  // namespace

Command encode(std::span<const Request* const> requests, std::size_t first, std::string& out, IncrForm incr_form) {
  const Request& request = *requests[first];
  switch (request.op) {
    case Op::get: return encode_gets(requests, first, out);
    case Op::gets: line(out, "mg ", request.key, " k v f c"); break;
    case Op::probe: line(out, "mg ", request.key, " k v f c t l u"); break;
    case Op::add: storage(out, "add ", request); break;
    case Op::set: storage(out, "set ", request); break;
    case Op::replace: storage(out, "replace ", request); break;
    case Op::cas: storage(out, "cas ", request, true); break;
    case Op::append:
    case Op::append_or_create: storage(out, "append ", request); break;
    case Op::incr: line(out, "incr ", request.key, " ", request.delta); break;
    case Op::decr: line(out, "decr ", request.key, " ", request.delta); break;
    case Op::touch: line(out, "touch ", request.key, " ", request.exptime.wire()); break;
    case Op::remove: line(out, "delete ", request.key); break;
    case Op::remove_if: line(out, "md ", request.key, " C", request.cas.value); break;
    case Op::incr_or_create:
      if (incr_form == IncrForm::incr_only) {
        line(out, "incr ", request.key, " ", request.delta);
        break;
      }
      // ma does not say whether it created the item; the mg before it does.
      if (incr_form == IncrForm::whole) line(out, "mg ", request.key);
      line(out, "ma ", request.key, " N", request.exptime.wire(), " J", request.initial, " D", request.delta, " v");
      break;
    case Op::version: line(out, "version"); break;
    case Op::stats: line(out, request.key.empty() ? "stats" : "stats ", request.key); break;
  }
  return {first, 1, incr_form};
}

}  // namespace mcds::meta
