// A client that writes and reads one event log, as most tests need it.
#pragma once

#include "common/structures/eventlog/cursor.hpp"
#include "common/structures/eventlog/eventlog.hpp"
#include "common/structures/eventlog/format.hpp"

namespace mcds {

class EventLog : public LogWriter, public LogReader {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): so that tests return one as {context, name, shape}.
  EventLog(const Context& context, std::string_view name, const RingShape& shape)
      : LogWriter(context, name, shape), LogReader(context, name, shape), context_(context), name_(name) {}

  bool drop() { return drop_log(context_, name_); }
  LogKeys keys() const { return LogRing(context_, name_, shape()).keys; }

 private:
  Context context_;
  std::string name_;
};

}  // namespace mcds
