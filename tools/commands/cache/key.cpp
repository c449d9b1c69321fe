#include <unistd.h>

#include <array>
#include <cctype>
#include <climits>
#include <cstdlib>
#include <set>

#include "tools/commands/cache/options.hpp"

namespace mcds {

namespace {

constexpr std::size_t longest_command_part = 40;

// Of every part its name, its size and its bytes, so that no two lists of parts read the same.
void add_part(std::string& text, std::string_view name, std::string_view bytes) {
  text.append(name).append("=").append(std::to_string(bytes.size())).append(":").append(bytes).append("\n");
}

std::string working_directory() {
  std::array<char, PATH_MAX> path{};
  if (getcwd(path.data(), path.size()) == nullptr)
    throw refused_by_system(ErrorCode::cannot_read, "cannot determine the working directory");
  return path.data();
}

void add_environment(std::string& text, const std::string& part, const char* name) {
  const char* value = std::getenv(name);
  add_part(text, part + (value == nullptr ? " unset" : ""), value == nullptr ? "" : value);
}

std::string material(const CacheOptions& options, std::string_view list, std::optional<std::string>& input) {
  std::string text;
  const std::vector<std::string_view> words = split(list, ',');
  // Each once, in one order, whatever theirs is.
  for (const std::string& part : std::set<std::string>(words.begin(), words.end())) {
    if (part == "args") {
      if (options.command.empty()) throw InvalidInput("--key-from args: give the command after --");
      for (const std::string& word : options.command) add_part(text, "arg", word);
    } else if (part == "cwd") {
      add_part(text, part, working_directory());
    } else if (part == "stdin") {
      input = value_of("-");
      add_part(text, part, *input);
    } else if (part.starts_with("env:") && part.size() > 4) {
      add_environment(text, part, part.c_str() + 4);
    } else if (part.starts_with("file:") && part.size() > 5) {
      add_part(text, part, file_bytes(part.substr(5)));
    } else {
      throw InvalidInput("--key-from: \"" + part + "\" is not args, cwd, stdin, env:NAME or file:PATH");
    }
  }
  return text;
}

// The program's name as far as it is plain, to be recognised in a list of keys.
std::string command_part(const std::vector<std::string>& command) {
  std::string word = command.front().substr(command.front().rfind('/') + 1);
  std::erase_if(
      word, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '_'; });
  return word.substr(0, longest_command_part);
}

}  // namespace

std::vector<std::string> distinct_tags(const CacheOptions& options) {
  std::vector<std::string> tags;
  for (const std::string& tag : options.tags) {
    if (std::ranges::find(tags, tag) == tags.end()) tags.push_back(tag);
  }
  return tags;
}

CacheKey cache_key(const CacheOptions& options) {
  const auto& given = options.key;
  if (given && !options.key_from) return {*given, {}};
  if (!given && options.command.empty())
    throw InvalidInput("give a KEY, or after -- the command whose entry it is");
  CacheKey key;
  const std::string digest = digest128(material(options, options.key_from.value_or("args"), key.input));
  key.name = given.value_or(options.command.empty() ? "" : command_part(options.command)) + '-' + digest;
  return key;
}

}  // namespace mcds
