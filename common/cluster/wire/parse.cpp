#include <array>

#include "common/base/bounds.hpp"
#include "common/base/bytes.hpp"
#include "common/base/text.hpp"
#include "common/cluster/wire/wire.hpp"

namespace mcds::meta {

namespace {

using Step = ReplyReader::Step;
using Kind = ReplyFailure::Kind;

constexpr std::size_t max_stats_size = 16 << 20;
constexpr std::string_view turned_away_line = "ERROR Too many open connections";
constexpr const char* not_a_number_message =
    "the value is not a number, so it was not changed; does another program use this key?";
constexpr const char* no_meta_message = "the server has no meta commands; use --protocol classic or auto";

bool is_fetch(Op op) {
  return op == Op::get || op == Op::gets || op == Op::probe;
}

// Returns true if the request was sent as a meta command.
bool in_meta(const Request& request, const Command& command) {
  if (command.in_base64) return true;
  const RequestFormat& format = command.format;
  const Op op = request.op;
  if (!format.meta || !needs_meta(op) || (op == Op::gets && format.shows_cas)) return false;
  if (op == Op::remove_if) return format.compares_in_md;
  return op != Op::incr_or_create || format.incr_form != IncrForm::incr_only;
}

struct Line {
  std::string_view text;
  std::size_t end = 0;  // offset past its line break
};

// Reads the complete line at `position`. Otherwise returns need_more or out_of_step. `with_breaks`: the line
// may contain line feeds without a carriage return.
Step take_line(std::string_view input, std::size_t position, Line& line, bool with_breaks = false) {
  // pogocache 1.3 sends an extra NUL after the NOT_FOUND of a replace.
  if (position < input.size() && input[position] == '\0') ++position;
  const std::string_view rest = input.substr(position, max_line_length);
  std::size_t end = rest.find('\n');
  while (with_breaks && end != std::string_view::npos && (end == 0 || rest[end - 1] != '\r'))
    end = rest.find('\n', end + 1);
  if (end == std::string_view::npos)
    return rest.size() == max_line_length ? Step::out_of_step : Step::need_more;
  if (end == 0 || rest[end - 1] != '\r') return Step::out_of_step;
  line = {rest.substr(0, end - 1), position + end + 1};
  return Step::done;
}

// Iterates over the words of a line without copying.
class WordReader {
 public:
  explicit WordReader(std::string_view line) : rest_(line) {}
  std::string_view next() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
    const std::string_view word = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(word.size());
    return word;
  }

 private:
  std::string_view rest_;
};

// Reads the data block of `size` bytes after `line`. Sets `wanted` to the size of input that has it.
Step take_data(std::string_view input, const Line& line, std::uint64_t size, std::string& value,
               std::size_t& position, std::size_t& wanted) {
  if (size > max_item_value_size) return Step::out_of_step;
  const std::string_view rest = input.substr(line.end);
  wanted = line.end + size + 2;
  if (rest.size() < size + 2) return Step::need_more;
  if (rest.substr(size, 2) != "\r\n") return Step::out_of_step;
  value.assign(rest.substr(0, size));
  position = line.end + size + 2;
  return Step::done;
}

void fail(Reply& reply, Kind kind, std::string_view message) {
  reply = Reply::failed_with(kind, std::string(message), reply.server);
}

std::string printable(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, 120)) shown += c >= 0x20 && c < 0x7f ? c : '?';
  return shown;
}

// Describes what is impossible on a server that lacks the command.
std::string unknown_command(const Request& request, std::string_view line) {
  const Op op = request.op;
  const bool compares = op == Op::gets || op == Op::probe || op == Op::cas || op == Op::remove_if;
  if (compares) return "the server does not support gets and cas, which are required; use a memcached server";
  const std::string argument = op == Op::stats && !request.key.empty() ? " " + request.key : "";
  return "the server does not support '" + std::string(name_of(op)) + argument + "': " + printable(line);
}

// Some servers add a reason: `ERROR no matching command`.
bool is_plain_error(std::string_view line) {
  return line == "ERROR" || line.starts_with("ERROR ");
}

// Returns true if the error line of a change means that it was not and will not be applied. A proxy also
// sends SERVER_ERROR if the server after it is late or cut off (twemproxy: `Connection timed out`); that
// server may apply the change when it continues.
bool is_sure(std::string_view line) {
  static constexpr std::array words{"memory",    "large",     "big",      "denied",
                                    "allowed",   "auth",      "busy",     "support",
                                    "read only", "read-only", "readonly", "unknown command"};
  if (!line.starts_with("SERVER_ERROR ")) return true;
  const std::string lower = lower_case(std::string(line));
  return std::ranges::any_of(words, [&](const char* word) { return lower.find(word) != std::string::npos; });
}

