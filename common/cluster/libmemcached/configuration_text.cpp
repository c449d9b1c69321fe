#include "common/cluster/libmemcached/configuration_text.hpp"

#include <strings.h>

#include <optional>
#include <utility>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/text.hpp"

namespace mcds::libmemcached {

namespace {

constexpr std::size_t longest_text = std::size_t{64} << 10;
constexpr std::size_t most_servers = 100;  // the library aborts with more
constexpr std::uint64_t largest_port = 65535;

bool is_digit_of_text(char c) {
  return c >= '0' && c <= '9';
}

bool is_of_host(char c) {
  return is_digit_of_text(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' ||
         c == '-';
}

// Walks the text in the steps of the library's scanner, as far as that takes: a statement begins at the
// start and behind each space, and what is quoted or a comment is one piece.
class TextReader {
 public:
  explicit TextReader(std::string_view text) : text_(text) {}

  Pool run() {
    if (text_.size() > longest_text)
      throw bad_configuration("the string for libmemcached is longer than 64 KiB");
    if (text_.find('\0') != std::string_view::npos)
      throw bad_configuration("the string for libmemcached has a NUL in it");
    while (at_ < text_.size()) step();
    if (servers_.size() > most_servers)
      throw bad_configuration("libmemcached takes no more than 100 servers; the string has " +
                              std::to_string(servers_.size()));
    return std::move(servers_);
  }

  // The places of what follows each /?, and how long that is.
  const std::vector<std::pair<std::size_t, std::size_t>>& weights() const { return weights_; }

 private:
  void step() {
    const char c = text_[at_];
    if (c == '#' && (at_ == 0 || text_[at_ - 1] == '\n') && text_.find('\n', at_) != std::string_view::npos) {
      at_ = text_.find('\n', at_);
    } else if (c == ' ') {
      starts_ = true;
      ++at_;
    } else if (c == '\t' || c == '\r' || c == '\n') {
      ++at_;
    } else if (std::exchange(starts_, false)) {
      statement();
    } else if (c == '"') {
      static_cast<void>(quoted());
    } else if (!valid_port()) {
      ++at_;
    }
  }

  bool takes(std::string_view word) {
    const bool is =
        text_.size() - at_ >= word.size() && strncasecmp(&text_[at_], word.data(), word.size()) == 0;
    if (is) at_ += word.size();
    return is;
  }

  void statement() {
    if (takes("--SERVER=")) return server(run_of(is_of_host), {});
    if (takes("--SOCKET="))
      return server({}, text_.substr(at_).starts_with('"') ? quoted() : run_of(is_of_host));
    if (takes("--CONFIGURE-FILE"))
      throw bad_configuration("--CONFIGURE-FILE reads another file: write out what it has");
    if (text_.substr(at_).starts_with("--")) return;
    const std::string word(run_of([](char c) { return c != ' ' && c != '\n' && c != '\r' && c != '\t'; }));
    if (strcasecmp(word.c_str(), "END") == 0) {  // nothing behind it is read
      at_ = text_.size();
      return;
    }
    throw bad_configuration("a string for libmemcached has options, which begin with --; this is none: " +
                            visible(beginning(word, 60)));
  }

  template <typename Is>
  std::string_view run_of(Is is) {
    const std::size_t from = at_;
    while (at_ < text_.size() && is(text_[at_])) ++at_;
    return text_.substr(from, at_ - from);
  }

  // Without its quotation marks.
  std::string_view quoted() {
    const std::size_t from = ++at_;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') return text_.substr(from, at_++ - from);
      if (text_[at_] == '\\' && (++at_ == text_.size() || text_[at_] == '\n')) break;
    }
    throw bad_configuration("the string for libmemcached has a quotation mark without its end");
  }

  void server(std::string_view host, std::string_view path) {
    Server found{.host = std::string(host), .socket_path = std::string(path), .has_port = false};
    if (const auto port = valid_port()) {
      found.port = *port == 0 ? default_port : static_cast<std::uint16_t>(*port);
      found.has_port = true;
    }
    if (const auto weight = numbered("/?")) found.weight = static_cast<std::uint32_t>(*weight);
    servers_.push_back(std::move(found));
  }

  // The number behind these characters, five digits at most as the scanner has it.
  std::optional<std::uint64_t> numbered(std::string_view mark) {
    if (!text_.substr(at_).starts_with(mark)) return std::nullopt;
    std::size_t digits = 0;
    const std::size_t from = at_ + mark.size();
    while (digits < 5 && from + digits < text_.size() && is_digit_of_text(text_[from + digits])) ++digits;
    if (digits == 0) return std::nullopt;
    if (mark == "/?") weights_.emplace_back(from, digits);
    at_ = from + digits;
    return parse_u64(text_.substr(from, digits));
  }

  std::optional<std::uint64_t> valid_port() {
    const auto port = numbered(":");
    if (port && *port > largest_port)
      throw bad_configuration("port " + std::to_string(*port) + " is above 65535");
    return port;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool starts_ = true;
  Pool servers_;
  std::vector<std::pair<std::size_t, std::size_t>> weights_;
};

}  // namespace

Pool read_configuration_text(std::string_view text) {
  return TextReader(text).run();
}

std::string with_equal_weights(std::string_view text) {
  TextReader reader(text);
  static_cast<void>(reader.run());
  std::string result;
  std::size_t from = 0;
  for (const auto& [at, size] : reader.weights()) {
    result += std::string(text.substr(from, at - from)) + '1';
    from = at + size;
  }
  return result + std::string(text.substr(from));
}

}  // namespace mcds::libmemcached
