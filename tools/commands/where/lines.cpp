// Keys from standard input, for the questions of `mcds where` that are asked of many.
#include "tools/commands/where/options.hpp"

namespace mcds {

ExitStatus for_each_key(Session& session, const Placements& placements, const WhereOptions& options,
                        const TakeKey& take, const SendKeys& send) {
  const KeyRules rules{session.key_prefix(), placements, options.probe || options.prune || options.guess};
  Batch<std::string> batch;
  batch.parse = [&](std::string&& line) { return rules.of_line(std::move(line), session.options().null); };
  batch.run = [&](Window<std::string>& window) {
    for (const auto& placement : placements) placement->expect(window.items);
    for (std::string& key : window.items) window.note(take(std::move(key)));
    window.note(send());
  };
  const auto& keys = options.keys;
  if (keys == std::vector<std::string>{"-"}) return batch.of_lines(session, {}).worst;
  std::vector<std::string> whole;
  for (const std::string& key : keys) whole.push_back(rules.checked(key));
  return batch.of_words(session, std::move(whole), keys);
}

}  // namespace mcds
