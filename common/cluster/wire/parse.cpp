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

// Returns a set of operations.
template <typename... Ops>
constexpr unsigned set_of(Ops... ops) {
  return ((1U << static_cast<unsigned>(ops)) | ...);
}

struct Answer {
  unsigned ops;
  std::string_view text;
  Outcome outcome;  // failed: refused with this text
};

// pogocache answers EXISTS to add of an existing item, NOT_FOUND to replace or append of a missing one.
constexpr unsigned conditional_stores = set_of(Op::add, Op::replace, Op::append, Op::append_or_create);
constexpr std::array classic_answers{
    Answer{conditional_stores | set_of(Op::set, Op::cas), "STORED", Outcome::stored},
    Answer{set_of(Op::remove_if), "STORED", Outcome::deleted},
    Answer{conditional_stores, "NOT_STORED", Outcome::not_stored},
    Answer{set_of(Op::set, Op::cas, Op::remove_if), "NOT_STORED", Outcome::failed},
    Answer{set_of(Op::add), "EXISTS", Outcome::not_stored},
    Answer{set_of(Op::replace, Op::append, Op::append_or_create), "NOT_FOUND", Outcome::not_stored},
    Answer{set_of(Op::cas, Op::remove_if), "EXISTS", Outcome::exists},
    Answer{set_of(Op::cas, Op::remove_if, Op::incr, Op::decr, Op::incr_or_create, Op::touch, Op::remove),
           "NOT_FOUND", Outcome::not_found},
    Answer{set_of(Op::touch), "TOUCHED", Outcome::stored},
    Answer{set_of(Op::remove), "DELETED", Outcome::deleted},
};
// The first words of these replies; their flags do not matter.
constexpr std::array meta_answers{
    Answer{set_of(Op::add, Op::set, Op::replace, Op::touch), "HD", Outcome::stored},
    Answer{set_of(Op::add, Op::set, Op::replace), "NS", Outcome::not_stored},
    Answer{set_of(Op::touch), "EN", Outcome::not_found},
    Answer{set_of(Op::remove, Op::remove_if), "HD", Outcome::deleted},
    Answer{set_of(Op::remove, Op::remove_if), "NF", Outcome::not_found},
    Answer{set_of(Op::remove, Op::remove_if), "EX", Outcome::exists},
};

// Looks the line up in a closed table; any other line is not a reply to this operation.
Step by_table(Op op, std::span<const Answer> answers, std::string_view line, Reply& reply) {
  const auto answer = std::ranges::find_if(
      answers, [&](const Answer& one) { return (one.ops & set_of(op)) != 0 && one.text == line; });
  if (answer == answers.end()) return Step::out_of_step;
  reply.outcome = answer->outcome;
  if (reply.failed()) fail(reply, Kind::refused, "the server refused: " + std::string(line));
  return Step::done;
}

