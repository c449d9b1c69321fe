// Parts that the answers of many verbs share: the server and the copies, yes or no, durations.
#pragma once

#include "common/base/json.hpp"
#include "common/primitives/context.hpp"
#include "common/replication/copies.hpp"
#include "tools/cli/exit_status.hpp"
#include "tools/cli/output.hpp"

namespace mcds {

class Session;

// Adds a duration, with milliseconds if it is not whole seconds: "ttl_s":60, "ttl_s":1.5.
void add_seconds(JsonObject& object, std::string_view name, Duration duration);
// Adds "duration_s" and, if the duration allows a rate, "items_per_s".
void add_speed(JsonObject& line, Duration took, std::uint64_t items);

// The server that gave an answer, and the outcome of each copy.
struct AnswerFrom {
  std::optional<std::size_t> server;  // nullopt: not printed
  std::span<const CopyOutcome> copies = {};
  const char* yes = "";  // the field that holds CopyOutcome::yes
  bool or_one = false;   // print "copies":1 if there are no outcomes although several copies are configured
};

// Adds "copies":[{"server":…,"value":5},{"server":…,"error":{"code":…,"message":…}}], or nothing if there is
// one copy. Adds "degraded":true if the answer rests on one copy of two.
void add_copies(JsonObject& line, Session& session, const AnswerFrom& from);
// Adds "degraded":true to an answer that does not list its copies. Such an answer may have many lines.
JsonObject& add_degraded(JsonObject& line, Session& session);
// Adds "lost_or_dropped":true if the data that the command changes was lost or dropped while it ran.
JsonObject& add_lost(JsonObject& line, const Session& session);
// Warns of each failed copy, once per server, if the output has no room for copies (-o value).
void warn_of_copies(Session& session, std::span<const CopyOutcome> copies);
void warn_if_degraded(Session& session);

// Warns once when a polled server stops answering, and again only after all servers have answered.
class OutageReporter {
 public:
  void report(Session& session, std::span<const Failure> unreachable);

 private:
  bool reported_ = false;
};

// Completes the line with "server" and the copies, and prints it.
void answer_from(Session& session, JsonObject& line, const AnswerFrom& from, std::string_view bare);
// Does the same, with the bare answer 1 or 0. Returns exit status 0 or 1.
ExitStatus answer_yes(Session& session, JsonObject& line, bool yes, const AnswerFrom& from = {});
// Prints {…,"found":false,"server":…}, or nothing with -o value. Returns exit status 1.
ExitStatus answer_missing(Session& session, JsonObject line, const AnswerFrom& from);

// Prints one JSON object for many answers, member by member as they arrive: {"a":1,"b":2}.
class ObjectAnswer {
 public:
  explicit ObjectAnswer(Output& output) : output_(output) {}
  // Adds a member with the JSON value `json`. Throws Failure if the name is not text.
  void add(std::string_view name, const std::string& json);
  void end() { output_.raw(empty_ ? "{}\n" : "}\n"); }

 private:
  Output& output_;
  bool empty_ = true;
};
// Returns the bytes as a JSON string, or as {"b64":"…"} if they are not UTF-8.
std::string text_or_base64(std::string_view bytes);

// Returns a context with one copy, whatever is configured. Throws InvalidInput if --copies asked for several:
// `option` applies only to `what`, which has one copy.
Context context_with_one_copy(Session& session, const char* option,
                              const std::string& what = "a counter of this kind");
// Runs the verb drop. Prints {…,"dropped":true} and returns 1 if nothing existed. A deadline or a signal
// leaves the answer marked as unfinished. Throws what `drop` throws.
ExitStatus answer_dropped(Session& session, JsonObject line, const std::function<bool()>& drop);

}  // namespace mcds
