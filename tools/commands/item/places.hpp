// Where an application's client keeps an item, and what asking there said.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/json.hpp"
#include "common/cluster/cluster.hpp"
#include "tools/cli/names.hpp"
#include "tools/commands/item/options.hpp"

namespace mcds {

struct ItemPlace {
  std::size_t server;
  std::string wire_key;  // what this server knows it by
  bool must = true;      // a write goes there, too
};

struct Item {
  std::string key;                // without the namespace
  std::vector<ItemPlace> places;  // never empty; the first is asked first
};

// One for each name. Throws InvalidInput if one is not a valid key.
std::vector<Item> items_of(Session& session, std::span<const std::string> names);

// Does `act` with the names of `options.keys`, or of standard input. What is `also` taken need be no key.
using AlsoTaken = std::function<bool(const std::string& name)>;
ExitStatus for_items(Session& session, const ItemOptions& options, const NameTasks::Act& act,
                     const AlsoTaken& also = {});

// What the places of one item said.
struct ItemReplies {
  std::vector<Reply> replies;  // in the order of Item::places

  // The first that has it; nullptr: none.
  const Reply* found() const;
  // Of a place that gave no answer.
  const Reply* failed() const;
};

// One trip, or some where values are large; `each` is called in order.
using AskedItem = std::function<void(std::size_t i, const ItemReplies& replies)>;
void probe_items(Session& session, std::span<const Item> items, const AskedItem& each);

// What expect() throws for it.
Failure failure_of(Session& session, const Reply& reply);

// "ttl_s", "expires" and "idle_s", null where the server does not say.
void add_age(JsonObject& line, const ItemAge& age);

}  // namespace mcds
