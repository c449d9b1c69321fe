#include <algorithm>
#include <array>

#include "common/base/bytes.hpp"
#include "common/cluster/meta/wire.hpp"
#include "common/cluster/transport.hpp"

namespace mcds::meta {

namespace {

using Step = ReplyReader::Step;
using Kind = ReplyFailure::Kind;

constexpr std::size_t longest_line = 2048;
constexpr std::uint64_t largest_value = 256 << 20;
constexpr std::size_t largest_stats = 16 << 20;
constexpr std::string_view turned_away_line = "ERROR Too many open connections";

struct Line {
  std::string_view text;
  std::size_t end = 0;  // behind its line break
};

// A whole line at `position`, or why there is none.
Step take_line(std::string_view input, std::size_t position, Line& line) {
  const std::string_view rest = input.substr(position, longest_line);
  const std::size_t end = rest.find('\n');
  if (end == std::string_view::npos) return rest.size() == longest_line ? Step::out_of_step : Step::need_more;
  if (end == 0 || rest[end - 1] != '\r') return Step::out_of_step;
  line = {rest.substr(0, end - 1), position + end + 1};
  return Step::done;
}

// Words of a line, without copying.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}
  std::string_view next() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
    const std::string_view word = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(word.size());
    return word;
  }

 private:
  std::string_view rest_;
};

// The data block of `size` bytes behind `line`; `position` moves behind it.
Step take_data(std::string_view input, const Line& line, std::uint64_t size, std::string& value,
               std::size_t& position) {
  if (size > largest_value) return Step::out_of_step;
  const std::string_view rest = input.substr(line.end);
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

// ERROR, CLIENT_ERROR and SERVER_ERROR lines; done means the reply is filled.
Step read_error(const Request& request, std::string_view line, Reply& reply) {
  if (line == "ERROR" && needs_meta(request.op)) {
    fail(reply, Kind::refused, "the server has no meta commands; use --protocol classic");
    return Step::no_meta;
  }
  if (line.starts_with(turned_away_line)) return Step::turned_away;
  if (line == "CLIENT_ERROR cannot increment or decrement non-numeric value") {
    fail(reply, Kind::not_a_number,
         "the value is no number, so it was not changed; is this key somebody else's?");
    return Step::done;
  }
  if (line.starts_with("SERVER_ERROR ") || line.starts_with("CLIENT_ERROR ") || line == "ERROR") {
    fail(reply, Kind::refused, "the server refused: " + printable(line));
    // After these the server may take a data block for commands: only SERVER_ERROR leaves the connection in step.
    return line.starts_with("SERVER_ERROR ") ? Step::done : Step::out_of_step;
  }
  return Step::out_of_step;
}

struct Word {
  std::string_view text;
  Outcome outcome;
};

Step by_word(std::string_view line, std::span<const Word> words, Reply& reply) {
  for (const Word& word : words) {
    if (line != word.text) continue;
    reply.outcome = word.outcome;
    return Step::done;
  }
  return Step::out_of_step;
}

Step read_storage(std::string_view line, Reply& reply) {
  static constexpr std::array words{Word{"STORED", Outcome::stored}, Word{"NOT_STORED", Outcome::not_stored},
                                    Word{"EXISTS", Outcome::exists}, Word{"NOT_FOUND", Outcome::not_found}};
  return by_word(line, words, reply);
}

Step read_number(std::string_view line, Reply& reply) {
  if (line == "NOT_FOUND") {
    reply.outcome = Outcome::not_found;
    return Step::done;
  }
  while (line.ends_with(' ')) line.remove_suffix(1);
  const auto number = parse_u64(line);
  if (!number) return Step::out_of_step;
  reply.outcome = Outcome::stored;
  reply.number = *number;
  return Step::done;
}

Step read_one_line(const Request& request, std::string_view line, Reply& reply) {
  static constexpr std::array touched{Word{"TOUCHED", Outcome::stored},
                                      Word{"NOT_FOUND", Outcome::not_found}};
  static constexpr std::array removed{Word{"DELETED", Outcome::deleted},
                                      Word{"NOT_FOUND", Outcome::not_found}};
  static constexpr std::array removed_if{Word{"HD", Outcome::deleted}, Word{"NF", Outcome::not_found},
                                         Word{"EX", Outcome::exists}};
  switch (request.op) {
    case Op::incr:
    case Op::decr:
    case Op::incr_or_create:
      return read_number(line, reply);
    case Op::touch:
      return by_word(line, touched, reply);
    case Op::remove:
      return by_word(line, removed, reply);
    case Op::remove_if:
      return by_word(line.substr(0, line.find(' ')), removed_if, reply);
    case Op::version:
      if (!line.starts_with("VERSION ")) return Step::out_of_step;
      reply.outcome = Outcome::hit;
      reply.value = line.substr(8);
      return Step::done;
    default:
      return read_storage(line, reply);
  }
}

// One flag of an mg answer, for instance `c42`.
bool read_flag(std::string_view flag, const Request& request, Reply& reply) {
  const std::string_view value = flag.substr(1);
  const auto number = parse_u64(value);
  switch (flag[0]) {
    // An item that was written under a base64 key says its key so, and `b`.
    case 'k':
      return value == request.key || parse_base64(value) == request.key;
    // Invalidated by another client: who is to write it anew. The value is what there is.
    case 'W':
    case 'X':
    case 'Z':
    case 'b':
      return value.empty();
    case 'f':
      reply.flags = static_cast<std::uint32_t>(number.value_or(0));
      return number && *number <= UINT32_MAX;
    case 'c':
      reply.cas = {number.value_or(0)};
      return number.has_value();
    case 'l':
      reply.age.idle = std::chrono::seconds(number.value_or(0));
      return number.has_value();
    case 't': {
      const auto ttl = parse_i64(value);
      reply.age.ttl = std::chrono::seconds(ttl.value_or(0));
      return ttl.has_value();
    }
    default:
      return false;
  }
}

}  // namespace