bool has_data_block(Op op) {
  return op == Op::add || op == Op::add_and_get || op == Op::set || op == Op::replace || op == Op::cas ||
         op == Op::append;
}

// Handles ERROR, CLIENT_ERROR and SERVER_ERROR lines. Returns done if the reply is filled.
Step read_error(const Request& request, std::string_view line, Reply& reply, bool in_meta) {
  if (line.starts_with(turned_away_line)) return Step::turned_away;
  if (is_plain_error(line) && in_meta) {
    fail(reply, Kind::refused, no_meta_message);
    return Step::no_meta;
  }
  if (line == "CLIENT_ERROR cannot increment or decrement non-numeric value") {
    fail(reply, Kind::not_a_number, not_a_number_message);
    return Step::done;
  }
  if (!is_error(line)) return Step::out_of_step;
  if (!changes_nothing(request.op) && !is_sure(line)) {
    const std::string said =
        "no reply to the change but '" + printable(line) + '\'' + std::string(may_be_applied);
    reply = Reply::of(Outcome::failed, reply.server);
    reply.failure = std::make_shared<const ReplyFailure>(
        ReplyFailure{.kind = Kind::unknown, .message = said, .relayed = true});
    return Step::done;
  }
  fail(reply, Kind::refused,
       is_plain_error(line) ? unknown_command(request, line) : "the server refused: " + printable(line));
  // After other errors the server may execute a data block as commands.
  return line.starts_with("SERVER_ERROR ") || !has_data_block(request.op) ? Step::done : Step::out_of_step;
}

struct Word {
  std::string_view text;
  Outcome outcome;
};

// Looks the line up in a closed table; any other line is not a reply to this operation.
Step by_word(std::string_view line, std::span<const Word> words, Reply& reply) {
  for (const Word& word : words) {
    if (line != word.text) continue;
    reply.outcome = word.outcome;
    return Step::done;
  }
  return Step::out_of_step;
}

// pogocache answers EXISTS to add of an existing item, NOT_FOUND to replace or append of a missing one.
Step read_storage(Op op, std::string_view line, Reply& reply) {
  static constexpr std::array added{Word{"STORED", Outcome::stored}, Word{"NOT_STORED", Outcome::not_stored},
                                    Word{"EXISTS", Outcome::not_stored}};
  static constexpr std::array replaced{Word{"STORED", Outcome::stored},
                                       Word{"NOT_STORED", Outcome::not_stored},
                                       Word{"NOT_FOUND", Outcome::not_stored}};
  static constexpr std::array compared{Word{"STORED", Outcome::stored}, Word{"EXISTS", Outcome::exists},
                                       Word{"NOT_FOUND", Outcome::not_found}};
  static constexpr std::array removed_by_cas{Word{"STORED", Outcome::deleted},
                                             Word{"EXISTS", Outcome::exists},
                                             Word{"NOT_FOUND", Outcome::not_found}};
  switch (op) {
    case Op::add: return by_word(line, added, reply);
    case Op::replace:
    case Op::append:
    case Op::append_or_create: return by_word(line, replaced, reply);
    case Op::remove_if:
    case Op::cas: {
      const std::span<const Word> words = op == Op::cas ? std::span<const Word>(compared) : removed_by_cas;
      if (const Step step = by_word(line, words, reply); step == Step::done) return step;
      break;
    }
    default:
      if (line == "STORED") {
        reply.outcome = Outcome::stored;
        return Step::done;
      }
  }
  if (line != "NOT_STORED") return Step::out_of_step;
  fail(reply, Kind::refused, "the server refused: NOT_STORED");
  return Step::done;
}

Step read_number(std::string_view line, Reply& reply) {
  if (line == "NOT_FOUND") {
    reply.outcome = Outcome::not_found;
    return Step::done;
  }
  const auto number = parse_padded_u64(line);
  if (!number) return Step::out_of_step;
  reply.outcome = Outcome::stored;
  reply.number = *number;
  return Step::done;
}

