// Writes answers to stdout and errors to stderr. Nothing else may write to stdout.
#pragma once

#include "common/base/errors.hpp"
#include "common/base/json.hpp"
#include "common/base/process.hpp"
#include "common/cluster/cluster.hpp"
#include "tools/cli/exit_status.hpp"
#include "tools/cli/text_table.hpp"

namespace mcds {

// A file that a run writes in addition to its answers: --report, --audit, --errors.
class OutputFile {
 public:
  enum class From { start, end };

  OutputFile() = default;  // no file
  // Truncates `path`, if any, or appends to it. Throws Failure(cannot_write) that begins with `cannot`, as
  // write() does, also for a pipe without a reader. Open it before the run changes anything.
  OutputFile(const std::optional<std::string>& path, std::string cannot, From from);

  explicit operator bool() const { return descriptor_ >= 0; }
  void write(std::string_view bytes) const {
    if (descriptor_ >= 0 && !write_all(descriptor_, bytes)) fail();
  }

 private:
  [[noreturn]] void fail() const;

  std::string path_;
  std::string cannot_;
  Descriptor descriptor_;
};

enum class OutputMode { json, value, text, openmetrics };

// Thrown if stdout is a pipe without a reader. main() then ends the program quietly, as SIGPIPE would have.
struct ClosedPipe {};
// Throws ClosedPipe or Failure(output_failed) for the errno of a failed write to stdout.
[[noreturn]] void throw_output_failed(int error);
// Returns true if standard output is a pipe or a socket, whose reader may let us wait.
bool is_output_piped();

// Lines of the input, or names of the command line, that failed in the same way.
struct FailedGroup {
  ErrorCode code;
  std::string message, server;
  bool lines = true;    // false: names
  std::string cause{};  // the message without names
  std::uint64_t count = 0, reported = 0;
  std::vector<std::string> first{};  // at most three of them

  // Returns `line 7`, `lines 1, 2, 3 and 4997 more`, or `b, c`.
  std::string whom() const;
};

// Groups the failures of a batch by server and cause to keep stderr short. A file has all of them.
class ErrorDigest {
 public:
  void add_line(const Failure& failure, std::uint64_t line, std::uint64_t count);
  void add_name(const Failure& failure, std::string_view name);

  // Returns the messages to print while more may follow: new causes, at most three in all.
  std::vector<FailedGroup> news();
  // Returns the messages to print at the end, at most six: causes with more failures than were reported, the
  // most frequent first. If there are too many, a last group without a server sums up the rest.
  std::vector<FailedGroup> rest();
  // Returns true if some failures are not shown with their line or name by any group.
  bool hides_any() const;

 private:
  FailedGroup& group_of(const Failure& failure, bool lines);
  std::vector<FailedGroup> groups_;
  std::size_t last_ = 0;  // group of the latest failure, which often fits the next one too
  std::size_t news_ = 0;
};

class Output {
 public:
  explicit Output(OutputMode mode);
  // Cannot be copied. main() flushes; answers that a failing run leaves unwritten are dropped.
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  OutputMode mode() const { return mode_; }
  // Sets the mode from the settings if the command line has none. Must be called before the first answer.
  void use_mode(OutputMode mode) { mode_ = mode; }
  // Suppresses answers. Bytes given to raw() are still written.
  void be_quiet() { quiet_ = true; }
  // Shows servers on a unix socket by their name, if they have one (-o text).
  void call_servers(const Pool& pool);

  // Keeps this field's column in a narrow table, because the rows are sorted by it.
  void keep_column(std::string field) { table_.keep(std::move(field)); }

  // Writes one answer: a JSON line; with -o value `bare` and a line feed; with -o text a row of a table,
  // whose first screenful waits for flush(). Each line is flushed unless buffered(true) was called; then the
  // buffer is written when it is full or at flush(), for batches.
  void answer(const JsonObject& object, std::string_view bare);
  // Writes an answer that has no bare form: nothing with -o value.
  void detail(const JsonObject& object) {
    if (mode_ != OutputMode::value) answer(object, {});
  }
  // Writes an answer whose text is already formatted, in pieces.
  void answer_pieces(std::initializer_list<std::string_view> pieces);
  // Writes an answer whose bare value is a name. A name that contains a line end is reported as an error
  // instead, because a reader would see two names.
  void answer_name(const JsonObject& object, std::string_view name);
  // Writes the value of `name` among several. One that contains a line end is reported as an error, too.
  void answer_value(const JsonObject& object, std::string_view name, std::string_view value);
  // Writes an answer whose bare value is a key that a server listed. In addition to answer_name(), a key with
  // control characters is reported as an error, unless lines end with a NUL.
  void answer_key(const JsonObject& object, std::string_view key);
  // Writes a name, a tab and a value with -o value, or the name alone if there is no value. A pair that a
  // reader would misread is reported as an error instead.
  void answer_pair(std::string_view name, std::optional<std::string_view> value);
  // Returns true if a name or value was reported as an error instead of being printed.
  bool hid_names() const { return hid_names_; }
  // Sets a predicate that every JSON answer must satisfy.
  void expect(std::function<bool(const std::string&)> declared) { declared_ = std::move(declared); }
  // Sets the character that ends an answer; default: a line feed.
  void end_lines_with(char end) { line_end_ = end; }
  // Writes an answer whose bare value is a stored value: with -o value its exact bytes, without a line feed.
  void answer_bytes(const JsonObject& object, std::string_view bytes);
  // Writes bytes unchanged in any mode, such as a child's replayed output or an SVG.
  void raw(std::string_view bytes);
  // Writes bytes unchanged to stderr.
  void raw_error(std::string_view bytes) const;

