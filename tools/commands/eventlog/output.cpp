
#include "tools/commands/eventlog/options.hpp"

namespace mcds {

namespace {

const char* name_of(LogGap::Reason reason) {
  return reason == LogGap::Reason::expired ? "expired" : "evicted";
}

JsonObject event_object(const EventLine& event, const std::string& log) {
  JsonObject object;
  if (!log.empty()) object.bytes("eventlog", log);
  object.bytes("id", event.id.text()).time("at", event.id.time());
  object.signed_number("at_s", whole_seconds(event.id.time()));
  if (event.foreign) {
    object.bytes("data_b64", base64(event.data));
  } else if (event.base64) {
    object.bytes("data_b64", event.data);
  } else {
    object.raw("data", event.data);
  }
  return object;
}

std::string in_options(const RingShape& shape) {
  return "--chunk " + format_duration(std::chrono::seconds(shape.chunk_s)) + " --chunks " +
         std::to_string(shape.chunks);
}

}  // namespace

Context log_context(Session& session) {
  return context_with_one_copy(session, "--copies", "an event log");
}

std::optional<RingShape> shape_of(const CursorState& state) {
  const std::size_t colon = state.ring.rfind(':');
  return colon == std::string::npos ? std::nullopt
                                    : RingShape::parse(std::string_view(state.ring).substr(colon + 1));
}

JsonObject gap_object(const LogGap& gap, const std::string& log) {
  JsonObject object;
  if (!log.empty()) object.bytes("eventlog", log);
  object.boolean("gap", true).time("from", gap.from).time("to", gap.to).bytes("reason", name_of(gap.reason));
  return object;
}

bool open_cursor(Session& session, const EventlogOptions& options, std::optional<CursorFile>& file) {
  try {
    file.emplace(*options.cursor);
    return true;
  } catch (const Failure& failure) {
    if (failure.code() != ErrorCode::try_again) throw;
    if (options.busy_status != 0) session.output().error(failure);
    return false;
  }
}

void warn_of_no_trace(Session& session, const std::string& name) {
  session.output().warning("there is no trace of an event log named " + name +
                           "; it was never written, or all of it has expired");
}

bool EventPrinter::event(const EventLine& event) {
  release();
  const bool bare = session_.output().mode() == OutputMode::value;
  const std::string name = log_.empty() ? log_ : log_ + '\t';
  print(event_object(event, log_), bare ? name + event.bytes() : std::string());
  return true;
}

void EventPrinter::gap(const LogGap& gap) {
  if (!released_) {
    held_.push_back(gap);
    return;
  }
  if (session_.output().mode() != OutputMode::value) return print(gap_object(gap, log_), std::nullopt);
  session_.output().warning((log_.empty() ? "" : log_ + ": ") + "events from " + format_time(gap.from) +
                            " to " + format_time(gap.to) + " are lost (" + name_of(gap.reason) + ")");
}

void DamageReport::tell(Session& session, const CorruptData& damage) {
  constexpr std::size_t most = 20;
  if (told_.size() > most || !told_.emplace(damage.what()).second) return;
  if (told_.size() <= most) return session.output().error(damage);
  session.output().warning("only the first " + std::to_string(most) + " damaged places are shown");
}

void EventPrinter::release() {
  released_ = true;
  const auto held = std::exchange(held_, {});
  for (const LogGap& one : held) gap(one);
}

void EventPrinter::print(const JsonObject& object, std::optional<std::string_view> bare) {
  if (lines_ == nullptr) return session_.output().answer(object, bare.value_or(""));
  *lines_ += session_.output().mode() == OutputMode::value ? std::string(bare.value_or("")) : object.text();
  *lines_ += '\n';
}

void ShapeFinder::warn_of_others(const LogSummary& summary) const {
  if (summary.declined || reads_all_) return;
  for (const RingShape& shape : summary.shapes) {
    if (shape == log_->shape()) continue;
    session_.output().warning("these are the events of " + options_.name + " put with " +
                              in_options(log_->shape()) + "; others are put with " + in_options(shape) +
                              "; fetch and tail without --cursor read all");
    return;
  }
}

}  // namespace mcds
