#include "tools/cli/names.hpp"

#include <algorithm>

#include "common/base/bytes.hpp"
#include "tools/cli/session.hpp"
#include "tools/cli/where_keys.hpp"

namespace mcds {

ExitStatus for_names(Session& session, const std::vector<std::string>& names, const CheckName& check,
                     const AnswerNames& answer) {
  Batch<std::string> batch;
  batch.parse = [&](std::string line) -> std::optional<std::string> {
    if (line.empty()) return std::nullopt;
    check(line);
    return line;
  };
  batch.run = answer;
  batch.most_items = 2048;
  if (names == std::vector<std::string>{"-"}) return batch.of_lines(session, {}).worst;
  if (std::ranges::find(names, "-") != names.end())
    throw InvalidInput("- reads all names from standard input; give no other names");
  return batch.of_words(session, names, names);
}

ExitStatus where_names(Session& session, const std::vector<std::string>& names, const KeysOfName& keys_of) {
  return for_names(session, names, keys_of, [&](const Window<std::string>& window) {
    for (const std::string& name : window.items) window.note(print_where(session, keys_of(name)));
  });
}

NamedNumber name_and_number(std::string line, std::uint64_t otherwise, const char* form) {
  const std::size_t end = line.find_first_of(" \t");
  if (end == std::string::npos) return {std::move(line), otherwise};
  const std::size_t begin = std::min(line.find_first_not_of(" \t", end), line.size());
  const auto number = parse_u64(std::string_view(line).substr(begin));
  if (!number)
    throw Failure(ErrorCode::bad_data,
                  std::string("the text after the name is not a whole number; write ") + form);
  line.resize(end);
  return {std::move(line), *number};
}

}  // namespace mcds