void ReplyReader::reset() {
  *this = ReplyReader();
}

Step ReplyReader::read(const Command& command, std::span<const Request* const> requests,
                       std::span<Reply* const> replies, std::string_view input, std::size_t& position) {
  const Request& request = *requests[command.first];
  Reply& reply = *replies[command.first];
  Step step = Step::done;
  if (request.op == Op::get) {
    step = read_values(requests.subspan(command.first, command.count),
                       replies.subspan(command.first, command.count), input, position);
  } else if (request.op == Op::gets || request.op == Op::probe) {
    step = read_meta_get(request, reply, input, position);
  } else if (request.op == Op::incr_or_create && command.incr_form != IncrForm::incr_only) {
    step = read_meta_incr(request, reply, command.incr_form == IncrForm::create, input, position);
  } else if (request.op == Op::stats) {
    step = read_stats(reply, input, position);
  } else {
    step = read_line_command(request, reply, input, position);
  }
  if (step == Step::done || step == Step::no_meta) reset();
  return step;
}

Step ReplyReader::read_line_command(const Request& request, Reply& reply, std::string_view input,
                                    std::size_t& position) {
  Line line;
  if (const Step step = take_line(input, position, line); step != Step::done) return step;
  Step step = read_one_line(request, line.text, reply);
  if (step == Step::out_of_step) step = read_error(request, line.text, reply);
  if (step == Step::done || step == Step::no_meta) position = line.end;
  return step;
}

