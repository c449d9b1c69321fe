// Reads PHP's session settings: php.ini, and the pools of php-fpm.
#include <algorithm>
#include <optional>
#include <set>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/text.hpp"
#include "common/placement/pools/files.hpp"

namespace mcds {

namespace {

// Names of constants are in upper case, so that a host such as php_memcached is none.
bool is_of_constant(char c) {
  return (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
}

// Returns a value as PHP joins it of quoted and plain pieces, up to a comment; nullopt for a syntax error and
// for constants of PHP's.
std::optional<std::string> ini_text(std::string_view rest) {
  std::string text;
  rest = trimmed(rest, " \t\r\n");
  const std::string_view written = trimmed(rest.substr(0, rest.find(';')), " \t");
  const std::string bare = lower_case(std::string(written));
  if (bare == "on" || bare == "yes" || bare == "true") return "1";
  if (bare == "off" || bare == "no" || bare == "false" || bare == "none" || bare == "null") return "";
  if ((written.starts_with("E_") || written.starts_with("PHP_")) &&
      std::ranges::all_of(written, is_of_constant))
    return std::nullopt;
  while (!rest.empty() && rest.front() != ';') {
    const char quote = rest.front();
    if (quote != '"' && quote != '\'') {
      const auto piece = rest.substr(0, rest.find_first_of("\"';"));
      if (piece.find_first_of("=&|^~()!") != std::string_view::npos) return std::nullopt;
      rest.remove_prefix(piece.size());
      // Blanks before a double quote, a comment and the end are dropped, and those after a double quote.
      text += rest.starts_with('\'') ? piece : piece.substr(0, piece.find_last_not_of(" \t") + 1);
      continue;
    }
    const auto end = rest.find(quote, 1);
    if (end == std::string_view::npos) return std::nullopt;
    text += rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    if (quote == '"') rest = trimmed(rest, " \t");
  }
  return text;
}

constexpr std::string_view own_path = "memcache.session_save_path";  // PECL memcache's, used instead

// The settings of a file. In php-fpm's files these are `php_admin_value[NAME]`, `php_value[NAME]` and the
// same with `flag`, in the section of a pool; admin settings cannot be overridden. In php.ini, a section
// [PATH=…] or [HOST=…], and all sections after it, apply to some requests only and are ignored.
class PhpSettings {
 public:
  // `pool` is a pool of php-fpm; it may be empty if only one sets the session path.
  PhpSettings(std::string_view ini, std::string_view pool) : pool_(pool) {
    std::set<std::string_view> sections, with_sessions;
    std::string_view section;
    bool for_some = false;
    while (!ini.empty()) {
      const std::string_view whole = take_line(ini);
      const std::string_view line = without_quotes(whole);
      if (line.starts_with(';')) continue;
      if (line.starts_with('[')) {
        section = line.substr(1, line.find(']') - 1);
        const std::string kind = lower_case(std::string(section.substr(0, 4)));
        for_some = for_some || (section.size() > 4 && (kind == "path" || kind == "host"));
        section = without_quotes(section);
        sections.insert(section);
        continue;
      }
      const auto equals = whole.find('=');
      if (equals == std::string_view::npos) continue;
      Setting setting = setting_of(section, without_quotes(whole.substr(0, equals)));
      setting.text = whole.substr(equals + 1);
      const bool path = setting.name == "session.save_path" || setting.name == own_path;
      if (setting.rank > 0 && path) with_sessions.insert(section);
      if (setting.rank > 0 || !for_some) settings_.push_back(setting);
    }
    if (!pool_.empty() && !sections.contains(pool_)) throw no_such_pool(sections);
    if (pool_.empty() && with_sessions.size() > 1) throw no_such_pool(with_sessions);
    if (pool_.empty() && !with_sessions.empty()) pool_ = *with_sessions.begin();
  }

  // Returns the value of the last line in php.ini with this name, or of the first one in a pool.
  std::optional<std::string> given(std::string_view name) const {
    const Setting* best = nullptr;
    for (const Setting& setting : settings_) {
      if (setting.name != name || (setting.rank > 0 && setting.section != pool_)) continue;
      if (best == nullptr || setting.rank > best->rank || best->rank == 0) best = &setting;
    }
    if (best == nullptr) return std::nullopt;
    const auto text = ini_text(best->text);
    if (text) return text;
    throw bad_configuration("the value of " + std::string(name) +
                            " is a syntax error or a constant to PHP; write it in one pair of double quotes");
  }
  std::string value(std::string_view name) const { return given(name).value_or(""); }

  bool yes(std::string_view name, bool otherwise) const {
    const auto found = given(name);
    if (!found) return otherwise;
    const std::string text = lower_case(*found);
    // As PHP reads a boolean: three words in any case, and otherwise the number that the text begins with.
    return text == "on" || text == "yes" || text == "true" || std::atoi(text.c_str()) != 0;
  }

 private:
  struct Setting {
    std::string_view section, name, text;
    int rank = 0;  // 0: php.ini's, 1: a pool's, 2: a pool's admin setting
  };

  static Setting setting_of(std::string_view section, std::string_view name) {
    const auto bracket = name.find('[');
    const std::string_view kind = name.substr(0, bracket);
    const bool admin = kind == "php_admin_value" || kind == "php_admin_flag";
    if (bracket == std::string_view::npos || !(admin || kind == "php_value" || kind == "php_flag"))
      return {section, name, {}, 0};
    return {
        section, without_quotes(name.substr(bracket + 1, name.rfind(']') - bracket - 1)), {}, admin ? 2 : 1};
  }

  static Failure no_such_pool(const std::set<std::string_view>& sections) {
    return bad_configuration("no such pool; the file has " + joined(sections, ", ") + " (write FILE#POOL)");
  }

  std::string_view pool_;
  std::vector<Setting> settings_;
};

// The session handler of php-memcached adds its prefix to the session id after placing it.
std::string hashing_of_sessions(const PhpSettings& php) {
  if (!php.yes("memcached.sess_consistent_hash", true)) return "php-memcached-prefix";
  const std::string type = php.value("memcached.sess_consistent_hash_type");
  return type == "ketama_weighted" ? "php-memcached-ketama-compatible-prefix" : "php-memcached-session";
}

// Returns `:copies=N` as profile parameter if the file requests another number than `usual`.
std::string with_copies(const PhpSettings& php, std::string_view setting, std::uint64_t more,
                        std::uint64_t usual) {
  const std::string text = php.value(setting);
  const std::uint64_t number = parse_u64(text).value_or(usual - more);
  const std::uint64_t copies = number + more == 0 ? usual : number + more;  // PHP refuses 0 of them
  return copies == usual ? "" : ":copies=" + std::to_string(copies);
}

// The session handler of PECL memcache hashes as the extension is configured, and keeps several copies. The
// extension takes words in any case, and ignores those that it does not know.
std::string memcache_profile(const PhpSettings& php) {
  const bool standard = lower_case(php.value("memcache.hash_strategy")) == "standard",
             fnv = lower_case(php.value("memcache.hash_function")) == "fnv";
  const std::string hashing = std::string(standard ? "-standard" : "-consistent") + (fnv ? "-fnv" : "-crc32");
  return "php-memcache-session" + (standard || fnv ? hashing : "") +
         with_copies(php, "memcache.session_redundancy", 0, 2);
}

std::string session_profile(const PhpSettings& php) {
  // Replicas are written only over the binary protocol.
  const bool binary = php.yes("memcached.sess_binary_protocol", true);
  const std::string hashing = hashing_of_sessions(php);
  const bool ejects = php.yes("memcached.sess_remove_failed_servers", false);
  if (ejects && hashing == "php-memcached-prefix")
    throw bad_configuration(
        "memcached.sess_remove_failed_servers moves keys while a server is down, which is not "
        "supported "
        "without memcached.sess_consistent_hash; give the servers and --as");
  return hashing + (ejects ? ":eject=yes" : "") +
         (binary ? with_copies(php, "memcached.sess_number_of_replicas", 1, 1) : "");
}

// Converts PECL memcache's `tcp://host:port?weight=2&…` or `unix:///path`.
std::string memcache_url_entry(std::string_view url) {
  const auto question = url.find('?');
  std::string weight;
  if (question != std::string_view::npos) {
    for (const auto part : entries_of(url.substr(question + 1), "&")) {
      if (part == "weight=0") throw bad_configuration("PHP stores no session with a server of weight 0");
      if (part.starts_with("weight=")) weight = "/?" + std::string(part.substr(7));
    }
  }
  std::string_view address = url.substr(0, question);
  if (address.starts_with("unix://")) {
    address.remove_prefix(7);
    if (address.ends_with(":0")) address.remove_suffix(2);
    return "unix:" + std::string(address) + weight;
  }
  if (address.starts_with("tcp://")) address.remove_prefix(6);
  if (address.find(':') == std::string_view::npos)
    throw bad_configuration("PHP connects to no server without a port: " + in_quotes(url));
  return std::string(address) + weight;
}

// Converts php-memcached's `host[:port[:weight]]` or `/path[:0[:weight]]`.
std::string memcached_session_entry(std::string_view text) {
  const bool is_unix = text.starts_with('/');
  const auto parts = split(text, ':');
  if (parts.size() > 3 || std::ranges::any_of(parts, &std::string_view::empty))
    throw bad_configuration("session.save_path has " + in_quotes(text) + ", which is not host:port:weight");
  std::string entry = (is_unix ? "unix:" : "") + std::string(parts[0]);
  if (parts.size() > 1 && !is_unix) entry += ':' + std::string(parts[1]);
  if (parts.size() > 2) entry += "/?" + std::string(parts[2]);
  return entry;
}

// Refuses a host that parse_pool would read as NAME=HOST: `--SERVER=a --SERVER=b`.
void expect_no_name(const FileEntry& server) {
  const std::string& entry = server.entry;
  if (!entry.starts_with("unix:") && entry.substr(0, entry.find('/')).find('=') != std::string::npos)
    throw bad_configuration("session.save_path has " + in_quotes(server.written) + ", which is not a server");
}

// Returns which extension keeps the sessions. If the file has no handler, the form of the path decides.
bool is_memcache(const PhpSettings& php, const std::string& path) {
  const std::string handler = lower_case(php.value("session.save_handler"));
  const bool urls = path.find("://") != std::string::npos;
  if (handler.empty()) return urls;
  if (handler != "memcache" && handler != "memcached")
    throw bad_configuration("session.save_handler is " + in_quotes(handler) +
                            ": its sessions are not in memcached");
  if (handler == "memcached" && urls)
    throw bad_configuration(
        "session.save_path has a scheme, which the handler memcached does not read; "
        "write host:port, or set session.save_handler = memcache");
  return handler == "memcache";
}

}  // namespace

PoolFile parse_php_ini(std::string_view ini, std::string_view pool) {
  const PhpSettings php(ini, pool);
  std::string path = php.value("session.save_path");
  const bool memcache = is_memcache(php, path);
  if (memcache) path = php.given(own_path).value_or(path);
  if (path.empty()) throw bad_configuration("the file has no session.save_path");
  if (path.find("${") != std::string::npos)
    throw bad_configuration(
        "session.save_path takes " + path.substr(path.find("${")) +
        " from PHP's environment; give the servers, or --servers-from env:NAME for NAME_SERVERS, and --as");
  std::vector<FileEntry> entries;
  const auto add = [&](std::string entry, std::string_view written) {
    expect_no_name(entries.emplace_back(std::move(entry), std::string(written)));
  };
  if (memcache) {
    for (const auto url : entries_of(path, ", \t")) add(memcache_url_entry(url), url);
    return {pool_of(entries, "tcp://host:port?weight=N or unix:///path"), memcache_profile(php)};
  }
  if (path.find("PERSISTENT=") != std::string::npos)
    throw bad_configuration(
        "PHP refuses PERSISTENT= in session.save_path; set memcached.sess_persistent = On");
  for (std::string_view text : split(path, ',')) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    // libmemcached reads a blank as part of the host or as what begins the weight.
    if (std::ranges::count(text, ':') == 1) text = text.substr(0, text.find_last_not_of(" \t") + 1);
    if (const auto end = text.find_first_of(" \t;"); end != std::string_view::npos)
      throw bad_configuration("session.save_path has a blank or ';' after " + in_quotes(text.substr(0, end)) +
                              ", where PHP stops reading; separate servers by commas");
    if (!text.empty()) add(memcached_session_entry(text), text);
  }
  const std::string prefix = php.value("memcached.sess_prefix");
  const bool refused = std::ranges::any_of(prefix, [](unsigned char c) { return c <= ' ' || c == 127; });
  return {pool_of(entries, "host:port:weight"), session_profile(php), "",
          prefix.empty() || refused ? "memc.sess.key." : prefix};
}

}  // namespace mcds
