// The verbs of mcds item.
#pragma once

#include "common/cluster/cluster.hpp"
#include "tools/cli/removal.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

struct ItemOptions {
  std::vector<std::string> keys;
  std::string key, value, file;
  std::vector<std::string> command;
  std::optional<Duration> ttl;
  Duration watched = std::chrono::seconds(5);
  std::optional<std::uint64_t> flags, if_cas, count;
  std::optional<Duration> older_than, max_ttl, wait;
  std::optional<std::string> on, sort, names, rate, audit, larger_than, decode, max_bytes;
  SelectedKeys selected;
  bool if_absent = false, if_present = false, everywhere = false, dry_run = false, yes = false,
       by_prefix = false, histogram = false, never_expires = false, digest = false, structures = false,
       overwrite = false, verify = false, strict = false, even_astray = false, full_ttl = false;
};
// The server of --on; unset: all. Throws InvalidInput for one that is not in the list.
std::optional<std::size_t> server_of(Session& session, const ItemOptions& options);
using ItemOptionsPtr = std::shared_ptr<ItemOptions>;

// Each in the file of its name; the others in item.cpp.
ExitStatus item_remove(Session& session, const ItemOptions& options);
ExitStatus item_list(Session& session, const ItemOptions& options);
ExitStatus item_save(Session& session, const ItemOptions& options);
ExitStatus item_load(Session& session, const ItemOptions& options);
ExitStatus item_keep(Session& session, const ItemOptions& options);
ExitStatus item_hot(Session& session, const ItemOptions& options);

// Where an application's client keeps an item, and what asking there said.

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

// Answers for the names of `options.keys`, or of standard input. What is `also` taken need be no key.
using AlsoTaken = std::function<bool(const std::string& name)>;
ExitStatus for_items(Session& session, const ItemOptions& options, const AnswerNames& answer,
                     const AlsoTaken& also = {});

// What the places of one item said, in the order of Item::places.
using ItemReplies = std::span<const Reply>;
// The first with this outcome; nullptr: none.
const Reply* first_with(Outcome outcome, ItemReplies replies);
// Of a place that gave no answer.
const Reply* first_failed(ItemReplies replies);

// One trip to all places; `each` is called in order.
using RequestTo = std::function<Request(const ItemPlace& place)>;
using AskedItem = std::function<void(std::size_t i, ItemReplies replies)>;
void ask_items(Session& session, std::span<const Item> items, const RequestTo& request,
               const AskedItem& each);
// The items themselves: one trip, or some where values are large.
void probe_items(Session& session, std::span<const Item> items, const AskedItem& each);

// "ttl_s", "expires" and "idle_s", null where the server does not say.
void add_age(JsonObject& line, const ItemAge& age);

}  // namespace mcds
