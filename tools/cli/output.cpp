#include "tools/cli/output.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <unistd.h>

#include <cassert>
#include <filesystem>

#include "common/base/bytes.hpp"
#include "common/base/text.hpp"
#include "common/cluster/transport.hpp"
#include "tools/cli/input.hpp"
#include "tools/cli/progress.hpp"

namespace mcds {

namespace {

constexpr std::size_t max_groups = 256;
constexpr std::size_t max_news = 3;
constexpr std::size_t max_at_the_end = 6;
constexpr std::size_t shown_of_each = 3;

// Returns the message without quoted names, which differ from line to line.
std::string unquoted(std::string_view message) {
  std::string text;
  char open = '\0';
  for (std::size_t i = 0; i < message.size(); ++i) {
    const char c = message[i];
    if (open == '\0') text += c;
    const bool quotes = c == '\'' || c == '"';
    if (open != '\0' ? c == open : quotes && (i == 0 || message[i - 1] == ' ')) {
      text += open == '\0' ? "…" : std::string(1, c);
      open = open == '\0' ? c : '\0';
    }
  }
  return text;
}

constexpr std::size_t buffer_size = 64 * 1024;
// The time in which the reader can take the pending answers when the run's limits are over.
constexpr auto reader_grace = std::chrono::milliseconds(500);

// Keeps freed memory in the process. Each window of a large batch uses the same few MiB, which would
// otherwise come back page by page, and small freed blocks would be merged over and over.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  mallopt(M_TRIM_THRESHOLD, 32 << 20);
  mallopt(M_MXFAST, 0);
}

// Returns one line of stderr in JSON mode.
std::string json_line(const char* kind, const JsonObject& object) {
  std::string line;
  append_visible_json(line, JsonObject().object(kind, object).text());
  return line;
}

// Returns a message for JSON. It must be UTF-8; JSON's escapes show its controls.
std::string readable(std::string_view text) {
  return is_utf8(text) ? std::string(text) : visible(text);
}

std::string end_of_line(char end) {
  return end == '\0' ? "a NUL; use -o json" : "a line feed; use -0, or -o json";
}

}  // namespace

std::string FailedGroup::whom() const {
  std::string text = lines ? count == 1 ? "line " : "lines " : "";
  for (std::size_t i = 0; i < first.size(); ++i) text += (i == 0 ? "" : ", ") + first[i];
  if (count > first.size()) text += " and " + std::to_string(count - first.size()) + " more";
  return text;
}

FailedGroup& ErrorDigest::group_of(const Failure& failure, bool lines) {
  const std::string cause = unquoted(failure.what());
  const auto is_of = [&](const FailedGroup& group) {
    return group.code == failure.code() && group.lines == lines && group.server == failure.server() &&
           group.cause == cause;
  };
  if (last_ < groups_.size() && is_of(groups_[last_])) return groups_[last_];
  const auto found = std::ranges::find_if(groups_, is_of);
  last_ = static_cast<std::size_t>(found - groups_.begin());
  if (found != groups_.end()) return *found;
  if (groups_.size() == max_groups) return groups_[--last_];
  return groups_.emplace_back(FailedGroup{failure.code(), failure.what(), failure.server(), lines, cause});
}

void ErrorDigest::add_line(const Failure& failure, std::uint64_t line, std::uint64_t count) {
  FailedGroup& group = group_of(failure, true);
  group.count += count;
  if (group.count > 1) group.message = group.cause;
  for (; count > 0 && group.first.size() < shown_of_each; --count)
    group.first.push_back(std::to_string(line++));
}

void ErrorDigest::add_name(const Failure& failure, std::string_view name) {
  FailedGroup& group = group_of(failure, false);
  if (++group.count > 1) group.message = group.cause;
  if (group.first.size() < shown_of_each) group.first.emplace_back(name);
}

bool ErrorDigest::hides_any() const {
  return std::ranges::any_of(groups_,
                             [](const FailedGroup& group) { return group.count > group.first.size(); });
}

std::vector<FailedGroup> ErrorDigest::news() {
  std::vector<FailedGroup> reported;
  for (FailedGroup& group : groups_) {
    if (group.reported > 0 || news_ == max_news) continue;
    ++news_;
    group.reported = group.count;
    reported.push_back(group);
  }
  return reported;
}

