// Options and helpers that the verbs of mcds item share.
#pragma once

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
       overwrite = false, verify = false, strict = false, even_misplaced = false, full_ttl = false;
  bool of_lines() const { return keys == std::vector<std::string>{"-"}; }
};
// Returns the server of --on, or nullopt for all. Throws InvalidInput if it is not in the list.
std::optional<std::size_t> server_of(Session& session, const ItemOptions& options);
// Returns the requests for statistics of this server, or of all.
std::vector<Request> requests_for_stats(Session& session, const ItemOptions& options,
                                        const std::string& argument = {});
using ItemOptionsPtr = std::shared_ptr<ItemOptions>;

// Verbs with a file of their own; the others are in item.cpp.
ExitStatus item_get(Session& session, const ItemOptions& options);
ExitStatus item_show(Session& session, const ItemOptions& options);
ExitStatus item_formats(Session& session, const ItemOptions& options);
ExitStatus item_remove(Session& session, const ItemOptions& options);
ExitStatus item_list(Session& session, const ItemOptions& options);
ExitStatus item_save(Session& session, const ItemOptions& options);
ExitStatus item_load(Session& session, const ItemOptions& options);
ExitStatus item_keep(Session& session, const ItemOptions& options);
ExitStatus item_hot(Session& session, const ItemOptions& options);

// The places where an application's client keeps an item, and the replies from them.

struct ItemPlace {
  std::size_t server;
  std::string wire_key;  // the key that this server knows the item by
  bool must = true;      // writes must go there too
};

struct Item {
  std::string key;                // without the namespace
  std::vector<ItemPlace> places;  // never empty; the first is read first
};

// Returns one item per name. Throws InvalidInput if a name is not a valid key.
std::vector<Item> items_of(Session& session, const ItemOptions& options, std::span<const std::string> names);

// Answers for the names of `options.keys`, or of standard input: valid keys, or names that `also` accepts.
using AlsoTaken = std::function<bool(const std::string& name)>;
ExitStatus for_items(Session& session, const ItemOptions& options, const AnswerNames& answer,
                     const AlsoTaken& also = {});

// The replies for one item, in the order of Item::places.
using ItemReplies = std::span<const Reply>;
// Returns the first reply with this outcome, or nullptr.
const Reply* first_with(Outcome outcome, ItemReplies replies);
// Returns the first reply that is a failure, or nullptr.
const Reply* first_failed(ItemReplies replies);

// Sends one request to each place in one round trip. `each` is called in the order of the items.
using RequestTo = std::function<Request(const ItemPlace& place)>;
using AskedItem = std::function<void(std::size_t i, ItemReplies replies)>;
void ask_items(Session& session, std::span<const Item> items, const RequestTo& request,
               const AskedItem& each);
// Reads the items themselves in one round trip, or in several if values are large.
void probe_items(Session& session, std::span<const Item> items, const AskedItem& each);

// Adds "ttl_s", "expires" and "idle_s", null if the server does not report them.
void add_age(JsonObject& line, const ItemAge& age);

}  // namespace mcds
