#include "common/cluster/wire/greeting.hpp"

#include <array>

#include "common/cluster/credentials.hpp"
#include "common/cluster/wire/wire.hpp"

namespace mcds::meta {

namespace {

using namespace std::string_view_literals;

using Kind = ReplyFailure::Kind;

// As long as a header of the binary protocol, and longer than one of TLS: shorter ones would be waited for.
constexpr auto mn_alone = "mn\r\nmn\r\nmn\r\nmn\r\nmn\r\nmn\r\n"sv;
constexpr auto classic_get = "get mcds:what-server-is-this\r\n"sv;
// For its SASL mechanisms.
constexpr auto binary_question = "\x80\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"sv;
// The smallest hello of TLS 1.2; whatever the answer, it is a TLS record.
constexpr auto tls_hello =
    "\x16\x03\x01\0\x2f\x01\0\0\x2b\x03\x03"
    "mcds asks whether this is TLS..."
    "\0\0\x04\xc0\x2f\0\x9c\x01\0"sv;

constexpr std::array questions{mn_alone, classic_get, binary_question, tls_hello};

bool digit(char c) {
  return c >= '0' && c <= '9';
}

struct Foreigner {
  std::string_view complaint;
  Kind kind = Kind::refused;
};

// By its reply to the request for SASL mechanisms, which is an unknown command without SASL.
Foreigner binary_server(std::string_view answer) {
  const bool unknown_command = answer[6] == 0 && answer[7] == '\x81';
  if (unknown_command)
    return {
        "the server accepts only the binary protocol; give --protocol binary, or start it without -B binary"};
  return {
      "the server accepts only SASL logins (-S), of the binary protocol; give --protocol binary, --auth "
      "sasl, --user and "
      "--password-file, or start it with -Y FILE",
      Kind::denied};
}

// Servers of other protocols, and those that want a login, by how their answers begin; none of them executes
// what was sent.
std::optional<Foreigner> known_foreigner(std::string_view input) {
  if (input.size() >= 2 && (input[0] == '\x15' || input[0] == '\x16') && input[1] == '\x03')
    return Foreigner{"the server requires TLS; write tls://HOST:PORT, or use --tls", Kind::denied};
  if (input.starts_with('\x81') && input.size() >= 8) return binary_server(input);
  if (input.starts_with("HTTP/")) return Foreigner{"this is a web server, not memcached; check the port"};
  if (input.starts_with("SSH-")) return Foreigner{"this is an SSH server, not memcached; check the port"};
  if (input.starts_with("-ERR") || input.starts_with("-NOAUTH") || input.starts_with("-DENIED"))
    return Foreigner{"this is a Redis server, not memcached; check the port"};
  if (input.size() >= 4 && digit(input[0]) && digit(input[1]) && digit(input[2]) &&
      (input[3] == ' ' || input[3] == '-'))
    return Foreigner{"this is a mail or file server, not memcached; check the port"};
  if (wants_login(input)) return Foreigner{login_wanted, Kind::denied};
  return std::nullopt;
}

// Whether each of them is answered, or the first error closes.
Inquiry::Finding read_no_operations(std::string_view input, bool closed) {
  if (!is_error(input.substr(0, input.find_first_of("\r\n")))) return Inquiry::Finding::answered;
  const auto count = [](std::string_view text) { return std::ranges::count(text, '\n'); };
  if (count(input) >= count(mn_alone)) return Inquiry::Finding::answered;
  return closed ? Inquiry::Finding::closed : Inquiry::Finding::need_more;
}

}  // namespace

Greeting::Greeting(std::size_t follow) : words_("mn\r\nversion\r\n") {
  for (; words_.size() + follow < binary_header; ++again_) words_.insert(0, "mn\r\n");
}

Greeting::Step Greeting::read(std::string_view input, std::size_t& position, Dialect& dialect) {
  if (!heard_) {
    if (const auto foreigner = known_foreigner(input.substr(position))) {
      complaint_ = foreigner->complaint;
      kind_ = foreigner->kind;
      return Step::foreign;
    }
  }
  const auto line = take_whole_line(input, position);
  if (!line) return input.size() - position < longest_line ? Step::need_more : Step::nonsense;
  if (heard_) {
    if (again_ > 0) {
      if (*line != "MN" && *line != "EN" && !is_error(*line)) return Step::nonsense;
      --again_;
      return read(input, position, dialect);
    }
    if (!line->starts_with("VERSION ") && !is_error(*line)) return Step::nonsense;
    if (line->starts_with("VERSION ")) dialect.take_version(std::string(line->substr(8)));
    dialect.words = found_;
    return Step::done;
  }
  if (line->starts_with("ERROR Too many open connections")) return Step::turned_away;
  // EN: the meta commands of 1.5.19 to 1.5.22 were a draft.
  const bool classic = *line == "EN" || is_error(*line);
  if (!classic && *line != "MN") return Step::nonsense;
  found_ = classic ? Dialect::Words::classic : Dialect::Words::meta;
  heard_ = true;
  return read(input, position, dialect);
}

std::optional<std::string_view> Inquiry::next() {
  if (asked_ == static_cast<int>(questions.size())) return std::nullopt;
  return questions.at(static_cast<std::size_t>(asked_++));
}

Inquiry::Finding Inquiry::read(std::string_view input, bool closed) {
  if (const auto foreigner = known_foreigner(input)) {
    complaint_ = foreigner->complaint;
    kind_ = foreigner->kind;
    return Finding::foreign;
  }
  std::size_t position = 0;
  const auto line = take_whole_line(input, position);
  if (!line) return closed || input.size() >= longest_line ? Finding::closed : Finding::need_more;
  if (line->starts_with("ERROR Too many")) return Finding::closed;
  if (questions.at(static_cast<std::size_t>(asked_ - 1)) == mn_alone)
    return read_no_operations(input, closed);
  const bool well_formed =
      *line == "END" || line->starts_with("VALUE mcds:what-server-is-this ") || is_error(*line);
  return well_formed ? Finding::classic : Finding::closed;
}

}  // namespace mcds::meta
