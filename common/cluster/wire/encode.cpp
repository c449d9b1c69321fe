#include <array>
#include <charconv>

#include "common/base/bytes.hpp"
#include "common/cluster/wire/wire.hpp"

namespace mcds::meta {

namespace {

// A line of gets must stay well below the 2 KiB that 1.6 servers search for the end of a line; before 1.6.13
// they search 1 KiB.
constexpr std::size_t max_get_line_length = 1900;
constexpr std::size_t max_short_line_length = 1000;
// Servers apply the limit of 250 bytes to the encoded key.
constexpr std::size_t max_in_base64 = max_key_size / 4 * 3;
// An absolute time in 1970: the item expires at once.
constexpr const char* long_ago = "2592001";

std::string text(std::uint64_t number) {
  return std::to_string(number);
}
std::string text(Exptime exptime) {
  return std::to_string(exptime.wire());
}

void storage(std::string& out, std::string_view command, const Request& request,
             std::string_view extra = {}) {
  std::array<char, 64> numbers;
  char* to = numbers.data();
  char* const end = to + numbers.size();
  for (const std::int64_t number : {std::int64_t{request.flags}, request.exptime.wire(),
                                    static_cast<std::int64_t>(request.value.size())}) {
    *to++ = ' ';
    to = std::to_chars(to, end, number).ptr;
  }
  const std::string_view said(numbers.data(), static_cast<std::size_t>(to - numbers.data()));
  append_all(out, {command, " ", request.key, said, extra, "\r\n", request.value, "\r\n"});
}

Command encode_gets(std::span<const Request* const> requests, std::size_t first, std::string& out,
                    const RequestFormat& format) {
  const std::size_t longest = format.long_lines ? max_get_line_length : max_short_line_length;
  const std::size_t start = out.size();
  const Op op = requests[first]->op;
  Command command{first, 0, format};
  out += op == Op::get ? "get" : "gets";
  while (first + command.count < requests.size()) {
    const Request& request = *requests[first + command.count];
    const bool fits = command.count == 0 || out.size() - start + 1 + request.key.size() <= longest;
    const bool wanted = command.count == 0 || !format.one_key_a_line;
    if (request.op != op || !fits || !wanted || is_in_base64(request)) break;
    append_all(out, {" ", request.key});
    ++command.count;
  }
  out += "\r\n";
  return command;
}

bool stores(Op op) {
  return op == Op::add || op == Op::set || op == Op::replace;
}

void encode_in_base64(const Request& request, std::string& out) {
  if (stores(request.op)) {
    const char* mode = request.op == Op::add ? " ME\r\n" : request.op == Op::replace ? " MR\r\n" : " MS\r\n";
    append_all(out, {"ms ", base64(request.key), " ", text(request.value.size()), " b F", text(request.flags),
                     " T", text(request.exptime), mode, request.value, "\r\n"});
    return;
  }
  const bool removes = request.op == Op::remove || request.op == Op::remove_if;
  append_all(out, {removes ? "md " : "mg ", base64(request.key), " b"});
  if (request.op == Op::touch) append_all(out, {" T", text(request.exptime)});
  if (request.op == Op::remove_if) append_all(out, {" C", text(request.cas.value)});
  if (request.op != Op::touch && !removes)
    append_all(out, {" v f c O", opaque_of(request), request.op == Op::probe ? " t l u" : ""});
  out += "\r\n";
}

// Below the size of a TLS record, so that no record ends between two of these commands.
constexpr std::size_t max_added_at_once = 8 * 1024;

Command encode_adds(std::span<const Request* const> requests, std::size_t first, std::string& out,
                    const RequestFormat& format) {
  const std::size_t longest = format.long_lines ? max_get_line_length : max_short_line_length;
  const std::size_t start = out.size();
  Command command{first, 0, format};
  std::string line = format.shows_cas ? "gets" : "get";
  while (first + command.count < requests.size()) {
    const Request& request = *requests[first + command.count];
    const std::size_t bytes = out.size() - start + request.key.size() + request.value.size();
    const bool fits = bytes <= max_added_at_once && line.size() + 1 + request.key.size() <= longest;
    if (request.op != Op::add_and_get || is_in_base64(request)) break;
    if (command.count > 0 && (!fits || format.one_key_a_line)) break;
    storage(out, "add", request, format.quiet ? " noreply" : "");
    append_all(line, {" ", request.key});
    ++command.count;
  }
  append_all(out, {line, "\r\n"});
  command.read_back = line.size() + 2;
  return command;
}

void encode_incr_or_create(const Request& request, std::string& out, IncrForm form) {
  if (form == IncrForm::incr_only)
    return append_all(out, {"incr ", request.key, " ", text(request.delta), "\r\n"});
  // ma reports neither whether it created the item nor whether the old value was a number; the mg before it
  // does. The mg must not count as a use (`u`): a full server refuses the ma until it has moved the item.
  if (form == IncrForm::whole) append_all(out, {"mg ", request.key, " k v f c t u\r\n"});
  append_all(out, {"ma ", request.key});
  if (request.creates) append_all(out, {" N", text(request.exptime), " J", text(request.initial)});
  append_all(out, {" D", text(request.delta), " v c\r\n"});
}

// Encodes a request that does not share its command with others.
void encode_one(const Request& request, std::string& out, const RequestFormat& format) {
  switch (request.op) {
    case Op::gets:
    case Op::probe:
      return append_all(out, {format.meta ? "mg " : "gets ", request.key, format.meta ? " k v f c" : "",
                              format.meta && request.op == Op::probe ? " t l u\r\n" : "\r\n"});
    case Op::add:
    case Op::set:
    case Op::replace: return storage(out, name_of(request.op), request);
    case Op::cas: return storage(out, "cas", request, " " + text(request.cas.value));
    case Op::append:
    case Op::append_or_create: return storage(out, "append", request);
    case Op::incr:
    case Op::decr:
      return append_all(
          out, {request.op == Op::incr ? "incr " : "decr ", request.key, " ", text(request.delta), "\r\n"});
    case Op::touch: return append_all(out, {"touch ", request.key, " ", text(request.exptime), "\r\n"});
    case Op::remove: return append_all(out, {"delete ", request.key, "\r\n"});
    case Op::remove_if:
      if (format.meta && format.compares_in_md)
        return append_all(out, {"md ", request.key, " C", text(request.cas.value), "\r\n"});
      return append_all(out,
                        {"cas ", request.key, " 0 ", long_ago, " 0 ", text(request.cas.value), "\r\n\r\n"});
    case Op::incr_or_create: return encode_incr_or_create(request, out, format.incr_form);
    case Op::version: return append_all(out, {"version\r\n"});
    case Op::stats: return append_all(out, {request.key.empty() ? "stats" : "stats ", request.key, "\r\n"});
    case Op::get:
    case Op::add_and_get: break;  // encoded as runs
  }
}

}  // namespace

bool is_in_base64(const Request& request) {
  return request.op != Op::version && request.op != Op::stats && !is_one_word(request.key);
}

std::string opaque_of(const Request& request) {
  return checksum(request.key);
}

std::string_view unsupported_reason(const RequestFormat& format, const Request& request) {
  if (!is_in_base64(request)) {
    const bool creates = request.op == Op::incr_or_create && format.incr_form != IncrForm::incr_only;
    return creates && !format.meta ? "the server has no meta commands" : "";
  }
  if (!goes_in_base64(request.op))
    return "a key with spaces or control characters can be read, touched, removed, added and set here, not "
           "changed "
           "otherwise; use a client of the binary protocol";
  // Base64 keys and long lines are supported from the same version on, which must be known.
  const bool is_known = format.meta && format.long_lines;
  if (!format.meta || (stores(request.op) && !is_known) ||
      (request.op == Op::remove_if && !format.compares_in_md))
    return "the key has spaces or control characters, which takes memcached 1.6.13 or later; use a client of "
           "the binary protocol";
  if (request.key.size() > max_in_base64)
    return "the key has spaces or control characters and more than 186 bytes; use a client of the binary "
           "protocol";
  return "";
}

Command encode(std::span<const Request* const> requests, std::size_t first, std::string& out,
               const RequestFormat& format) {
  const Request& request = *requests[first];
  if (is_in_base64(request)) {
    encode_in_base64(request, out);
    return {first, 1, format, true};
  }
  if (request.op == Op::add_and_get) return encode_adds(requests, first, out, format);
  if (request.op == Op::get || (request.op == Op::gets && format.shows_cas))
    return encode_gets(requests, first, out, format);
  encode_one(request, out, format);
  return {first, 1, format};
}

}  // namespace mcds::meta
