#include <array>
#include <charconv>

#include "common/base/bytes.hpp"
#include "common/cluster/transport.hpp"
#include "common/cluster/wire/wire.hpp"

namespace mcds::meta {

namespace {

// A line of gets stays well below the 2 KiB that 1.6 servers look at before they have the whole line; before
// 1.6.13 that was 1 KiB.
constexpr std::size_t longest_get_line = 1900;
constexpr std::size_t longest_short_line = 1000;
// Servers measure the 250 bytes of a key before they decode it.
constexpr std::size_t longest_in_base64 = max_key_size / 4 * 3;
// An absolute time in 1970: what is stored so is gone at once.
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
                    const Wording& wording) {
  const std::size_t longest = wording.long_lines ? longest_get_line : longest_short_line;
  const std::size_t start = out.size();
  const Op op = requests[first]->op;
  Command command{first, 0, wording};
  out += op == Op::get ? "get" : "gets";
  while (first + command.count < requests.size()) {
    const Request& request = *requests[first + command.count];
    const bool fits = command.count == 0 || out.size() - start + 1 + request.key.size() <= longest;
    const bool wanted = command.count == 0 || !wording.one_key_a_line;
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

// Less than a record of TLS, so that none ends between two of these commands.
constexpr std::size_t most_added_at_once = 8 * 1024;

Command encode_adds(std::span<const Request* const> requests, std::size_t first, std::string& out,
                    const Wording& wording) {
  const std::size_t longest = wording.long_lines ? longest_get_line : longest_short_line;
  const std::size_t start = out.size();
  Command command{first, 0, wording};
  std::string line = wording.stamps ? "gets" : "get";
  while (first + command.count < requests.size()) {
    const Request& request = *requests[first + command.count];
    const std::size_t bytes = out.size() - start + request.key.size() + request.value.size();
    const bool fits = bytes <= most_added_at_once && line.size() + 1 + request.key.size() <= longest;
    if (request.op != Op::add_and_get || is_in_base64(request)) break;
    if (command.count > 0 && (!fits || wording.one_key_a_line)) break;
    storage(out, "add", request, wording.quiet ? " noreply" : "");
    append_all(line, {" ", request.key});
    ++command.count;
  }
  append_all(out, {line, "\r\n"});
  return command;
}

void encode_incr_or_create(const Request& request, std::string& out, IncrForm form) {
  if (form == IncrForm::incr_only)
    return append_all(out, {"incr ", request.key, " ", text(request.delta), "\r\n"});
  // ma does not say whether it created the item, nor whether it was a number; the mg before it does. Its look
  // must not count as a use: while the server has yet to move the item for that, a full one refuses the ma.
  if (form == IncrForm::whole) append_all(out, {"mg ", request.key, " k v f c t u\r\n"});
  append_all(out, {"ma ", request.key});
  if (request.creates) append_all(out, {" N", text(request.exptime), " J", text(request.initial)});
  append_all(out, {" D", text(request.delta), " v c\r\n"});
}

// One that is a command by itself.
void encode_one(const Request& request, std::string& out, const Wording& wording) {
  switch (request.op) {
    case Op::gets:
    case Op::probe:
      return append_all(out, {wording.meta ? "mg " : "gets ", request.key, wording.meta ? " k v f c" : "",
                              wording.meta && request.op == Op::probe ? " t l u\r\n" : "\r\n"});
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
      if (wording.meta && wording.compares_in_md)
        return append_all(out, {"md ", request.key, " C", text(request.cas.value), "\r\n"});
      return append_all(out,
                        {"cas ", request.key, " 0 ", long_ago, " 0 ", text(request.cas.value), "\r\n\r\n"});
    case Op::incr_or_create: return encode_incr_or_create(request, out, wording.incr_form);
    case Op::version: return append_all(out, {"version\r\n"});
    case Op::stats: return append_all(out, {request.key.empty() ? "stats" : "stats ", request.key, "\r\n"});
    case Op::get:
    case Op::add_and_get: break;  // several are one command
  }
}

}  // namespace

bool is_in_base64(const Request& request) {
  return request.op != Op::version && request.op != Op::stats && !is_one_word(request.key);
}

std::string opaque_of(const Request& request) {
  return checksum(request.key);
}

std::string_view unsayable(const Wording& wording, const Request& request) {
  if (!is_in_base64(request)) {
    const bool creates = request.op == Op::incr_or_create && wording.incr_form != IncrForm::incr_only;
    return creates && !wording.meta ? "the server has no meta commands" : "";
  }
  if (!goes_in_base64(request.op))
    return "a key with spaces or control characters can be read, touched, removed, added and set here, not "
           "changed "
           "otherwise; use a client of the binary protocol";
  // Long lines are taken from the same version on, and only where it is known.
  const bool is_known = wording.meta && wording.long_lines;
  if (!wording.meta || (stores(request.op) && !is_known) ||
      (request.op == Op::remove_if && !wording.compares_in_md))
    return "the key has spaces or control characters, which takes memcached 1.6.13 or later; use a client of "
           "the binary protocol";
  if (request.key.size() > longest_in_base64)
    return "the key has spaces or control characters and more than 186 bytes; use a client of the binary "
           "protocol";
  return "";
}

Command encode(std::span<const Request* const> requests, std::size_t first, std::string& out,
               const Wording& wording) {
  const Request& request = *requests[first];
  if (is_in_base64(request)) {
    encode_in_base64(request, out);
    return {first, 1, wording, true};
  }
  if (request.op == Op::add_and_get) return encode_adds(requests, first, out, wording);
  if (request.op == Op::get || (request.op == Op::gets && wording.stamps))
    return encode_gets(requests, first, out, wording);
  encode_one(request, out, wording);
  return {first, 1, wording};
}

}  // namespace mcds::meta
