#include "tools/commands/servers/hottest.hpp"

#include "tools/commands/item/hot_keys.hpp"

namespace mcds {

namespace {

constexpr std::string_view prefix_ends = ":/.|";

std::string_view prefix_of(std::string_view key) {
  const std::size_t end = key.find_first_of(prefix_ends);
  return end == std::string_view::npos ? std::string_view() : key.substr(0, end + 1);
}

}  // namespace

std::vector<HotLine> watch_hottest(Session& session, Duration longest, std::size_t count,
                                   const std::function<bool()>& goes_on) {
  auto reading = LineStreamOptions::of(session.connect_options());
  reading.longest = longest;
  const Pool& pool = session.placement()->pool();
  HotKeys keys, prefixes;
  const SteadyTime began = session.clock().steady();
  watch_keys(
      pool, reading, session.clock(),
      [&](const KeyEvent& event) {
        if (!event.key.starts_with(session.key_prefix())) return;
        const std::string_view name = event.key.substr(session.key_prefix().size());
        keys.add(event, name);
        KeyEvent anywhere = event;
        anywhere.server = 0;
        if (const std::string_view prefix = prefix_of(name); !prefix.empty()) prefixes.add(anywhere, prefix);
      },
      goes_on);
  const double seconds = std::chrono::duration<double>(session.clock().steady() - began).count();
  std::vector<HotLine> lines;
  const auto take = [&](const HotKeys& from, bool is_prefix) {
    for (const HotKey& hot : from.hottest(KeyFigure::events, count)) {
      const std::uint64_t events = hot.counts.events();
      lines.push_back({hot.key, is_prefix, events, seconds > 0 ? static_cast<double>(events) / seconds : 0,
                       is_prefix ? std::string() : pool[hot.server].label()});
    }
  };
  take(keys, false);
  take(prefixes, true);
  return lines;
}

}  // namespace mcds
