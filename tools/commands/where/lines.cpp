// Keys from standard input, for the questions of `mcds where` that are asked of many.
#include <algorithm>

#include "common/primitives/key_names.hpp"
#include "tools/cli/line_batch.hpp"
#include "tools/cli/session.hpp"
#include "tools/commands/where/options.hpp"

namespace mcds {

namespace {

bool fits(std::string_view key, bool any_byte) {
  const auto unsafe = [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7f; };
  return !key.empty() && key.size() <= max_key_size &&
         (any_byte || std::none_of(key.begin(), key.end(), unsafe));
}

bool is_taken(const Placement& placement, const std::string& key, bool sent) {
  const Owners owners = placement.owners_of(key);
  return std::all_of(owners.list.begin(), owners.list.end(), [&](const Owner& owner) {
    return fits(owner.wire_key.empty() ? key : owner.wire_key, !sent && placement.takes_any_byte());
  });
}

struct KeyRules {
  const std::string& prefix;
  const Placements& placements;
  bool sent;

  std::string checked(const std::string& text) const {
    std::string whole = prefix + text;
    if (fits(whole, false)) return whole;
    for (const auto& placement : placements) {
      if (text.empty() || !is_taken(*placement, whole, sent)) return whole_key(prefix, text);
    }
    return whole;
  }
};

class KeyLines final : public LineBatch {
 public:
  KeyLines(Session& session, const KeyRules& rules, const TakeKey& take, const SendKeys& send)
      : LineBatch(session, false, Answers::each_line), rules_(rules), take_(take), send_(send) {}

 private:
  void take(std::string line) override {
    note(take_(checked([&] { return rules_.checked(line); })));
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