Step read_one_line(const Request& request, bool meta, std::string_view line, Reply& reply) {
  static constexpr std::array touched{Word{"TOUCHED", Outcome::stored},
                                      Word{"NOT_FOUND", Outcome::not_found}};
  static constexpr std::array removed{Word{"DELETED", Outcome::deleted},
                                      Word{"NOT_FOUND", Outcome::not_found}};
  static constexpr std::array touched_by_meta{Word{"HD", Outcome::stored}, Word{"EN", Outcome::not_found}};
  static constexpr std::array removed_by_meta{Word{"HD", Outcome::deleted}, Word{"NF", Outcome::not_found},
                                              Word{"EX", Outcome::exists}};
  static constexpr std::array stored_by_meta{Word{"HD", Outcome::stored}, Word{"NS", Outcome::not_stored}};
  switch (request.op) {
    case Op::add:
    case Op::set:
    case Op::replace:
      if (meta) return by_word(line.substr(0, line.find(' ')), stored_by_meta, reply);
      return read_storage(request.op, line, reply);
    case Op::incr:
    case Op::decr:
    case Op::incr_or_create: return read_number(line, reply);
    case Op::touch:
      if (meta) return by_word(line.substr(0, line.find(' ')), touched_by_meta, reply);
      return by_word(line, touched, reply);
    case Op::remove:
    case Op::remove_if:
      if (meta) return by_word(line.substr(0, line.find(' ')), removed_by_meta, reply);
      return request.op == Op::remove ? by_word(line, removed, reply) : read_storage(request.op, line, reply);
    case Op::version:
      if (!line.starts_with("VERSION ")) return Step::out_of_step;
      reply.outcome = Outcome::hit;
      reply.value = line.substr(8);
      return Step::done;
    default: return read_storage(request.op, line, reply);
  }
}

// Reads one flag of an mg reply, such as `c42`.
bool read_flag(std::string_view flag, const Request& request, Reply& reply) {
  const std::string_view value = flag.substr(1);
  const auto number = parse_u64(value);
  switch (flag[0]) {
    // An item stored under a base64 key is reported with the encoded key, and `b`.
    case 'k': return value == request.key || parse_base64(value) == request.key;
    case 'O': return value == opaque_of(request);
    // These mark an item that another client has invalidated and will write again. The value is still valid.
    case 'W':
    case 'X':
    case 'Z':
    case 'b': return value.empty();
    case 'f':
      reply.flags = static_cast<std::uint32_t>(number.value_or(0));
      return number && *number <= UINT32_MAX;
    case 'c': reply.cas = {number.value_or(0)}; return number.has_value();
    case 'l':
      reply.age.idle = std::chrono::seconds(number.value_or(0));
      return number && *number <= static_cast<std::uint64_t>(latest_second);
    case 't': {
      const auto ttl = parse_i64(value);
      reply.age.ttl = std::chrono::seconds(ttl.value_or(0));
      return ttl && *ttl >= -1 && *ttl <= latest_second;
    }
    default: return false;
  }
}

bool is_miss(const Request& request, std::string_view line) {
  if (!line.starts_with("EN")) return false;
  if (line == "EN" || line == "EN k" + request.key) return true;
  return is_in_base64(request) && line == "EN O" + opaque_of(request);
}

}  // namespace

std::optional<std::string_view> take_whole_line(std::string_view input, std::size_t& position) {
  const std::size_t end = input.find('\n', position);
  if (end == std::string_view::npos) return std::nullopt;
  std::string_view line = input.substr(position, end - position);
  if (line.ends_with('\r')) line.remove_suffix(1);
  position = end + 1;
  return line;
}

bool is_error(std::string_view line) {
  return is_plain_error(line) || line.starts_with("SERVER_ERROR ") || line.starts_with("CLIENT_ERROR ");
}

void ReplyReader::reset() {
  wanted_ = answered_ = reported_ = 0;
  if (!std::exchange(half_, false)) return;
  existed_ = false;
  before_ = Reply();
}

Step ReplyReader::read(const Command& command, std::span<const Request* const> requests,
                       std::span<Reply* const> replies, std::string_view input, std::size_t& position,
                       ServerProtocol::CommandSet words) {
  const Request& request = *requests[command.first];
  Reply& reply = *replies[command.first];
  const bool meta = in_meta(request, command);
  Step step = Step::done;
  if (meta && words == ServerProtocol::CommandSet::classic) {
    const bool two_lines = request.op == Op::incr_or_create && command.format.incr_form == IncrForm::whole;
    step = read_without_meta(two_lines, reply, input, position);
  } else if (!meta && is_fetch(request.op)) {
    step = read_values(requests.subspan(command.first, command.count),
                       replies.subspan(command.first, command.count), request.op != Op::get, input, position);
  } else if (request.op == Op::add_and_get) {
    step = read_added(requests.subspan(command.first, command.count),
                      replies.subspan(command.first, command.count), command.format, input, position);
  } else if (is_fetch(request.op)) {
    step = read_meta_get(request, reply, input, position);
  } else if (meta && request.op == Op::incr_or_create) {
    step = read_meta_incr(request, reply, command.format.incr_form == IncrForm::create, input, position);
  } else if (request.op == Op::stats) {
    step = read_stats(request, reply, input, position);
  } else {
    step = read_line_command(request, meta, reply, input, position);
  }
  if (step == Step::done || step == Step::no_meta) reset();
  return step;
}

