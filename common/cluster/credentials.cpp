#include "common/cluster/credentials.hpp"

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/cluster/wire/wire.hpp"

namespace mcds {

namespace {

using Kind = ReplyFailure::Kind;

constexpr std::size_t max_login_line_length = 2048;
constexpr const char* invalid_reply =
    "the server sent an invalid reply to the login; is this a memcached server?";
constexpr const char* check_login =
    "; check --user, --password-file and --auth (ascii for memcached -Y, user-key for MemCachier)";

std::string advised(const char* message) {
  std::string text(message);
  text.append(check_login);
  return text;
}

// A server that requires no login stores it as an item, which must expire at once and have an unused key.
constexpr std::string_view ascii_key = "mcds:login";
// As long as a header of the binary protocol, because such a server answers nothing shorter.
constexpr std::string_view asked_key = "mcds:what-server-is-this";

bool has_control(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

bool has_space(std::string_view text) {
  return text.find(' ') != std::string_view::npos;
}

bool is_error(std::string_view line) {
  return line == "ERROR" || line.starts_with("ERROR ") || line.starts_with("ERROR:") ||
         line.starts_with("CLIENT_ERROR") || line.starts_with("SERVER_ERROR");
}

}  // namespace

void check(const Login& login) {
  if (login.user.empty() || login.password.empty())
    throw InvalidInput("the user or the password is empty; give both");
  if (has_control(login.user) || has_control(login.password))
    throw InvalidInput("the user or the password has a control character; remove it");
  if (has_space(login.user))
    throw InvalidInput("the user has a space, which a login cannot contain; use another user");
  if (login.form == Login::Form::ascii && has_space(login.password))
    throw InvalidInput("the password has a space, which --auth ascii cannot send; use another password");
  if (login.form == Login::Form::user_key && login.user.size() > 250)
    throw InvalidInput("the user is longer than 250 bytes, the limit of --auth user-key; use a shorter one");
}

bool wants_login(std::string_view line) {
  return line.starts_with("CLIENT_ERROR unauth");
}

LoginExchange::LoginExchange(const Login& login, bool asked)
    : login_(login), stage_(login.form == Login::Form::ascii || asked ? Stage::log_in : Stage::ask) {}

std::string_view LoginExchange::key() const {
  return login_.form == Login::Form::ascii ? ascii_key : std::string_view(login_.user);
}

std::string LoginExchange::value() const {
  return login_.form == Login::Form::ascii ? login_.user + ' ' + login_.password : login_.password;
}

std::string LoginExchange::words() const {
  std::string get = "get " + std::string(stage_ == Stage::ask ? asked_key : key()) + "\r\n";
  if (stage_ == Stage::ask) return get;
  if (stage_ == Stage::remove) return "delete " + std::string(key()) + "\r\n";
  std::string text = value();
  std::string words;
  words.reserve(64 + 2 * key().size() + text.size());  // growing would leave copies of the password
  const char* const exptime = login_.form == Login::Form::ascii ? "-1 " : "0 ";
  for (const std::string_view part :
       {std::string_view("set "), key(), std::string_view(" 0 "), std::string_view(exptime)})
    words += part;
  words += std::to_string(text.size()) + "\r\n";
  words += text;
  words += "\r\n" + get;
  explicit_bzero(text.data(), text.size());
  return words;
}

LoginExchange::Step LoginExchange::fail(ReplyFailure::Kind kind, std::string complaint) {
  kind_ = kind;
  complaint_ = std::move(complaint);
  return Step::failed;
}

LoginExchange::Step LoginExchange::closed() {
  if (stage_ == Stage::ask) return Step::reconnect;
  return fail(Kind::denied, advised("the server closed the connection on the login"));
}

LoginExchange::Step LoginExchange::read(std::string_view input, std::size_t& position) {
  for (;;) {
    if (stage_ == Stage::value) return read_value(input, position);
    const auto line = meta::take_whole_line(input, position);
    if (!line)
      return input.size() - position > max_login_line_length ? fail(Kind::refused, invalid_reply)
                                                             : Step::need_more;
    if (const Step step = read_line(*line); step != Step::need_more) return step;
  }
}

// Returns need_more if the next line or value must be read.
LoginExchange::Step LoginExchange::read_line(std::string_view line) {
  if (line.starts_with("ERROR Too many open connections"))
    return fail(Kind::unreachable, "the server is at its connection limit; raise its -c or try again");
  if (stage_ == Stage::remove) {
    return fail(Kind::denied,
                "the server requires no login: it stored the login as an item, " +
                    (line == "DELETED" ? "which was removed"
                                       : "which could not be removed; remove " + std::string(key())) +
                    "; omit --user");
  }
  if (is_error(line)) return read_error(line);
  const bool is_value = line.starts_with("VALUE ");
  if (stage_ == Stage::ask && (is_value || line == "END"))
    return fail(Kind::denied,
                "the server requires no login, and the password was not sent; omit --user, or check "
                "the address");
  if (stage_ == Stage::log_in && line == "STORED") {
    stage_ = Stage::look;
    return Step::need_more;
  }
  if (stage_ != Stage::look || (!is_value && line != "END")) return fail(Kind::refused, invalid_reply);
  if (!is_value) return Step::done;
  const auto size = parse_u64(line.substr(line.rfind(' ') + 1));
  if (!size || *size > max_login_line_length) return fail(Kind::refused, invalid_reply);
  size_ = *size;
  stage_ = Stage::value;
  return Step::need_more;
}

// Handles an error line. Its text does not matter: in response to the read it means that a login is required,
// in response to the login that it is wrong.
LoginExchange::Step LoginExchange::read_error(std::string_view line) {
  if (stage_ == Stage::ask) return Step::reconnect;
  if (stage_ == Stage::look && line == "ERROR") return Step::done;  // the server has no `get`
  return fail(Kind::denied, advised("the server rejects the login"));
}

// Reads the value that the server has under the login's key. If it is the login, the server requires none and
// stored it as an item, which must be removed; any other value is an application's.
LoginExchange::Step LoginExchange::read_value(std::string_view input, std::size_t& position) {
  constexpr std::string_view end = "\r\nEND\r\n";
  if (input.size() - position < size_ + end.size()) return Step::need_more;
  const std::string_view stored = input.substr(position, size_);
  position += size_;
  if (input.substr(position, end.size()) != end) return fail(Kind::refused, invalid_reply);
  position += end.size();
  if (stored != value()) return Step::done;
  stage_ = Stage::remove;
  return Step::send;
}

}  // namespace mcds