std::vector<FailedGroup> ErrorDigest::rest() {
  std::vector<FailedGroup> reported;
  for (const FailedGroup& group : groups_) {
    if (group.count > group.reported) reported.push_back(group);
  }
  groups_.clear();
  if (reported.size() <= max_at_the_end) return reported;
  std::ranges::stable_sort(reported, std::greater{}, &FailedGroup::count);
  FailedGroup others = reported[max_at_the_end - 1];
  others.server.clear();
  for (std::size_t i = max_at_the_end; i < reported.size(); ++i) others.count += reported[i].count;
  others.message = "other causes, for example: " + others.message;
  reported.resize(max_at_the_end - 1);
  reported.push_back(std::move(others));
  return reported;
}

void throw_output_failed(int error) {
  if (error == EPIPE) throw ClosedPipe{};
  throw refused_by_system(ErrorCode::output_failed, "cannot write to standard output", error);
}

bool is_output_piped() {
  struct stat output {};
  return fstat(STDOUT_FILENO, &output) == 0 && (S_ISFIFO(output.st_mode) || S_ISSOCK(output.st_mode));
}

Output::Output(OutputMode mode) : mode_(mode), table_(terminal_width(), terminal_has_colours()) {}

void Output::buffered(bool on) {
  if (on) keep_freed_memory();
  buffered_ = on;
}

void Output::call_servers(const Pool& pool) {
  for (const Server& server : pool) {
    if (server.is_unix() && !server.name.empty()) table_.call_server(server.address(), server.name);
  }
}

void Output::answer(const JsonObject& object, std::string_view bare) {
  if (quiet_ || mode_ == OutputMode::openmetrics) return;
  if (mode_ == OutputMode::value) return answer_pieces({bare});
  if (mode_ == OutputMode::text) {
    pending_ += table_.add(object.brief());
    return line_done();
  }
  assert(!declared_ || declared_(object.text()));
  std::size_t start = pending_.size();
  object.write([&](std::string_view part) {
    pending_ += part;
    if (pending_.size() < buffer_size) return;
    make_json_visible(pending_, start);
    static_cast<void>(write_pending());
    start = pending_.size();
  });
  make_json_visible(pending_, start);
  pending_ += line_end_;
  line_done();
}

void Output::answer_pieces(std::initializer_list<std::string_view> pieces) {
  if (quiet_) return;
  append_all(pending_, pieces);
  pending_ += line_end_;
  line_done();
}

void Output::answer_name(const JsonObject& object, std::string_view name) {
  if (mode_ == OutputMode::value && name.find(line_end_) != std::string_view::npos)
    return hide(name, "the name contains " + end_of_line(line_end_));
  answer(object, name);
}

void Output::answer_value(const JsonObject& object, std::string_view name, std::string_view value) {
  if (mode_ == OutputMode::value && value.find(line_end_) != std::string_view::npos)
    return hide(name, "the value contains " + end_of_line(line_end_));
  answer(object, value);
}

void Output::answer_key(const JsonObject& object, std::string_view key) {
  if (mode_ == OutputMode::value && line_end_ != '\0' && has_controls(key))
    return hide(key, "the key contains control characters; use -0, or -o json");
  answer_name(object, key);
}

void Output::answer_pair(std::string_view name, std::optional<std::string_view> value) {
  if (name.find('\t') != std::string_view::npos) return hide(name, "the name contains a tab; use -o json");
  if (name.find(line_end_) != std::string_view::npos)
    return hide(name, "the name contains " + end_of_line(line_end_));
  if (value && value->find(line_end_) != std::string_view::npos)
    return hide(name, "the value contains " + end_of_line(line_end_));
  value ? answer_pieces({name, "\t", *value}) : answer_pieces({name});
}

void Output::hide(std::string_view name, const std::string& why) {
  static_cast<void>(failed(name, Failure(ErrorCode::bad_data, why)));
  hid_names_ = true;
}

void Output::answer_bytes(const JsonObject& object, std::string_view bytes) {
  if (mode_ != OutputMode::value || quiet_) return answer(object, {});
  pending_ += bytes;
  line_done();
}

void Output::raw(std::string_view bytes) {
  pending_ += table_.flush();
  pending_ += bytes;
  line_done();
}

void Output::line_done() {
  const bool due = !buffered_ || pending_.size() >= buffer_size;
  if (due && !write_pending() && !batched_) throw unread();
}

