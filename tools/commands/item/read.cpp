// mcds item get and show.
#include "common/cluster/keys/probe.hpp"
#include "tools/cli/printed_command.hpp"
#include "tools/commands/item/places.hpp"

namespace mcds {

namespace {

constexpr std::size_t most_sought = 16;

class Reader {
 public:
  Reader(Session& session, const ItemOptions& options, bool values)
      : session_(session), values_(values), alone_(options.keys.size() == 1 && options.keys.front() != "-") {}

  void read(const Window<std::string>& names) {
    const std::vector<Item> items = items_of(session_, names.items);
    probe_items(session_, items, [&](std::size_t i, ItemReplies replies) {
      if (const Reply* reply = first_with(Outcome::hit, replies)) return print(items[i], *reply);
      if (const Reply* reply = first_failed(replies))
        return names.fail(i, failure_of(session_.cluster(), *reply));
      const ItemPlace& place = items[i].places.front();
      names.note(answer_missing(session_, JsonObject("key", items[i].key), {place.server}));
      if (missing_.size() < most_sought) missing_.push_back(place.wire_key);
    });
    seek();
  }

 private:
  // Whether the first keys that are missing are where another client would look: then the profile is probably
  // wrong.
  void seek() {
    const Placement& placement = *session_.placement();
    if (missing_.empty() || std::exchange(sought_, true) || placement.pool().size() == 1) return;
    const std::vector<KeyCopies> found = probe_keys(session_.cluster(), missing_);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto copy = std::ranges::find_if(found[i], &KeyCopy::found);
      if (copy == found[i].end()) continue;
      return session_.output().warning(
          missing_[i] + " is on " + session_.server_address(copy->server) + ", where " +
          std::string(placement.profile()) +
          " does not look; find the client for --as with: " + printed_command(session_, "where --guess"));
    }
  }

  void print(const Item& item, const Reply& reply) {
    JsonObject line = JsonObject("key", item.key).boolean("found", true);
    if (values_) line.stored_bytes("value", reply.value);
    line.number("flags", reply.flags).number("size_bytes", reply.value.size());
    add_age(line, reply.age);
    line.bytes("cas", std::to_string(reply.cas.value)).bytes("server", session_.server_address(reply.server));
    if (!values_) return session_.output().answer(line, std::to_string(reply.value.size()));
    alone_ ? session_.output().answer_bytes(line, reply.value) : session_.output().answer(line, reply.value);
  }

  Session& session_;
  bool values_, alone_;
  std::vector<std::string> missing_;
  bool sought_ = false;
};

ExitStatus read(Session& session, const ItemOptions& options, bool values) {
  Reader reader(session, options, values);
  return for_items(session, options, [&](const Window<std::string>& names) { reader.read(names); });
}

}  // namespace

ExitStatus item_get(Session& session, const ItemOptions& options) {
  return read(session, options, true);
}

ExitStatus item_show(Session& session, const ItemOptions& options) {
  return read(session, options, false);
}

}  // namespace mcds