// VALUE <key> <flags> <bytes> [<cas>], data, …, END: hits in the order of the keys, misses are left out.
Step ReplyReader::read_values(std::span<const Request* const> requests, std::span<Reply* const> replies,
                              std::string_view input, std::size_t& position) {
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
  Words words(line.text);
  if (words.next() != "VALUE") {
    if (answered_ == requests.size()) return Step::out_of_step;
    const Step step = read_error(*requests[answered_], line.text, *replies[answered_]);
    if (step != Step::done) return step;
    for (std::size_t i = answered_ + 1; i < requests.size(); ++i)
      fail(*replies[i], Kind::refused, replies[answered_]->failure->message);
    position = line.end;
    return Step::done;
  }
  const std::string_view key = words.next();
  const auto flags = parse_u64(words.next());
  const auto size = parse_u64(words.next());
  std::size_t index = answered_;
  while (index < requests.size() && requests[index]->key != key) ++index;
  if (index == requests.size() || !flags || *flags > UINT32_MAX || !size) return Step::out_of_step;
  Reply& reply = *replies[index];
  if (const Step step = take_data(input, line, *size, reply.value, position); step != Step::done) return step;
  miss_until(index);
  reply.outcome = Outcome::hit;
  reply.flags = static_cast<std::uint32_t>(*flags);
  answered_ = index + 1;
  return Step::progress;
}

// EN [k<key>] (1.6.18 repeats the key even then), or VA <bytes> <flags>* and the data.
Step ReplyReader::read_meta_get(const Request& request, Reply& reply, std::string_view input,
                                std::size_t& position) {
  Line line;
  if (const Step step = take_line(input, position, line); step != Step::done) return step;
  if (line.text == "EN" || line.text == "EN k" + request.key) {
    reply.outcome = Outcome::miss;
    position = line.end;
    return Step::done;
  }
  Words words(line.text);
  if (words.next() != "VA") {
    const Step step = read_error(request, line.text, reply);
    if (step == Step::done || step == Step::no_meta) position = line.end;
    return step;
  }
  const auto size = parse_u64(words.next());
  if (!size) return Step::out_of_step;
  bool right_key = false;
  for (std::string_view flag = words.next(); !flag.empty(); flag = words.next()) {
    if (!read_flag(flag, request, reply)) return Step::out_of_step;
    right_key = right_key || flag[0] == 'k';
  }
  if (!right_key) return Step::out_of_step;
  const Step step = take_data(input, line, *size, reply.value, position);
  if (step == Step::done) reply.outcome = Outcome::hit;
  return step;
}

// The mg's EN or HD, then the ma's VA <bytes> and the number.
Step ReplyReader::read_meta_incr(const Request& request, Reply& reply, bool only_creates,
                                 std::string_view input, std::size_t& position) {
  Line line;
  if (const Step step = take_line(input, position, line); step != Step::done) return step;
  if (!half_ && !only_creates) {
    if (line.text != "EN" && line.text != "HD" && line.text != "ERROR") {
      // Whatever became of the mg, the ma behind it may be applied: no error of the first is an answer to both.
      return line.text.starts_with(turned_away_line) ? Step::turned_away : Step::out_of_step;
    }
    existed_ = line.text != "EN";
    half_ = true;
    position = line.end;
    return Step::progress;
  }
  Words words(line.text);
  if (words.next() != "VA") {
    const Step step = read_error(request, line.text, reply);
    if (step == Step::done || step == Step::no_meta) position = line.end;
    return step;
  }
  const auto size = parse_u64(words.next());
  if (!size || *size > 32) return Step::out_of_step;
  std::string digits;
  if (const Step step = take_data(input, line, *size, digits, position); step != Step::done) return step;
  if (read_number(digits, reply) != Step::done || reply.outcome != Outcome::stored) return Step::out_of_step;
  reply.created = !existed_ && reply.number == request.initial;
  return Step::done;
}

Step ReplyReader::read_stats(Reply& reply, std::string_view input, std::size_t& position) {
  Line line;
  if (const Step step = take_line(input, position, line); step != Step::done) return step;
  if (line.text == "END" || line.text == "RESET" || line.text == "OK") {
    reply.outcome = Outcome::hit;
    position = line.end;
    return Step::done;
  }
  if (!line.text.starts_with("STAT ")) {
    const Step step = read_error({.op = Op::stats}, line.text, reply);
    if (step == Step::done) position = line.end;
    return step;
  }
  reply.value += line.text.substr(5);
  reply.value += '\n';
  position = line.end;
  return reply.value.size() > largest_stats ? Step::out_of_step : Step::progress;
}

}  // namespace mcds::meta
