// The only place that writes answers to stdout, and the one form of errors on stderr.
#pragma once

#include "common/base/errors.hpp"
#include "common/base/json.hpp"
#include "common/base/process.hpp"
#include "common/cluster/cluster.hpp"
#include "tools/cli/exit_status.hpp"
#include "tools/cli/text_table.hpp"

namespace mcds {

// A file that a run writes beside its answers: --report, --audit, --errors.
class OutputFile {
 public:
  enum class From { start, end };

  OutputFile() = default;  // there is none
  // None without a path. What is in it goes, or stays in front. Throws Failure(cannot_write), as write does,
  // with `cannot` before the path; a pipe that nobody reads is one. Open it before anything is done.
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

// Stdout is a pipe without a reader: main ends the program quietly, as SIGPIPE would have.
struct ClosedPipe {};
// Of what standard output takes no more by this errno: ClosedPipe, or Failure(output_failed).
[[noreturn]] void throw_output_failed(int error);

// Lines of the input, or names of the command line, with the same failure.
struct FailedGroup {
  ErrorCode code;
  std::string message, server;
  bool lines = true;    // otherwise names
  std::string cause{};  // the message without names
  std::uint64_t count = 0, told = 0;
  std::vector<std::string> first{};  // the first three of them

  // `line 7`, `lines 1, 2, 3 and 4997 more`, `b, c`.
  std::string whom() const;
};

// The failures of a batch, reported by server and cause: stderr stays short for any batch, and a file has
// them all.
class ErrorDigest {
 public:
  void add_line(const Failure& failure, std::uint64_t line, std::uint64_t count);
  void add_name(const Failure& failure, std::string_view name);

  // The messages while more may come: new causes, at most three in all.
  std::vector<FailedGroup> news();
  // The messages at the end: causes of which more is known than was reported, the most frequent first; what
  // is too much is summed up by a last one without a server. At most six.
  std::vector<FailedGroup> rest();
  // Failures that no group shows by its line or name.
  bool hides_any() const;

 private:
  FailedGroup& group_of(const Failure& failure, bool lines);
  std::vector<FailedGroup> groups_;
  std::size_t last_ = 0;  // where the latest was added: mostly the next one too
  std::size_t news_ = 0;
};

class Output {
 public:
  explicit Output(OutputMode mode);
  // main flushes; what a failing run left over is dropped.
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  OutputMode mode() const { return mode_; }
  // The mode from the settings, if the command line has none: call it before the first answer.
  void use_mode(OutputMode mode) { mode_ = mode; }
  // No answers; what raw() is given is none.
  void be_quiet() { quiet_ = true; }
  // With -o text: servers on a unix socket are shown by their name, if they have one.
  void call_servers(ServerNames names) { table_.call_servers(std::move(names)); }

  // One answer: a JSON line; with -o value just `bare` and a line feed; with -o text a row of a table, whose
  // first screenful waits for flush(). Flushed line by line unless buffered(true): then when the buffer is
  // full or at flush(), for batches.
  void answer(const JsonObject& object, std::string_view bare);
  // One that has no bare form: nothing with -o value.
  void detail(const JsonObject& object) {
    if (mode_ != OutputMode::value) answer(object, {});
  }
  // An answer whose text is as it is to be read already: its pieces.
  void answer_pieces(std::initializer_list<std::string_view> pieces);
  // An answer whose bare value is a name: one that contains the end of a line is reported as an error
  // instead, for a reader would take it for two.
  void answer_name(const JsonObject& object, std::string_view name);
  // The same of a key that a server listed: one with controls of a terminal is reported instead, too, unless
  // lines end with a NUL.
  void answer_key(const JsonObject& object, std::string_view key);
  // With -o value: a name, a tab and a value, or the name alone if there is none. What a reader would take
  // for something else is reported as an error instead.
  void answer_pair(std::string_view name, std::optional<std::string_view> value);
  // Whether there was such a name.
  bool hid_names() const { return hid_names_; }
  // Asserts this of every answer in JSON.
  void expect(std::function<bool(const std::string&)> declared) { declared_ = std::move(declared); }
  // Of answers; default: a line feed.
  void end_lines_with(char end) { line_end_ = end; }
  // An answer whose bare value is a stored value: with -o value its exact bytes, no line feed added.
  void answer_bytes(const JsonObject& object, std::string_view bytes);
  // Bytes as they are, whatever the mode (a child's replayed output, an SVG).
  void raw(std::string_view bytes);
  // The same to stderr.
  void raw_error(std::string_view bytes) const;

  // Whoever reads the answers is waited for no longer than these allow: Failure(try_again).
  void bound(std::shared_ptr<const RunLimits> limits) { limits_ = std::move(limits); }

  void buffered(bool on);
  // Throws Failure(output_failed) if stdout cannot be written, ClosedPipe if it has no reader.
  void flush();
  // flush(), and with -o text the next row has a header of its own.
  void next_table();
  // Before an error: the answers that wait, as far as standard output takes them.
  void give_up();

  // A further hint for a server that cannot be reached.
  void hint_at_servers(std::string hint) { no_server_hint_ = std::move(hint); }

  // One stderr line: {"error":{"code":…,"message":…,"server":…}} in json mode unless stderr is a
  // terminal, `mcds: message` otherwise.
  void error(const Failure& failure);
  // Of `count` input lines from `line` on; reported by tell_errors() with others of the same server and
  // cause.
  void failed_lines(const Failure& failure, std::uint64_t line, std::uint64_t count = 1);
  // Of one of the keys of a run; reported likewise. Its exit status.
  ExitStatus failed(std::string_view key, const Failure& failure);
  // Of one of the `names` of the command line, likewise; of its only one: as error().
  void error_of(std::string_view name, std::span<const std::string> names, const Failure& failure);
  // New messages while more may follow, or all remaining ones.
  void tell_new_errors() {
    for (const FailedGroup& group : digest_.news()) tell(group);
  }
  void tell_errors();
  // Keeps every error in this file too, one JSON line each. Throws Failure(cannot_write).
  void keep_errors(const std::string& file);
  // One stderr line in the same two forms for a warning: {"warning":{"message":…}}, `mcds: message`.
  void warning(std::string_view message) const;
  // The last stderr line of an answer that lacks something: as it is in JSON, otherwise `mcds: message`.
  void incomplete(const JsonObject& what, std::string_view message) const;
  // One stderr line as it is (--verbose).
  void note(std::string_view line) const;

 private:
  void hide(std::string_view name, const std::string& why);
  void line_done();
  void write_pending();
  void tell(const FailedGroup& group) const;
  void keep(const Failure& failure, std::uint64_t line, std::string_view name);
  // Returns whether errors and warnings are JSON: in JSON mode, unless a person at a terminal reads them.
  bool tells_json() const;
  std::string message_of(std::string_view text, ErrorCode code) const;

  bool write_answers(std::string_view bytes) const;

  OutputMode mode_;
  std::shared_ptr<const RunLimits> limits_;
  bool buffered_ = false;
  bool quiet_ = false;
  bool hid_names_ = false;
  char line_end_ = '\n';
  std::string no_server_hint_;
  std::function<bool(const std::string&)> declared_;
  ErrorDigest digest_;
  OutputFile errors_file_;
  std::string pending_;
  TextTable table_;  // -o text
};

}  // namespace mcds
