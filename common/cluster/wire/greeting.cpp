#include "common/cluster/wire/greeting.hpp"

#include <array>

#include "common/base/bytes.hpp"
#include "common/cluster/credentials.hpp"
#include "common/cluster/wire/wire.hpp"

namespace mcds::meta {

namespace {

using namespace std::string_view_literals;

using Kind = ReplyFailure::Kind;
using Action = Decision::Action;

// This has the 24 bytes of a binary header, and more than the header of a TLS record. Servers of these
// protocols answer only after a whole header.
constexpr auto mn_alone = "mn\r\nmn\r\nmn\r\nmn\r\nmn\r\nmn\r\n"sv;
constexpr auto classic_get = "get mcds:what-server-is-this\r\n"sv;
// The smallest ClientHello of TLS 1.2. Any answer to it is a TLS record.
constexpr auto tls_hello =
    "\x16\x03\x01\0\x2f\x01\0\0\x2b\x03\x03"
    "mcds asks whether this is TLS..."
    "\0\0\x04\xc0\x2f\0\x9c\x01\0"sv;

constexpr std::array questions{mn_alone, classic_get, binary_question, tls_hello};

// Judges the reply to the request for SASL mechanisms, which is an unknown command without SASL.
ReplyFailure binary_server(std::string_view answer) {
  const bool unknown_command = answer[6] == 0 && answer[7] == '\x81';
  if (unknown_command)
    return {
        Kind::refused,
        "the server accepts only the binary protocol; give --protocol binary (it cannot list or watch keys), "
        "or start it without -B binary"};
  return {Kind::denied,
          "the server accepts only SASL logins (-S) in the binary protocol; give --protocol binary (it "
          "cannot list or watch keys), --auth sasl, --user and --password-file, or start it with -Y FILE"};
}

// Recognizes servers of other protocols, and those that require a login, by the beginning of their answer.
// None of them executes the requests.
std::optional<ReplyFailure> known_other_protocol(std::string_view input) {
  if (input.size() >= 2 && (input[0] == '\x15' || input[0] == '\x16') && input[1] == '\x03')
    return ReplyFailure{Kind::denied, "the server requires TLS; write tls://HOST:PORT, or use --tls"};
  if (input.starts_with('\x81') && input.size() >= 8) return binary_server(input);
  if (input.starts_with("HTTP/"))
    return ReplyFailure{Kind::refused, "the server is a web server, not memcached; check the port"};
  if (input.starts_with("SSH-"))
    return ReplyFailure{Kind::refused, "the server is an SSH server, not memcached; check the port"};
  if (input.starts_with("-ERR") || input.starts_with("-NOAUTH") || input.starts_with("-DENIED"))
    return ReplyFailure{Kind::refused, "the server is a Redis server, not memcached; check the port"};
  if (input.size() >= 4 && is_digit(input[0]) && is_digit(input[1]) && is_digit(input[2]) &&
      (input[3] == ' ' || input[3] == '-'))
    return ReplyFailure{Kind::refused, "the server is a mail or file server, not memcached; check the port"};
  if (wants_login(input)) return ReplyFailure{Kind::denied, login_wanted};
  return std::nullopt;
}

// Distinguishes a server that answers each `mn` from one that closes after the first error.
ProtocolProbe::Finding read_no_operations(std::string_view input, bool closed) {
  if (!is_error(input.substr(0, input.find_first_of("\r\n")))) return ProtocolProbe::Finding::answered;
  const auto count = [](std::string_view text) { return std::ranges::count(text, '\n'); };
  if (count(input) >= count(mn_alone)) return ProtocolProbe::Finding::answered;
  return closed ? ProtocolProbe::Finding::closed : ProtocolProbe::Finding::need_more;
}

}  // namespace

Greeting::Greeting(std::size_t follow) : words_("mn\r\nversion\r\n") {
  for (; words_.size() + follow < binary_header; ++again_) words_.insert(0, "mn\r\n");
}

Decision on_invalid_answer(bool turned_away) {
  if (turned_away)
    return {Action::refuse,
            {Kind::unreachable, "the server is at its connection limit; raise its -c or try again"}};
  return {Action::abandon,
          {Kind::refused, "the reply is not valid in the memcached protocol; is this a memcached server?"}};
}

Decision Greeting::read(std::string_view input, std::size_t& position, ServerProtocol& protocol) {
  if (!got_reply_) {
    if (auto other = known_other_protocol(input.substr(position))) return {Action::refuse, *std::move(other)};
  }
  for (;;) {
    const auto line = take_whole_line(input, position);
    if (!line) return input.size() - position < max_line_length ? Decision{} : on_invalid_answer(false);
    const bool refused = is_error(*line);
    // EN is an answer to the draft meta commands of 1.5.19 to 1.5.22.
    const bool to_mn = refused || *line == "MN" || *line == "EN";
    if (!got_reply_) {
      if (line->starts_with("ERROR Too many open connections")) return on_invalid_answer(true);
      if (!to_mn) return on_invalid_answer(false);
      found_ = *line == "MN" ? ServerProtocol::CommandSet::meta : ServerProtocol::CommandSet::classic;
      got_reply_ = true;
    } else if (again_ > 0) {
      if (!to_mn) return on_invalid_answer(false);
      --again_;
    } else {
      if (!line->starts_with("VERSION ") && !refused) return on_invalid_answer(false);
      if (!refused) protocol.take_version(std::string(line->substr(8)));
      protocol.words = found_;
      return {Action::proceed};
    }
  }
}

bool ProtocolProbe::next() {
  return ++asked_ <= static_cast<int>(questions.size());
}

std::string_view ProtocolProbe::question() const {
  return questions.at(static_cast<std::size_t>(asked_ - 1));
}

ProtocolProbe::Finding ProtocolProbe::read(std::string_view input, bool closed) {
  failure_ = known_other_protocol(input);
  if (failure_) return Finding::foreign;
  std::size_t position = 0;
  const auto line = take_whole_line(input, position);
  if (!line) return closed || input.size() >= max_line_length ? Finding::closed : Finding::need_more;
  if (line->starts_with("ERROR Too many")) return Finding::closed;
  if (question() == mn_alone) return read_no_operations(input, closed);
  const bool well_formed =
      *line == "END" || line->starts_with("VALUE mcds:what-server-is-this ") || is_error(*line);
  return well_formed ? Finding::classic : Finding::closed;
}

}  // namespace mcds::meta
