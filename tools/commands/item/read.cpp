// mcds item get and show.
#include "tools/cli/session.hpp"
#include "tools/commands/item/places.hpp"

namespace mcds {

namespace {

class Reader {
 public:
  Reader(Session& session, const ItemOptions& options, bool values)
      : session_(session), values_(values), alone_(options.keys.size() == 1 && options.keys.front() != "-") {}

  ExitStatus read(std::span<const std::string> names, const NameTasks::Fail& fail) {
    ExitStatus status = ExitStatus::ok;
    const std::vector<Item> items = items_of(session_, names);
    probe_items(session_, items, [&](std::size_t i, const ItemReplies& replies) {
      if (const Reply* reply = replies.found()) return print(items[i], *reply);
      if (const Reply* reply = replies.failed()) return fail(i, failure_of(session_, *reply));
      print_missing(items[i]);
      status = worse(status, ExitStatus::no);
    });
    return status;
  }

 private:
  void print(const Item& item, const Reply& reply) {
    JsonObject line;
    line.bytes("key", item.key).boolean("found", true);
    if (values_) line.stored_bytes("value", reply.value);
    line.number("flags", reply.flags).number("size_bytes", reply.value.size());
    add_age(line, reply.age);
    line.bytes("cas", std::to_string(reply.cas.value)).bytes("server", session_.server_address(reply.server));
    if (!values_) return session_.output().answer(line, std::to_string(reply.value.size()));
    alone_ ? session_.output().answer_bytes(line, reply.value) : session_.output().answer(line, reply.value);
  }

  void print_missing(const Item& item) {
    if (session_.output().mode() == OutputMode::value) return;
    JsonObject line;
    line.bytes("key", item.key).boolean("found", false);
    line.bytes("server", session_.server_address(item.places.front().server));
    session_.output().answer(line, {});
  }

  Session& session_;
  bool values_, alone_;
};

ExitStatus read(Session& session, const ItemOptions& options, bool values) {
  Reader reader(session, options, values);
  return for_items(session, options, [&](std::span<const std::string> names, const NameTasks::Fail& fail) {
    return reader.read(names, fail);
  });
}

}  // namespace

ExitStatus item_get(Session& session, const ItemOptions& options) {
  return read(session, options, true);
}

ExitStatus item_show(Session& session, const ItemOptions& options) {
  return read(session, options, false);
}

}  // namespace mcds
