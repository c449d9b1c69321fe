// The verbs of mcds item.
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
  std::optional<std::string> on, sort, names, rate, audit;
  SelectedKeys selected;
  bool if_absent = false, if_present = false, everywhere = false, dry_run = false, yes = false,
       by_prefix = false, digest = false, structures = false, overwrite = false, verify = false,
       strict = false, even_astray = false, full_ttl = false;
};
// The server of --on; unset: all. Throws InvalidInput for one that is not in the list.
std::optional<std::size_t> server_of(Session& session, const ItemOptions& options);
using ItemOptionsPtr = std::shared_ptr<ItemOptions>;

// Each in the file of its name; get and show in read.cpp, set and touch in change.cpp.
ExitStatus item_get(Session& session, const ItemOptions& options);
ExitStatus item_show(Session& session, const ItemOptions& options);
ExitStatus item_set(Session& session, const ItemOptions& options);
ExitStatus item_touch(Session& session, const ItemOptions& options);
ExitStatus item_remove(Session& session, const ItemOptions& options);
ExitStatus item_remove_selected(Session& session, const ItemOptions& options);
ExitStatus item_list(Session& session, const ItemOptions& options);
ExitStatus item_save(Session& session, const ItemOptions& options);
ExitStatus item_load(Session& session, const ItemOptions& options);
ExitStatus item_keep(Session& session, const ItemOptions& options);
ExitStatus item_hot(Session& session, const ItemOptions& options);

}  // namespace mcds
