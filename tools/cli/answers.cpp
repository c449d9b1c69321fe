#include "tools/cli/answers.hpp"

#include "common/base/bytes.hpp"
#include "common/base/text.hpp"
#include "common/base/units.hpp"
#include "common/replication/quorum.hpp"
#include "tools/cli/progress.hpp"
#include "tools/cli/session.hpp"

namespace mcds {

namespace {

// Returns the outcomes to print: none for a single copy.
std::span<const CopyOutcome> reported(std::span<const CopyOutcome> copies) {
  return value_if_replicated(copies.size(), copies);
}

}  // namespace

void add_seconds(JsonObject& object, std::string_view name, Duration duration) {
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(duration);
  if (whole == duration)
    object.number(name, static_cast<std::uint64_t>(whole.count()));
  else
    object.real(name, static_cast<double>(duration / std::chrono::milliseconds(1)) / 1000);
}

void add_speed(JsonObject& line, Duration took, std::uint64_t items) {
  const double seconds = std::chrono::duration<double>(took).count();
  line.raw("duration_s", format_fixed(seconds, 3));
  if (seconds > 0)
    line.number("items_per_s", static_cast<std::uint64_t>(static_cast<double>(items) / seconds));
}

void add_copies(JsonObject& line, Session& session, const AnswerFrom& from) {
  const auto copies = reported(from.copies);
  if (copies.empty() && from.or_one && value_if_replicated(session.copies(), true)) line.number("copies", 1);
  if (copies.empty()) return;
  for (const CopyOutcome& copy : copies) {
    const std::string& server = session.server_field(copy.server);
    &copy == copies.data() ? line.fields({"\"copies\":[{", server}) : line.more({"},{", server});
    if (copy.yes) line.boolean(from.yes, *copy.yes);
    if (copy.number) line.number("value", *copy.number);
    if (copy.failure) {
      JsonObject error("code", name_of(copy.failure->code()));
      line.object("error", error.bytes("message", copy.failure->what()));
    }
  }
  line.more({"}]"});
  if (is_degraded(copies)) line.boolean("degraded", true);
}

void warn_of_copies(Session& session, std::span<const CopyOutcome> copies) {
  if (session.output().mode() != OutputMode::value) return;
  for (const CopyOutcome& copy : reported(copies)) {
    if (copy.failure && session.first_failure_of(copy.server))
      session.output().warning(session.server_address(copy.server) +
                               ": no answer from this copy: " + copy.failure->what());
  }
}

JsonObject& add_degraded(JsonObject& line, Session& session) {
  if (session.is_degraded()) line.boolean("degraded", true);
  return line;
}

JsonObject& add_lost(JsonObject& line, const Session& session) {
  if (session.has_lost()) line.boolean("lost_or_dropped", true);
  return line;
}

void warn_if_degraded(Session& session) {
  if (session.output().mode() == OutputMode::value && session.is_degraded())
    session.output().warning("one of the two copies did not answer; only the other was read");
}

void OutageReporter::report(Session& session, std::span<const Failure> unreachable) {
  if (!unreachable.empty() && !reported_)
    session.output().warning("no answer from " + unreachable.front().server() + ": " +
                             unreachable.front().what() + "; still trying");
  reported_ = !unreachable.empty();
}

void answer_from(Session& session, JsonObject& line, const AnswerFrom& from, std::string_view bare) {
  if (from.server) line.fields({session.server_field(*from.server)});
  add_copies(line, session, from);
  warn_of_copies(session, from.copies);
  session.output().answer(line, bare);
}

ExitStatus answer_yes(Session& session, JsonObject& line, bool yes, const AnswerFrom& from) {
  answer_from(session, line, from, yes ? "1" : "0");
  return yes ? ExitStatus::ok : ExitStatus::no;
}

ExitStatus answer_missing(Session& session, JsonObject line, const AnswerFrom& from) {
  line.boolean("found", false);
  if (session.output().mode() == OutputMode::value)
    return warn_of_copies(session, from.copies), ExitStatus::no;
  if (from.server) line.fields({session.server_field(*from.server)});
  add_copies(line, session, from);
  if (from.copies.empty()) add_degraded(line, session);
  session.output().answer(line, {});
  return ExitStatus::no;
}

Context context_with_one_copy(Session& session, const char* option, const std::string& what) {
  if (session.options().copies)
    require_single_copy(session.copies(), std::string(option) + ": " + what +
                                              " has a single copy; use --copies 1 or omit --copies");
  return session.context_with_copies().in_copies(1);
}

ExitStatus answer_dropped(Session& session, JsonObject line, const std::function<bool()>& drop) {
  session.end_by_signals();
  try {
    const bool dropped = (Waiting(session, "dropping"), drop());
    return answer_yes(session, line.boolean("dropped", dropped), dropped);
  } catch (const Failure&) {
    if (!session.is_too_late()) throw;
    session.note_unfinished();
    session.add_unfinished(line.boolean("dropped", false));
    session.output().answer(line, "");
    throw;
  }
}

void ObjectAnswer::add(std::string_view name, const std::string& json) {
  if (!is_utf8(name))
    throw Failure(ErrorCode::bad_data,
                  "the name " + in_quotes(name) + " is not UTF-8 and cannot be shown; omit --as-object");
  std::string text(1, std::exchange(empty_, false) ? '{' : ',');
  append_json_quoted(text, name);
  output_.raw(text + ':' + json);
}

std::string text_or_base64(std::string_view bytes) {
  if (!is_utf8(bytes)) return JsonObject("b64", base64(bytes)).text();
  std::string text;
  append_json_quoted(text, bytes);
  return text;
}

}  // namespace mcds