// Reads the errors of a server without meta commands, one for each line that was sent.
Step ReplyReader::read_without_meta(bool two_lines, Reply& reply, std::string_view input,
                                    std::size_t& position) {
  Line line;
  if (const Step step = take_line(input, position, line); step != Step::done) return step;
  if (!is_error(line.text)) return Step::out_of_step;
  position = line.end;
  if (two_lines && !std::exchange(half_, true)) return Step::progress;
  fail(reply, Kind::refused, no_meta_message);
  return Step::no_meta;
}

Step ReplyReader::read_line_command(const Request& request, bool meta, Reply& reply, std::string_view input,
                                    std::size_t& position) {
  Line line;
  if (const Step step = take_line(input, position, line); step != Step::done) return step;
  Step step = read_one_line(request, meta, line.text, reply);
  if (step == Step::out_of_step) step = read_error(request, line.text, reply, meta);
  if (step == Step::done || step == Step::no_meta) position = line.end;
  return step;
}

// Reads VALUE <key> <flags> <bytes> [<cas>], data, …, END: hits in the order of the keys, without misses.
Step ReplyReader::read_values(std::span<const Request* const> requests, std::span<Reply* const> replies,
                              bool with_cas, std::string_view input, std::size_t& position) {
  Line line;
  if (const Step step = take_line(input, position, line); step != Step::done) return step;
  const auto miss_until = [&](std::size_t end) {
    for (; answered_ < end; ++answered_) replies[answered_]->outcome = Outcome::miss;
  };
  if (line.text == "END") {
    miss_until(requests.size());
    position = line.end;
    return Step::done;
  }
  WordReader words(line.text);
  if (words.next() != "VALUE") {
    if (answered_ == requests.size()) return Step::out_of_step;
    const Step step = read_error(*requests[answered_], line.text, *replies[answered_], false);
    if (step != Step::done) return step;
    for (std::size_t i = answered_ + 1; i < requests.size(); ++i)
      fail(*replies[i], Kind::refused, replies[answered_]->failure->message);
    position = line.end;
    return Step::done;
  }
  const std::string_view key = words.next();
  const auto flags = parse_u64(words.next());
  const auto size = parse_u64(words.next());
  const auto cas = with_cas ? parse_u64(words.next()) : std::optional<std::uint64_t>(0);
  std::size_t index = answered_;
  while (index < requests.size() && requests[index]->key != key) ++index;
  if (index == requests.size() || !flags || *flags > UINT32_MAX || !size || !cas) return Step::out_of_step;
  Reply& reply = *replies[index];
  if (const Step step = take_data(input, line, *size, reply.value, position, wanted_); step != Step::done)
    return step;
  miss_until(index);
  reply.outcome = Outcome::hit;
  reply.flags = static_cast<std::uint32_t>(*flags);
  reply.cas = {*cas};
  answered_ = index + 1;
  return Step::progress;
}

// Reads a line for each add, unless they are quiet, then the values. Only Op::add reports errors of an add.
Step ReplyReader::read_added(std::span<const Request* const> requests, std::span<Reply* const> replies,
                             const RequestFormat& format, std::string_view input, std::size_t& position) {
  if (format.quiet || reported_ == requests.size())
    return read_values(requests, replies, format.shows_cas, input, position);
  Line line;
  if (const Step step = take_line(input, position, line); step != Step::done) return step;
  Reply said = Reply::of(Outcome::failed, replies[reported_]->server);
  Step step = read_storage(Op::add, line.text, said);
  if (step == Step::out_of_step) step = read_error(*requests[reported_], line.text, said, false);
  if (step != Step::done) return step;
  replies[reported_++]->created = said.outcome == Outcome::stored;
  position = line.end;
  return Step::progress;
}

