// mcds key: a cache key from query parameters, the same for every spelling of the same JSON value.
#include "common/base/canonical_json.hpp"
#include "common/cluster/request.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

namespace {

struct KeyOptions {
  std::string json;
  std::string digest = "md5";
  std::string prefix;
};

std::string digest_of(const KeyOptions& options, const std::string& canonical) {
  if (options.digest == "md5") return md5_hex(canonical);
  if (options.digest == "sha256") return sha256_hex(canonical);
  return canonical;
}

void check_key(const KeyOptions& options, const std::string& key) {
  const std::string instead = options.digest == "none" ? "use --digest md5" : "give another --prefix";
  const auto unsafe = [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7f; };
  if (std::ranges::any_of(key, unsafe)) {
    throw InvalidInput(
        "the key would contain a space or control character, which memcached does not allow; " + instead);
  }
  if (key.size() > max_key_size) {
    throw InvalidInput("the key would have " + std::to_string(key.size()) +
                       " bytes, but memcached allows at most " + std::to_string(max_key_size) + "; " +
                       instead);
  }
}

ExitStatus print_key(Session& session, const KeyOptions& options) {
  const std::string canonical = canonical_json(value_of(options.json));
  const std::string key = options.prefix + digest_of(options, canonical);
  check_key(options, key);
  session.output().answer(JsonObject("key", key).bytes("canonical", canonical), key);
  return ExitStatus::ok;
}

}  // namespace

void declare_key(Command& command) {
  auto options = std::make_shared<KeyOptions>();
  command.itself()
      .answer("key canonical")
      .field("key string the cache key")
      .example(R"(mcds key '{"id":158,"lang":"de"}')")
      .example(R"(mcds key --prefix page: --digest sha256 '{"q":"shoes","page":2}')")
      .example("jq -c .query request.json | mcds key -o value -")
      .argument("JSON", "the parameters as one JSON value; - reads standard input, @FILE a file",
                dash(&options->json))
      .choice("--digest", "md5|sha256|none",
              "digest of the canonical form, or none for the form itself; default md5", &options->digest)
      .option("--prefix", "TEXT", "put before the digest", &options->prefix)
      .action(print_key, options);
}

}  // namespace mcds