Step read_one_line(Op op, bool meta, std::string_view line, Reply& reply) {
  if (meta) return by_table(op, meta_answers, line.substr(0, line.find(' ')), reply);
  const bool counts = op == Op::incr || op == Op::decr || op == Op::incr_or_create;
  if (const auto number = counts ? parse_padded_u64(line) : std::nullopt) {
    reply.outcome = Outcome::stored;
    reply.number = *number;
    return Step::done;
  }
  if (op != Op::version) return by_table(op, classic_answers, line, reply);
  if (!line.starts_with("VERSION ")) return Step::out_of_step;
  reply.outcome = Outcome::hit;
  reply.value = line.substr(8);
  return Step::done;
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

// A line of the input.
struct ReplyReader::Line {
  std::string_view input;
  std::string_view text = {};
  std::size_t end = 0;  // offset past its line break, or past the data block that follows it

  // Reads the complete line at `position`. Otherwise returns need_more or out_of_step. `with_breaks`: the
  // line may contain line feeds without a carriage return.
  Step take(std::size_t position, bool with_breaks) {
    // pogocache 1.3 sends an extra NUL after the NOT_FOUND of a replace.
    if (position < input.size() && input[position] == '\0') ++position;
    const std::string_view rest = input.substr(position, max_line_length);
    std::size_t feed = rest.find('\n');
    while (with_breaks && feed != std::string_view::npos && (feed == 0 || rest[feed - 1] != '\r'))
      feed = rest.find('\n', feed + 1);
    if (feed == std::string_view::npos)
      return rest.size() == max_line_length ? Step::out_of_step : Step::need_more;
    if (feed == 0 || rest[feed - 1] != '\r') return Step::out_of_step;
    text = rest.substr(0, feed - 1);
    end = position + feed + 1;
    return Step::done;
  }
};

Step ReplyReader::read(const Command& command, std::span<const Request* const> requests,
                       std::span<Reply* const> replies, std::string_view input, std::size_t& position,
                       ServerProtocol::CommandSet words) {
  const Run run{requests.subspan(command.first, command.count),
                replies.subspan(command.first, command.count)};
  Line line{input};
  Step step = line.take(position, run.requests.front()->op == Op::stats);
  if (step != Step::done) return step;
  step = read_line(command, run, line, words);
  const bool complete = step == Step::done || step == Step::no_meta;
  if (complete || step == Step::progress) position = line.end;
  if (complete) reset();
  return step;
}

Step ReplyReader::read_line(const Command& command, const Run& run, Line& line,
                            ServerProtocol::CommandSet words) {
  const Request& request = *run.requests.front();
  Reply& reply = *run.replies.front();
  const bool meta = in_meta(request, command);
  const IncrForm incr_form = command.format.incr_form;
  if (meta && words == ServerProtocol::CommandSet::classic)
    return read_without_meta(request.op == Op::incr_or_create && incr_form == IncrForm::whole, reply, line);
  if (!meta && is_fetch(request.op)) return read_values(run, request.op != Op::get, line);
  if (request.op == Op::add_and_get) return read_added(run, command.format, line);
  if (is_fetch(request.op)) return read_meta_get(request, reply, line);
  if (meta && request.op == Op::incr_or_create)
    return read_meta_incr(request, reply, incr_form == IncrForm::create, line);
  if (request.op == Op::stats) return read_stats(request, reply, line);
  const Step step = read_one_line(request.op, meta, line.text, reply);
  return step == Step::out_of_step ? read_error(request, line.text, reply, meta) : step;
}

// Reads the errors of a server without meta commands, one for each line that was sent.
Step ReplyReader::read_without_meta(bool two_lines, Reply& reply, const Line& line) {
  if (!is_error(line.text)) return Step::out_of_step;
  if (two_lines && !std::exchange(half_, true)) return Step::progress;
  fail(reply, Kind::refused, no_meta_message);
  return Step::no_meta;
}

// Reads the data block of `size` bytes after `line`.
Step ReplyReader::take_data(Line& line, std::uint64_t size, std::string& value) {
  if (size > max_item_value_size) return Step::out_of_step;
  const std::string_view rest = line.input.substr(line.end);
  wanted_ = line.end + size + 2;
  if (rest.size() < size + 2) return Step::need_more;
  if (rest.substr(size, 2) != "\r\n") return Step::out_of_step;
  value.assign(rest.substr(0, size));
  line.end = wanted_;
  return Step::done;
}

// Reads VALUE <key> <flags> <bytes> [<cas>], data, …, END: hits in the order of the keys, without misses.
Step ReplyReader::read_values(const Run& run, bool with_cas, Line& line) {
  const auto& [requests, replies] = run;
  const auto miss_until = [&](std::size_t end) {
    for (; answered_ < end; ++answered_) replies[answered_]->outcome = Outcome::miss;
  };
  if (line.text == "END") {
    miss_until(requests.size());
    return Step::done;
  }
  std::string_view words = line.text;
  if (next_word(words) != "VALUE") {
    if (answered_ == requests.size()) return Step::out_of_step;
    const Step step = read_error(*requests[answered_], line.text, *replies[answered_], false);
    for (std::size_t i = answered_ + 1; step == Step::done && i < requests.size(); ++i)
      fail(*replies[i], Kind::refused, replies[answered_]->failure->message);
    return step;
  }
  const std::string_view key = next_word(words);
  const auto flags = parse_u64(next_word(words));
  const auto size = parse_u64(next_word(words));
  const auto cas = with_cas ? parse_u64(next_word(words)) : std::optional<std::uint64_t>(0);
  std::size_t index = answered_;
  while (index < requests.size() && requests[index]->key != key) ++index;
  if (index == requests.size() || !flags || *flags > UINT32_MAX || !size || !cas) return Step::out_of_step;
  Reply& reply = *replies[index];
  if (const Step step = take_data(line, *size, reply.value); step != Step::done) return step;
  miss_until(index);
  reply.outcome = Outcome::hit;
  reply.flags = static_cast<std::uint32_t>(*flags);
  reply.cas = {*cas};
  answered_ = index + 1;
  return Step::progress;
}

// Reads a line for each add, unless they are quiet, then the values. Only Op::add reports errors of an add.
Step ReplyReader::read_added(const Run& run, const RequestFormat& format, Line& line) {
  if (format.quiet || reported_ == run.requests.size()) return read_values(run, format.shows_cas, line);
  Reply said = Reply::of(Outcome::failed, run.replies[reported_]->server);
  Step step = by_table(Op::add, classic_answers, line.text, said);
  if (step == Step::out_of_step) step = read_error(*run.requests[reported_], line.text, said, false);
  if (step != Step::done) return step;
  run.replies[reported_++]->created = said.outcome == Outcome::stored;
  return Step::progress;
}

// Reads <bytes> <flags>*, the rest of a VA line, and the data. The reply of an ma has a number and no key.
Step ReplyReader::read_item(std::string_view words, bool is_number, const Request& request, Reply& reply,
                            Line& line) {
  constexpr std::uint64_t max_number_size = 32;
  const auto size = parse_u64(next_word(words));
  if (!size || (is_number && *size > max_number_size)) return Step::out_of_step;
  bool right_key = is_number;  // an `ma` does not repeat the key
  for (std::string_view flag = next_word(words); !flag.empty(); flag = next_word(words)) {
    if (!read_flag(flag, request, reply)) return Step::out_of_step;
    right_key = right_key || flag[0] == (is_in_base64(request) ? 'O' : 'k');
  }
  return right_key ? take_data(line, *size, reply.value) : Step::out_of_step;
}

// Reads EN [k<key>] (some servers repeat the key even then), or VA and an item.
Step ReplyReader::read_meta_get(const Request& request, Reply& reply, Line& line) {
  if (is_miss(request, line.text)) {
    reply.outcome = Outcome::miss;
    return Step::done;
  }
  std::string_view words = line.text;
  if (next_word(words) != "VA") return read_error(request, line.text, reply, true);
  const Step step = read_item(words, false, request, reply, line);
  if (step == Step::done) reply.outcome = Outcome::hit;
  return step;
}

// Reads the reply to the mg, then the ma's VA and the number. Whatever the mg returned, the ma may have been
// applied, so the ma's reply decides.
Step ReplyReader::read_meta_incr(const Request& request, Reply& reply, bool only_creates, Line& line) {
  if (!half_ && !only_creates) {
    const Step step = read_meta_get(request, before_, line);
    if (step != Step::done && step != Step::no_meta) return step;
    existed_ = before_.outcome != Outcome::miss;
    half_ = true;
    return Step::progress;
  }
  std::string_view words = line.text;
  const std::string_view first = next_word(words);
  if (first == "NF" && !request.creates) {
    reply.outcome = Outcome::not_found;
    return Step::done;
  }
  if (first != "VA") {
    const Step step = read_error(request, line.text, reply, true);
    if (reply.is(Kind::not_a_number) && before_.outcome == Outcome::hit)
      reply = Reply::of_text(std::move(before_.value), reply.server);
    else if (step == Step::done)
      reply.value = std::move(before_.value);
    return step;
  }
  Reply after;
  if (const Step step = read_item(words, true, request, after, line); step != Step::done) return step;
  const auto number = parse_padded_u64(after.value);
  if (!number) return Step::out_of_step;
  if (before_.outcome == Outcome::hit && !parse_padded_u64(before_.value)) {
    // Servers increment text that starts with digits. Value, flags and ttl of the reply are the old ones,
    // `number` and `cas` the new ones, so that the caller can restore the text.
    reply = Reply::of_text(std::move(before_.value), reply.server);
    reply.flags = before_.flags;
    reply.age = before_.age;
    reply.cas = after.cas;
  } else {
    reply.outcome = Outcome::stored;
    reply.created = !existed_ && *number == request.initial;
  }
  reply.number = *number;
  return Step::done;
}

// The address of a listening unix socket in `stats conns` ends with uninitialized bytes of the server's stack
// when its path is longer than 26 bytes (memcached since 1.4.18); they may contain a line feed.
Step ReplyReader::read_stats(const Request& request, Reply& reply, const Line& line) {
  if (line.text == "END" || line.text == "RESET" || line.text == "OK") {
    reply.outcome = Outcome::hit;
    return Step::done;
  }
  if (!line.text.starts_with("STAT ")) return read_error(request, line.text, reply, false);
  const std::size_t at = reply.value.size();
  reply.value += line.text.substr(5);
  std::ranges::replace(reply.value.begin() + static_cast<std::ptrdiff_t>(at), reply.value.end(), '\n', '?');
  reply.value += '\n';
  return reply.value.size() > max_stats_size ? Step::out_of_step : Step::progress;
}

}  // namespace mcds::meta
