#include "tools/commands/item/options.hpp"

namespace mcds {

namespace {

// The number of values read in one trip. It is adapted to the sizes of the last ones.
constexpr std::size_t first_trip = 32;
constexpr std::size_t max_trip = 1024;
constexpr std::size_t bytes_per_trip = std::size_t{4} << 20;

Item item_of(Session& session, const Placement& placement, const std::string& name, std::string whole) {
  const PlacedKey key = placed(std::move(whole), session.key_prefix());
  Item item{name, {}};
  for (const Owner& owner : key_owners(session, placement, key).list) {
    const bool as_given = owner.wire_key.empty() || !key.with.empty();
    item.places.push_back({owner.server, as_given ? key.key : owner.wire_key, owner.must});
  }
  if (std::ranges::none_of(item.places, &ItemPlace::must)) item.places.front().must = true;
  return item;
}

// Returns the whole key of an argument, or of a line of standard input, which may name it in JSON.
std::string whole_of(Session& session, const ItemOptions& options, const std::string& name) {
  const KeyRules rules{session.key_prefix(), std::span(&session.placement(), 1), true};
  const bool any_byte = session.options().null;
  return options.of_lines() ? rules.of_line(name, any_byte) : rules.checked(name, any_byte);
}

}  // namespace

std::optional<std::size_t> server_of(Session& session, const ItemOptions& options) {
  if (!options.on) return std::nullopt;
  return server_named(session.placement()->pool(), *options.on, "--on");
}

std::vector<Request> requests_for_stats(Session& session, const ItemOptions& options,
                                        const std::string& argument) {
  const auto on = server_of(session, options);
  std::vector<Request> requests;
  for (std::size_t i = 0; i < session.placement()->pool().size(); ++i) {
    if (!on || *on == i) requests.push_back(Request::stats(i, argument));
  }
  return requests;
}

std::vector<Item> items_of(Session& session, const ItemOptions& options, std::span<const std::string> names) {
  std::vector<Item> items;
  items.reserve(names.size());
  for (const std::string& name : names) {
    std::string whole = whole_of(session, options, name);
    const std::string key = whole.substr(session.key_prefix().size());
    items.push_back(item_of(session, *session.placement(), key, std::move(whole)));
  }
  return items;
}

ExitStatus for_items(Session& session, const ItemOptions& options, const AnswerNames& answer,
                     const AlsoTaken& also) {
  const auto check = [&](const std::string& name) {
    if (!also || !also(name)) static_cast<void>(whole_of(session, options, name));
  };
  return for_names(session, options.keys, check, answer);
}

const Reply* first_with(Outcome outcome, ItemReplies replies) {
  const auto found = std::ranges::find(replies, outcome, &Reply::outcome);
  return found == replies.end() ? nullptr : &*found;
}

const Reply* first_failed(ItemReplies replies) {
  const auto failed = std::ranges::find_if(replies, &Reply::failed);
  return failed == replies.end() ? nullptr : &*failed;
}

void ask_items(Session& session, std::span<const Item> items, const RequestTo& request,
               const AskedItem& each) {
  std::vector<Request> requests;
  for (const Item& item : items) {
    for (const ItemPlace& place : item.places) requests.push_back(request(place));
  }
  const std::vector<Reply> replies = session.cluster().execute(requests);
  ItemReplies rest(replies);
  for (std::size_t i = 0; i < items.size(); ++i) {
    each(i, rest.first(items[i].places.size()));
    rest = rest.subspan(items[i].places.size());
  }
}

void probe_items(Session& session, std::span<const Item> items, const AskedItem& each) {
  const auto probe = [](const ItemPlace& place) { return Request::probe(place.wire_key, place.server); };
  std::size_t trip = first_trip;
  for (std::size_t from = 0; from < items.size();) {
    const auto window = items.subspan(from, std::min(trip, items.size() - from));
    std::size_t bytes = 1;
    ask_items(session, window, probe, [&](std::size_t i, ItemReplies of_item) {
      for (const Reply& reply : of_item) bytes += reply.value.size();
      each(from + i, of_item);
    });
    from += window.size();
    trip = std::clamp(bytes_per_trip * window.size() / bytes, std::size_t{1}, std::min(trip * 4, max_trip));
  }
}

void add_age(JsonObject& line, const ItemAge& age) {
  const auto seconds = [](const std::optional<std::chrono::seconds>& time) -> std::optional<std::uint64_t> {
    return time && time->count() >= 0 ? std::optional(static_cast<std::uint64_t>(time->count()))
                                      : std::nullopt;
  };
  line.number_or_null("ttl_s", seconds(age.ttl));
  age.ttl ? line.boolean("expires", age.ttl->count() >= 0) : line.raw("expires", "null");
  line.number_or_null("idle_s", seconds(age.idle));
}

}  // namespace mcds
