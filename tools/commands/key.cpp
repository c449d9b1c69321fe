// Implements mcds key: makes a cache key from query parameters, the same for every spelling of a JSON value.
#include "common/base/json_reader.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

namespace {

struct KeyOptions {
  std::string json;
  std::string prefix;
};

void check_key(const std::string& key) {
  const auto unsafe = [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7f; };
  if (std::ranges::any_of(key, unsafe)) {
    throw InvalidInput(
        "the key would contain a space or control character, which memcached does not allow; give another "
        "--prefix");
  }
  if (key.size() > max_key_size) {
    throw InvalidInput("the key would have " + std::to_string(key.size()) +
                       " bytes, but memcached allows at most " + std::to_string(max_key_size) +
                       "; give another --prefix");
  }
}

ExitStatus print_key(Session& session, const KeyOptions& options) {
  const std::string canonical = canonical_json(value_of(options.json));
  const std::string key = options.prefix + md5_hex(canonical);
  check_key(key);
  session.output().answer(JsonObject("key", key).bytes("canonical", canonical), key);
  return ExitStatus::ok;
}

}  // namespace

void declare_key(Command& command) {
  command.exits("65 the input has no canonical form|66 the file cannot be read");
  auto options = std::make_shared<KeyOptions>();
  command.itself()
      .answer("key canonical")
      .field("key string the cache key")
      .example(R"(mcds key '{"id":158,"lang":"de"}')")
      .example(R"(mcds key --prefix page: '{"q":"shoes","page":2}')")
      .example("jq -c .query request.json | mcds key -o value -")
      .argument("JSON", "the parameters as one JSON value; - reads standard input, @FILE a file",
                dash(&options->json))
      .option("--prefix", "TEXT", "put before the digest, which is the MD5 of the canonical form",
              &options->prefix)
      .action(print_key, options);
}

}  // namespace mcds
