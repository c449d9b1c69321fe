#include "tools/cli/names.hpp"

#include <algorithm>

#include "common/base/bytes.hpp"
#include "tools/cli/batch.hpp"
#include "tools/cli/session.hpp"

namespace mcds {

namespace {

Batch<std::string> batch_of(const NameTasks& tasks) {
  Batch<std::string> batch;
  batch.parse = [&tasks](std::string line) -> std::optional<std::string> {
    if (line.empty()) return std::nullopt;
    tasks.check(line);
    return line;
  };
  batch.run = [&tasks](Window<std::string>& window) {
    window.note(
        tasks.act(window.items, [&](std::size_t i, const Failure& failure) { window.fail(i, failure); }));
    return Answers();
  };
  batch.most_items = 2048;
  return batch;
}

}  // namespace

ExitStatus for_names(Session& session, const std::vector<std::string>& names, const NameTasks& tasks) {
  const Batch<std::string> batch = batch_of(tasks);
  if (names == std::vector<std::string>{"-"}) return batch.of_lines(session, {}).worst;
  if (std::find(names.begin(), names.end(), "-") != names.end())
    throw InvalidInput("- reads all names from standard input; give no other names");
  return batch.of_words(session, names, names);
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
