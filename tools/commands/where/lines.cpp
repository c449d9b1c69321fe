// Keys from standard input, for the questions of `mcds where` that are asked of many.
#include "common/primitives/key_names.hpp"
#include "tools/cli/line_batch.hpp"
#include "tools/cli/session.hpp"
#include "tools/commands/where/options.hpp"

namespace mcds {

namespace {

class KeyLines final : public LineBatch {
 public:
  KeyLines(Session& session, const TakeKey& take, const SendKeys& send)
      : LineBatch(session, false, Answers::each_line), take_(take), send_(send) {}

 private:
  void take(std::string line) override {
    note(take_(checked([&] { return whole_key(session_.key_prefix(), line); })));
  }
  void send() override { note(send_()); }

  const TakeKey& take_;
  const SendKeys& send_;
};

}  // namespace

ExitStatus for_each_key(Session& session, const std::vector<std::string>& keys, const TakeKey& take,
                        const SendKeys& send) {
  if (keys == std::vector<std::string>{"-"}) return KeyLines(session, take, send).run();
  std::vector<std::string> whole;
  for (const std::string& key : keys) whole.push_back(whole_key(session.key_prefix(), key));
  ExitStatus status = ExitStatus::ok;
  for (const std::string& key : whole) status = worse(status, take(key));
  return worse(status, send());
}

}  // namespace mcds