  // Limits the wait for the reader of the answers, after which unread() is thrown. `changed` tells whether
  // the run has sent changes.
  void bound(std::shared_ptr<const RunLimits> limits, std::shared_ptr<const std::atomic<bool>> changed) {
    limits_ = std::move(limits);
    changed_ = std::move(changed);
  }

  // Ends the wait for the reader in the same way when this descriptor can be read. Returns its number.
  int heed(Descriptor signals) { return signals_ = std::move(signals); }

  void buffered(bool on);
  // Buffers the answers of a batch, which calls drain(): those that are not read in time are kept until then.
  void batched(bool on) {
    buffered(on);
    batched_ = on;
  }
  // Writes all answers. Throws unread(), Failure(output_failed) if stdout cannot be written, ClosedPipe if it
  // has no reader.
  void flush() {
    if (!drain()) throw unread();
  }
  // Writes all answers. Returns false if they are not read in time. Then whole lines were written, except for
  // those that a pipe does not take at once, and later answers follow the unwritten ones.
  bool drain();
  // Returns Failure(unknown_outcome) if the run has sent changes, otherwise Failure(try_again).
  Failure unread() const;
  // Returns the end of the answers so far, for has_written().
  std::uint64_t end() const { return table_.waits() ? UINT64_MAX : written_ + pending_.size(); }
  // Returns true if the answers up to that end() were written.
  bool has_written(std::uint64_t end) const { return end <= written_; }
  // Flushes; with -o text, the next row then has a header of its own.
  void next_table();
  // Writes the pending answers before an error, as far as standard output accepts them. Drops later ones.
  void give_up();

  // Sets a further hint for the error about an unreachable server.
  void hint_at_servers(std::string hint) { no_server_hint_ = std::move(hint); }

  // Writes one line to stderr: {"error":{"code":…,"message":…,"server":…}} in JSON mode unless stderr is a
  // terminal, otherwise `mcds: message`.
  void error(const Failure& failure);
  // Records a failure of `count` input lines, the first of them `line`. report_errors() reports it together
  // with others of the same server and cause.
  void failed_lines(const Failure& failure, std::uint64_t line, std::uint64_t count = 1);
  // Records a failure of one of the keys of a run in the same way. Returns its exit status.
  ExitStatus failed(std::string_view key, const Failure& failure);
  // Records a failure of one of several `names` in the same way. For a single name it calls error().
  void error_of(std::string_view name, std::span<const std::string> names, const Failure& failure);
  // Report new causes while more may follow, and everything that remains.
  void report_new_errors() {
    for (const FailedGroup& group : digest_.news()) report(group);
  }
  void report_errors();
  // Also writes every error to this file, one JSON line each. Throws Failure(cannot_write).
  void keep_errors(const std::string& file);
  // Writes a warning to stderr in the same two forms: {"warning":{"message":…}}, `mcds: message`.
  void warning(std::string_view message) const;
  // Writes the last stderr line of an incomplete answer: `what` in JSON mode, otherwise `mcds: message`.
  void incomplete(const JsonObject& what, std::string_view message) const;
  // Writes one line to stderr unchanged (--verbose).
  void note(std::string_view line) const;

 private:
  void hide(std::string_view name, const std::string& why);
  void line_done();
  bool write_pending();
  bool write_some(std::string_view& bytes);
  bool is_taken();
  void report(const FailedGroup& group) const;
  void keep(const Failure& failure, std::uint64_t line, std::string_view name);
  // Returns true if errors and warnings are JSON: in JSON mode, unless a person at a terminal reads them.
  bool reports_json() const;
  std::string message_of(std::string_view text, ErrorCode code) const;

  OutputMode mode_;
  std::shared_ptr<const RunLimits> limits_;
  std::shared_ptr<const std::atomic<bool>> changed_;
  Descriptor signals_;
  RunLimits grace_;  // for the reader once limits_ are over
  bool buffered_ = false, batched_ = false;
  bool gave_up_ = false;  // nothing may follow what was written
  bool quiet_ = false;
  bool hid_names_ = false;
  char line_end_ = '\n';
  std::string no_server_hint_;
  std::function<bool(const std::string&)> declared_;
  ErrorDigest digest_;
  OutputFile errors_file_;
  std::string pending_;
  std::uint64_t written_ = 0;  // bytes
  TextTable table_;            // -o text
};

}  // namespace mcds
