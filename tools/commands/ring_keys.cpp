#include "tools/commands/ring_keys.hpp"

#include "common/base/bytes.hpp"
#include "common/cluster/live_keys.hpp"
#include "common/primitives/key_names.hpp"
#include "tools/cli/input.hpp"
#include "tools/cli/progress.hpp"
#include "tools/cli/session.hpp"

namespace mcds {

namespace {

void take_line(Session& session, std::string_view line, const TakeRingKey& take) {
  RingKey key;
  if (const std::size_t tab = line.find('\t'); tab != std::string_view::npos) {
    key.bytes = parse_u64(line.substr(tab + 1));
    if (!key.bytes) throw InvalidInput("after the tab stands no size in bytes; write KEY or KEY<TAB>BYTES");
    line = line.substr(0, tab);
  }
  const std::string whole = whole_key(session.key_prefix(), std::string(line));
  key.key = whole;
  take(key);
}

}  // namespace

ExitStatus read_keys_of(Session& session, const std::string& file, const TakeRingKey& take) {
  LineReader lines = file == "-" ? LineReader() : LineReader(file);
  ExitStatus status = ExitStatus::ok;
  Progress progress(session.clock(), "keys");
  while (const auto line = lines.next()) {
    try {
      take_line(session, *line, take);
    } catch (const InvalidInput& failure) {
      progress.hide();
      session.output().error(Failure(ErrorCode::bad_data, failure.what()), lines.number());
      status = worse(status, ExitStatus::bad_data);
    }
    progress.advance();
  }
  return status;
}

ExitStatus read_live_keys_of(Session& session, const TakeRingKey& take) {
  const Pool& pool = session.placement()->pool();
  const ConnectOptions timeouts = session.connect_options();
  Progress progress(session.clock(), "keys");
  const auto results = read_live_keys(pool, {timeouts.timeout, timeouts.connect_timeout}, session.clock(),
                                      [&](const LiveKey& key) {
                                        take({key.key, key.size_bytes, key.server});
                                        progress.advance();
                                        return true;
                                      });
  progress.hide();
  ExitStatus status = ExitStatus::ok;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].complete) continue;
    const std::string why = results[i].failure == nullptr ? "it stopped" : results[i].failure->message;
    session.output().error(
        Failure(ErrorCode::unavailable, "its keys cannot be listed: " + why, pool[i].address()));
    status = ExitStatus::unavailable;
  }
  return status;
}

}  // namespace mcds
