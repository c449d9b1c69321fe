// What the answers of many verbs have in common: where they come from, and a yes or a no.
#pragma once

#include "common/base/json.hpp"
#include "common/primitives/context.hpp"
#include "common/replication/copies.hpp"
#include "tools/cli/exit_status.hpp"
#include "tools/cli/output.hpp"

namespace mcds {

class Session;

// A duration in whole seconds, or with the milliseconds: "ttl_s":60, "ttl_s":1.5.
void add_seconds(JsonObject& object, std::string_view name, Duration duration);
// "duration_s" and, if it can be told, "items_per_s".
void add_speed(JsonObject& line, Duration took, std::uint64_t items);

// The server of an answer, and what each copy said.
struct AnswerFrom {
  std::optional<std::size_t> server;  // nullopt: it is not told
  std::span<const CopyOutcome> copies = {};
  const char* yes = "";  // what CopyOutcome::yes is called
  bool or_one = false;   // "copies":1 where there are no outcomes though several copies are configured
};

// "copies":[{"server":…,"value":5},{"server":…,"error":{"code":…,"message":…}}]; nothing when there is one
// copy. "degraded":true: the answer rests on one copy of two.
void add_copies(JsonObject& line, Session& session, const AnswerFrom& from);
// The same of an answer that lists no copies, and perhaps has many lines.
JsonObject& add_degraded(JsonObject& line, Session& session);
// "lost_or_dropped":true: so was what the command changes, while it ran.
JsonObject& add_lost(JsonObject& line, const Session& session);
// Where the answer has no room for them (-o value), a failed copy is a warning, once for each server.
void warn_of_copies(Session& session, std::span<const CopyOutcome> copies);
void warn_if_degraded(Session& session);

// Of what looks at servers again and again: says once that one does not answer, and again only after it has.
class Outage {
 public:
  void tell(Session& session, std::span<const Failure> unreachable);

 private:
  bool told_ = false;
};

// Ends the line with "server" and the copies, and prints it.
void answer_from(Session& session, JsonObject& line, const AnswerFrom& from, std::string_view bare);
// 1 or 0, and exit 0 or 1.
ExitStatus answer_yes(Session& session, const JsonObject& line, bool yes);
ExitStatus answer_yes_from(Session& session, JsonObject& line, const AnswerFrom& from, bool yes);
// {…,"found":false,"server":…} and exit 1; nothing with -o value.
ExitStatus answer_missing(Session& session, JsonObject line, const AnswerFrom& from);

// One JSON object for many answers, printed as they come: {"a":1,"b":2}.
class ObjectAnswer {
 public:
  explicit ObjectAnswer(Output& output) : output_(output) {}
  // Adds a member; `json` is its value. Throws Failure for a name that is not text.
  void add(std::string_view name, const std::string& json);
  void end() { output_.raw(empty_ ? "{}\n" : "}\n"); }

 private:
  Output& output_;
  bool empty_ = true;
};
// Returns the bytes as a JSON string, or as {"b64":"…"} if they are not UTF-8.
std::string text_or_base64(std::string_view bytes);

// For what has one copy, whatever is configured. Throws InvalidInput if several were asked for: `option` is
// for what has one.
Context context_with_one_copy(Session& session, const char* option,
                              const std::string& what = "such a counter");
// The verb drop, with {…,"dropped":true}; exit 1 if there was nothing. If a deadline or a signal ends it, it
// is unfinished. Throws what `drop` throws.
ExitStatus answer_dropped(Session& session, JsonObject line, const std::function<bool()>& drop);

}  // namespace mcds
