// Keys from standard input, for the questions of `mcds where` that are asked of many.
#include "tools/cli/key_rules.hpp"
#include "tools/cli/line_batch.hpp"
#include "tools/cli/session.hpp"
#include "tools/commands/where/options.hpp"

namespace mcds {

namespace {

class KeyLines final : public LineBatch {
 public:
  KeyLines(Session& session, const KeyRules& rules, const TakeKey& take, const SendKeys& send)
      : LineBatch(session, false, Answers::each_line), rules_(rules), take_(take), send_(send) {}

 private:
  void take(std::string line) override {
    note(take_(checked([&] { return rules_.of_line(line, session_.options().null); })));
  }
  void send() override { note(send_()); }

  const KeyRules& rules_;
  const TakeKey& take_;
  const SendKeys& send_;
};

}  // namespace

ExitStatus for_each_key(Session& session, const Placements& placements, const WhereOptions& options,
                        const TakeKey& take, const SendKeys& send) {
  const KeyRules rules{session.key_prefix(), placements, options.probe || options.prune || options.guess};
  const auto& keys = options.keys;
  if (keys == std::vector<std::string>{"-"}) return KeyLines(session, rules, take, send).run();
  std::vector<std::string> whole;
  for (const std::string& key : keys) whole.push_back(rules.checked(key));
  ExitStatus status = ExitStatus::ok;
  for (const std::string& key : whole) status = worse(status, take(key));
  return worse(status, send());
}

}  // namespace mcds