// Reads EN [k<key>] (some servers repeat the key even then), or VA <bytes> <flags>* and the data.
Step ReplyReader::read_meta_get(const Request& request, Reply& reply, std::string_view input,
                                std::size_t& position) {
  Line line;
  if (const Step step = take_line(input, position, line); step != Step::done) return step;
  if (is_miss(request, line.text)) {
    reply.outcome = Outcome::miss;
    position = line.end;
    return Step::done;
  }
  WordReader words(line.text);
  if (words.next() != "VA") {
    const Step step = read_error(request, line.text, reply, true);
    if (step == Step::done || step == Step::no_meta) position = line.end;
    return step;
  }
  const auto size = parse_u64(words.next());
  if (!size) return Step::out_of_step;
  bool right_key = false;
  for (std::string_view flag = words.next(); !flag.empty(); flag = words.next()) {
    if (!read_flag(flag, request, reply)) return Step::out_of_step;
    right_key = right_key || flag[0] == (is_in_base64(request) ? 'O' : 'k');
  }
  if (!right_key) return Step::out_of_step;
  const Step step = take_data(input, line, *size, reply.value, position, wanted_);
  if (step == Step::done) reply.outcome = Outcome::hit;
  return step;
}

// Reads the reply to the mg, then the ma's VA <bytes> <flags>* and the number. Whatever the mg returned, the
// ma may have been applied, so the ma's reply decides.
Step ReplyReader::read_meta_incr(const Request& request, Reply& reply, bool only_creates,
                                 std::string_view input, std::size_t& position) {
  if (!half_ && !only_creates) {
    const Step step = read_meta_get(request, before_, input, position);
    if (step != Step::done && step != Step::no_meta) return step;
    existed_ = before_.outcome != Outcome::miss;
    half_ = true;
    return Step::progress;
  }
  Line line;
  if (const Step step = take_line(input, position, line); step != Step::done) return step;
  WordReader words(line.text);
  const std::string_view first = words.next();
  if (first == "NF" && !request.creates) {
    reply.outcome = Outcome::not_found;
    position = line.end;
    return Step::done;
  }
  if (first != "VA") {
    const Step step = read_error(request, line.text, reply, true);
    if (step == Step::done || step == Step::no_meta) position = line.end;
    if (reply.is(Kind::not_a_number) && before_.outcome == Outcome::hit)
      reply = Reply::of_text(std::move(before_.value), reply.server);
    else if (step == Step::done)
      reply.value = std::move(before_.value);
    return step;
  }
  const auto size = parse_u64(words.next());
  if (!size || *size > 32) return Step::out_of_step;
  Reply after = Reply::of(Outcome::failed, reply.server);
  for (std::string_view flag = words.next(); !flag.empty(); flag = words.next()) {
    if (!read_flag(flag, request, after)) return Step::out_of_step;
  }
  std::string digits;
  if (const Step step = take_data(input, line, *size, digits, position, wanted_); step != Step::done)
    return step;
  if (read_number(digits, after) != Step::done || after.outcome != Outcome::stored) return Step::out_of_step;
  if (before_.outcome == Outcome::hit && !parse_padded_u64(before_.value)) {
    counted_text(after, reply);
  } else {
    reply.outcome = Outcome::stored;
    reply.number = after.number;
    reply.created = !existed_ && after.number == request.initial;
  }
  return Step::done;
}

// Servers increment text that starts with digits.
void ReplyReader::counted_text(const Reply& after, Reply& reply) {
  reply = Reply::of_text(std::move(before_.value), reply.server);
  reply.flags = before_.flags;
  reply.age = before_.age;
  reply.cas = after.cas;
  reply.number = after.number;
}

// The address of a listening unix socket in `stats conns` ends with uninitialized bytes of the server's stack
// when its path is longer than 26 bytes (memcached since 1.4.18); they may contain a line feed.
Step ReplyReader::read_stats(const Request& request, Reply& reply, std::string_view input,
                             std::size_t& position) {
  Line line;
  if (const Step step = take_line(input, position, line, true); step != Step::done) return step;
  if (line.text == "END" || line.text == "RESET" || line.text == "OK") {
    reply.outcome = Outcome::hit;
    position = line.end;
    return Step::done;
  }
  if (!line.text.starts_with("STAT ")) {
    const Step step = read_error(request, line.text, reply, false);
    if (step == Step::done) position = line.end;
    return step;
  }
  const std::size_t at = reply.value.size();
  reply.value += line.text.substr(5);
  std::ranges::replace(reply.value.begin() + static_cast<std::ptrdiff_t>(at), reply.value.end(), '\n', '?');
  reply.value += '\n';
  position = line.end;
  return reply.value.size() > max_stats_size ? Step::out_of_step : Step::progress;
}

}  // namespace mcds::meta
