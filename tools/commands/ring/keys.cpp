#include "tools/commands/ring/keys.hpp"

#include "common/base/bytes.hpp"
#include "common/base/json.hpp"
#include "common/primitives/key_names.hpp"
#include "tools/cli/key_rules.hpp"
#include "tools/cli/line_batch.hpp"
#include "tools/cli/live_dump.hpp"
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
    if (key_in_json(line)) {
      const auto size = json_field(line, "size_bytes");
      if (size) key.bytes = parse_u64(*size);
    } else if (const std::size_t tab = line.find('\t'); tab != std::string::npos) {
      key.bytes = parse_u64(std::string_view(line).substr(tab + 1));
      if (!key.bytes)
        throw Failure(ErrorCode::bad_data,
                      "the text after the tab is not a size in bytes; write KEY or KEY<TAB>BYTES");
      line.resize(tab);
    }
    const std::string whole = checked([&] {
      return KeyRules{session_.key_prefix(), {}, false}.of_line(line, session_.options().null);
    });
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
  Progress progress(session.clock(), "keys");
  const auto results = LiveDump(session).results([&](const LiveKey& key) {
    take({key.key, key.size_bytes, key.server});
    progress.advance();
    return true;
  });
  progress.hide();
  return report_unlisted(session, session.placement()->pool(), results);
}

}  // namespace mcds