bool Output::drain() {
  pending_ += table_.flush();
  return write_pending();
}

void Output::next_table() {
  pending_ += table_.end();
  flush();
}

void Output::give_up() {
  try {
    drain();
  } catch (...) {  // the error that ends the run is reported
  }
  gave_up_ = true;
}

Failure Output::unread() const {
  const bool by_deadline = limits_->over(SystemClock().steady());
  const std::string why =
      (by_deadline ? limits_->why_over() : "interrupted") + ", and standard output is not being read";
  if (!*changed_) return {ErrorCode::try_again, why};
  return UnknownOutcome(why + std::string(may_be_applied));
}

// Writes what standard output takes within the run's limits, and removes it from `bytes`. Returns false with
// errno on an error.
bool Output::write_some(std::string_view& bytes) {
  const bool is_terminal = isatty(STDOUT_FILENO) != 0;
  if (is_terminal) hide_progress();
  // Files and /dev/null take everything at once.
  const bool may_wait = is_terminal || is_output_piped();
  if (!may_wait || limits_ == nullptr || (!limits_->may_be_cut() && signals_ < 0))
    return write_all(STDOUT_FILENO, std::exchange(bytes, {}));
  while (!bytes.empty() && is_taken()) {
    // A pipe that is ready takes PIPE_BUF bytes without waiting for its reader. A terminal may wait.
    std::size_t most = std::min<std::size_t>(bytes.size(), PIPE_BUF);
    if (const std::size_t end = bytes.substr(0, most).rfind(line_end_); end != std::string_view::npos)
      most = end + 1;
    const ssize_t size = write(STDOUT_FILENO, bytes.data(), most);
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (size <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
  return true;
}

bool Output::is_taken() {
  if (ready_in_time(STDOUT_FILENO, POLLOUT, *limits_, signals_)) return true;
  if (!grace_.may_be_cut()) grace_.set_deadline(SystemClock().steady() + reader_grace);
  return ready_in_time(STDOUT_FILENO, POLLOUT, grace_);
}

// Writes the pending answers. Returns false if they are not read in time; the rest stays, because nothing may
// follow a part of a line.
bool Output::write_pending() {
  if (gave_up_) pending_.clear();
  if (pending_.empty()) return true;
  std::string_view rest = pending_;
  const bool failed = !write_some(rest);
  const int error = errno;
  const std::size_t size = pending_.size() - rest.size();
  written_ += size;
  pending_.erase(0, size);
  if (!failed) return pending_.empty();
  gave_up_ = true;
  throw_output_failed(error);
}

bool Output::reports_json() const {
  return mode_ == OutputMode::json && isatty(STDERR_FILENO) == 0;
}

std::string Output::message_of(std::string_view text, ErrorCode code) const {
  return readable(text) + (code == ErrorCode::unavailable ? no_server_hint_ : "");
}

void Output::error(const Failure& failure) {
  keep(failure, 0, {});
  report({failure.code(), failure.what(), failure.server()});
}

void Output::report(const FailedGroup& group) const {
  std::string message = message_of(group.message, group.code);
  if (!group.lines && group.count > 0) message = readable(group.whom()) + ": " + message;
  std::string text;
  if (reports_json()) {
    JsonObject error = JsonObject("code", name_of(group.code)).bytes("message", message);
    if (!group.server.empty()) error.bytes("server", group.server);
    if (group.lines && group.count > 0) error.raw("line", group.first.front());
    if (group.lines && group.count > 1)
      error.number("lines", group.count).raw("first_lines", '[' + joined(group.first) + ']');
    text = json_line("error", error);
  } else {
    text = "mcds: " + (group.lines && group.count > 0 ? group.whom() + ": " : "") + message;
    if (!group.server.empty()) text += " (server " + group.server + ')';
    text = visible(text);
  }
  raw_error(text + '\n');
}

void Output::failed_lines(const Failure& failure, std::uint64_t line, std::uint64_t count) {
  digest_.add_line(failure, line, count);
  for (std::uint64_t i = 0; i < count; ++i) keep(failure, line + i, {});
}

ExitStatus Output::failed(std::string_view key, const Failure& failure) {
  digest_.add_name(failure, key);
  keep(failure, 0, key);
  return status_of(failure.code());
}

void Output::error_of(std::string_view name, std::span<const std::string> names, const Failure& failure) {
  if (names.size() < 2) return error(failure);
  static_cast<void>(failed(name, failure));
}

void Output::report_errors() {
  const bool hides = digest_.hides_any();
  for (const FailedGroup& group : digest_.rest()) report(group);
  if (hides && !errors_file_) warning("--errors FILE writes every failure there, one JSON line each");
}

void Output::keep_errors(const std::string& file) {
  errors_file_ = OutputFile(file, "--errors: cannot write", OutputFile::From::start);
}

void Output::keep(const Failure& failure, std::uint64_t line, std::string_view name) {
  if (!errors_file_) return;
  JsonObject entry;
  if (line != 0) entry.number("line", line);
  if (!name.empty()) entry.bytes("name", name);
  entry.bytes("code", name_of(failure.code())).bytes("message", failure.what());
  if (!failure.server().empty()) entry.bytes("server", failure.server());
  if (const auto lost = attempt([&] { errors_file_.write(entry.text() + '\n'); }).failure()) {
    errors_file_ = {};
    warning(std::string(lost->what()) + "; failures are no longer kept there");
  }
}

void Output::raw_error(std::string_view bytes) const {
  hide_progress();
  // If stderr fails, the error cannot be reported.
  static_cast<void>(write_all(STDERR_FILENO, bytes));
}

void Output::note(std::string_view line) const {
  raw_error(visible(line) + '\n');
}

void Output::incomplete(const JsonObject& what, std::string_view message) const {
  note(reports_json() ? what.text() : "mcds: " + std::string(message));
}

void Output::warning(std::string_view message) const {
  note(reports_json() ? json_line("warning", JsonObject("message", readable(message)))
                      : "mcds: " + std::string(message));
}

namespace {

// Returns the descriptor for a path that names a stream of this process.
std::optional<int> own_descriptor(std::string_view path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    const auto number = parse_u64(path.substr(folder.size()));
    if (number && *number < 1'000'000) return static_cast<int>(*number);
  }
  return std::nullopt;
}

// Returns true for a link that somebody else created in a folder where everybody may: it could lead to any
// file of ours. In a sticky folder only the owner can replace a link that passes this check.
bool is_planted(const std::string& path) {
  struct stat link {};
  struct stat folder {};
  const std::string parent = std::filesystem::path(path).parent_path();
  if (lstat(path.c_str(), &link) != 0 || stat(parent.empty() ? "." : parent.c_str(), &folder) != 0)
    return true;
  const bool for_all = (folder.st_mode & S_ISVTX) != 0 && (folder.st_mode & S_IWOTH) != 0;
  return for_all && link.st_uid != geteuid() && link.st_uid != folder.st_uid;
}

// Opens a file for writing without ever waiting for the reader of a pipe.
int open_to_write(const std::string& path, int flags) {
  flags |= O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK;
  int opened = open(path.c_str(), flags | O_NOFOLLOW, 0666);
  if (opened < 0 && errno == ELOOP) {
    const bool planted = is_planted(path);
    errno = ELOOP;
    if (!planted) opened = open(path.c_str(), flags, 0666);
  }
  if (opened >= 0) fcntl(opened, F_SETFL, fcntl(opened, F_GETFL) & ~O_NONBLOCK);
  return opened;
}

}  // namespace

OutputFile::OutputFile(const std::optional<std::string>& path, std::string cannot, From from)
    : path_(path.value_or("")), cannot_(std::move(cannot)) {
  if (!path) return;
  // A stream of this process is duplicated, so that writes continue at its position. Opening it again would
  // truncate and overwrite a file behind it.
  const auto own = own_descriptor(path_);
  descriptor_ = Descriptor(own ? fcntl(*own, F_DUPFD_CLOEXEC, 0)
                               : open_to_write(path_, from == From::start ? O_TRUNC : O_APPEND));
  if (descriptor_ < 0) fail();
}

void OutputFile::fail() const {
  const char* why = std::strerror(errno);
  if (errno == ENXIO) why = "no process reads the pipe";
  if (errno == ELOOP) why = "the path is a link that another user created; give another path";
  throw Failure(ErrorCode::cannot_write, cannot_ + ' ' + path_ + ": " + why);
}

}  // namespace mcds
