#include "tools/commands/ring/keys.hpp"

#include "common/base/bytes.hpp"
#include "common/cluster/keys/live.hpp"
#include "common/primitives/key_names.hpp"
#include "tools/cli/line_batch.hpp"
#include "tools/cli/progress.hpp"
#include "tools/cli/session.hpp"

namespace mcds {

namespace {

class RingKeyLines final : public LineBatch {
 public:
  RingKeyLines(Session& session, const std::string& file, const TakeRingKey& take)
      : LineBatch(session, false, Answers::once, file), take_(take) {}

 private:
  void take(std::string line) override {
    RingKey key;
    if (const std::size_t tab = line.find('\t'); tab != std::string::npos) {
      key.bytes = parse_u64(std::string_view(line).substr(tab + 1));
      if (!key.bytes)
        throw Failure(ErrorCode::bad_data,
                      "the text after the tab is not a size in bytes; write KEY or KEY<TAB>BYTES");
      line.resize(tab);
    }
    const std::string whole = checked([&] { return whole_key(session_.key_prefix(), line); });
    key.key = whole;
    take_(key);
  }
  void send() override {}

  const TakeRingKey& take_;
};

}  // namespace

ExitStatus read_keys_of(Session& session, const std::string& file, const TakeRingKey& take) {
  return RingKeyLines(session, file, take).run();
}

ExitStatus read_live_keys_of(Session& session, const TakeRingKey& take) {
  const Pool& pool = session.placement()->pool();
  const ConnectOptions timeouts = session.connect_options();
  Progress progress(session.clock(), "keys");
  const auto results =
      read_live_keys(pool, {timeouts.timeout, timeouts.connect_timeout, timeouts.tls, timeouts.login},
                     session.clock(), [&](const LiveKey& key) {
                       take({key.key, key.size_bytes, key.server});
                       progress.advance();
                       return true;
                     });
  progress.hide();
  ExitStatus status = ExitStatus::ok;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].complete) continue;
    const auto& failure = results[i].failure;
    const ErrorCode code = failure == nullptr ? ErrorCode::unavailable : error_code_of_silence(*failure);
    session.output().error(
        Failure(code, "its keys cannot be listed: " + (failure == nullptr ? "it stopped" : failure->message),
                pool[i].address()));
    status = worse(status, status_of(code));
  }
  return status;
}

}  // namespace mcds
