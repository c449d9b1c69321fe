// Implements mcds item remove for typed keys, and for lines as item list prints them.

#include <unistd.h>

#include <cstdio>

#include "common/operations/removal.hpp"
#include "common/primitives/cas_update.hpp"
#include "tools/cli/changed_pool.hpp"
#include "tools/commands/item/options.hpp"

namespace mcds {

namespace {

// An item as item list saw it, except for its cas.
struct Listed {
  std::size_t server;
  std::optional<ServerStart> start = {};  // the server start at that time
  std::optional<std::string> digest = {};
  // Set only with a digest:
  std::uint64_t flags = 0;
  std::optional<WallTime> end = {};  // expiry by the server's clock; unset: never
};

// One key, with the requests for it and the replies.
struct Target {
  std::string key;
  std::vector<Request> requests;
  std::optional<Listed> listed = {};
  std::vector<Reply> replies = {};
  bool changed = false;  // it is another item than the listed one, as far as this can be determined
};
constexpr int max_checks = 4;

// The difference up to which two expiries are equal, because a server's clock shows whole seconds.
constexpr auto tick = std::chrono::seconds(2);

// Parses a line of item list, for which only the listed item may be removed. Returns nullopt for a key.
std::optional<Target> listed(Session& session, const std::string& line) {
  if (!line.starts_with("{\"key")) return std::nullopt;
  const auto key = json_bytes(line, "key");
  const auto server = json_bytes(line, "server");
  const auto cas = json_bytes(line, "cas");
  if (!key || !server || !cas) return std::nullopt;
  Listed seen{server_named(session.placement()->pool(), *server, "'server'")};
  const auto time = [&](std::string_view name) -> std::optional<WallTime> {
    const auto text = json_bytes(line, name);
    return text ? std::optional(parse_time(*text, {}, in_quotes(name))) : std::nullopt;
  };
  const auto started = time("server_started_at");
  const auto process = parse_u64(json_field(line, "server_pid").value_or(""));
  if (started && process) seen.start = ServerStart::of(*process, *started);
  seen.digest = json_bytes(line, "digest");
  if (seen.digest) {
    seen.flags = parse_u64(json_field(line, "flags").value_or("")).value_or(0);
    seen.end = time("expires_at");
  }
  const CasUnique unique{parse_u64(*cas).value_or(0)};
  return Target{*key, {removal_of(session.key_prefix() + *key, unique).on(seen.server)}, std::move(seen)};
}

// Returns true if the server still holds the listed item, whatever its cas.
bool is_same(const Listed& seen, const Reply& now, WallTime server_time) {
  if (now.flags != seen.flags || md5_hex(now.value) != seen.digest) return false;
  if (!now.age.ttl) return true;
  const bool never = now.age.ttl->count() < 0;
  if (never || !seen.end) return never == !seen.end;
  const auto apart = server_time + *now.age.ttl - *seen.end;
  return apart <= tick && apart >= -tick;
}

class Remover {
 public:
  Remover(Session& session, const ItemOptions& options)
      : session_(session), options_(options), summary_(session, options.audit, options.dry_run) {
    if (options.rate) throw InvalidInput("--rate needs a selection: --prefix, --match or --older-than");
    if (options.on && options.everywhere) throw InvalidInput("--on and --everywhere cannot be combined");
    if (options.yes && options.dry_run) throw InvalidInput("--yes and --dry-run cannot be combined");
    on_ = server_of(session, options);
  }

  ExitStatus run() {
    const auto removes = [this](const Window<std::string>& names) { remove(names); };
    const auto is_listed = [this](const std::string& line) { return listed_in(line).has_value(); };
    return summary_.around(
        selection(),
        [&] {
          const ExitStatus status = for_items(session_, options_, removes, is_listed);
          finish();
          return status;
        },
        [this] {
          if (removed_ + kept_.size() > 0) finish();
        });
  }

 private:
  void remove(const Window<std::string>& names) {
    std::vector<Target> targets = targets_of(names.items);
    std::vector<Target*> open;
    for (Target& target : targets) open.push_back(&target);
    // A server that moves items in its memory changes their cas, possibly again before the removal.
    for (int look = 0; look < max_checks && !open.empty(); ++look) {
      look_at(open);
      send(open);
      std::erase_if(open, [](const Target* one) { return !one->changed || !one->listed->digest; });
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (const Reply* failed = first_failed(targets[i].replies)) {
        names.fail(i, failure_of(session_.cluster(), *failed));
        ++kept_["failed"];
      } else {
        names.done(i, print(targets[i]));
      }
    }
  }

  // Returns the item of a line of standard input that `mcds item list` printed.
  std::optional<Target> listed_in(const std::string& line) const {
    return options_.of_lines() ? listed(session_, line) : std::nullopt;
  }

  // Reports what was removed and kept for lines of standard input. For typed keys the answers say so already,
  // and only the audit file is written.
  void finish() {
    RemovalSummary::Removed removed{removed_};
    for (const auto& [reason, count] : kept_) removed.kept.number(reason, count);
    if (!options_.of_lines() || session_.output().mode() == OutputMode::value)
      return summary_.keep({}, removed);
    const auto warn = [&](std::uint64_t count, const char* why) {
      if (count == 0) return;
      session_.output().warning(std::to_string(count) + why +
                                "; lines of item list --digest tell these apart");
    };
    warn(undecided_ - restarted_,
         " of these have another cas than when they were listed, or none, and were kept: they may have been "
         "written since, or their server moved them in memory");
    warn(restarted_,
         " of these were listed before their server was restarted and were kept: they may have been written "
         "since");
    summary_.print({}, removed, {});
  }

  JsonObject selection() const {
    return options_.of_lines() ? JsonObject("keys", "-") : JsonObject().strings("keys", options_.keys);
  }

  // Returns true if the listed item has another cas now.
  static bool has_changed(const Request& request, const Reply& reply) {
    const bool other =
        reply.outcome == Outcome::hit && request.op == Op::remove_if && reply.cas != request.cas;
    return other || reply.outcome == Outcome::exists;
  }

  // Keeps only the targets that may be removed. A cas token proves nothing after a restart, because the
  // server counts from scratch. An item with a digest is identified by value, flags and expiry; an item
  // without one may be removed only if it has a cas and the server was started before the list was made.
  void look_at(std::vector<Target*>& open) {
    std::map<std::size_t, Reply> servers;
    std::vector<Item> items;
    std::vector<Target*> digested;
    for (Target* target : open) {
      target->replies.clear();
      if (!target->listed) continue;
      servers[target->listed->server];
      if (!target->listed->digest) continue;
      items.push_back({target->key, {{target->listed->server, target->requests.front().key}}});
      digested.push_back(target);
    }
    std::vector<Request> asks;
    for (const auto& [server, reply] : servers) asks.push_back(Request::stats(server));
    for (Reply& reply : session_.cluster().execute(asks)) servers[reply.server] = std::move(reply);
    probe_items(session_, items, [&](std::size_t i, ItemReplies now) {
      compare(*digested[i], servers[digested[i]->listed->server], now.front());
    });
    for (Target* target : open) {
      if (target->listed && !target->listed->digest)
        expect_same_life(*target, servers[target->listed->server]);
    }
    std::erase_if(open, [](const Target* one) { return !one->replies.empty(); });
  }

  void compare(Target& target, const Reply& server, const Reply& now) {
    const WallTime time(std::chrono::seconds(server_time(server, session_.clock()).now));
    target.changed = now.outcome == Outcome::hit && !is_same(*target.listed, now, time);
    if (target.changed || now.outcome != Outcome::hit) target.replies = {now};
    Request& request = target.requests.front();
    request = removal_of(std::move(request.key), now.cas).on(target.listed->server);
  }

  // Keeps an item that was listed without a cas (-C), or before its server was restarted.
  void expect_same_life(Target& target, const Reply& server) {
    const auto start = server_time(server, session_.clock()).start;
    const bool has_cas = target.requests.front().op == Op::remove_if;
    const bool restarted =
        target.listed->start && !server.failed() && !(start && start->is(*target.listed->start));
    target.changed = restarted || !has_cas;
    if (target.changed || (target.listed->start && server.failed())) target.replies = {server};
    restarted_ += restarted ? 1 : 0;
  }

  void send(const std::vector<Target*>& open) {
    std::vector<Request> requests;
    for (const Target* target : open) {
      for (const Request& request : target->requests)
        requests.push_back(options_.dry_run ? Request::gets(request.key).on(*request.server) : request);
    }
    std::vector<Reply> replies = session_.cluster().execute(requests);
    auto next = std::make_move_iterator(replies.begin());
    for (Target* target : open) {
      const auto end = next + static_cast<std::ptrdiff_t>(target->requests.size());
      target->replies.assign(next, end);
      next = end;
      target->changed = false;
      for (std::size_t i = 0; i < target->replies.size(); ++i)
        target->changed = target->changed || has_changed(target->requests[i], target->replies[i]);
    }
  }

  std::vector<Target> targets_of(std::span<const std::string> names) {
    std::vector<Target> targets;
    for (const std::string& name : names) {
      if (auto target = listed_in(name)) {
        if (!options_.yes && !options_.dry_run)
          throw InvalidInput("lines of item list need --dry-run, to see what would be removed, or --yes");
        targets.push_back(std::move(*target));
      } else {
        targets.push_back(target_of(items_of(session_, options_, std::span(&name, 1)).front()));
      }
    }
    return targets;
  }

  Target target_of(const Item& item) const {
    Target target{item.key, {}};
    const auto add = [&](std::size_t server) {
      const auto own = std::ranges::find(item.places, server, &ItemPlace::server);
      const ItemPlace& place = own == item.places.end() ? item.places.front() : *own;
      target.requests.push_back(Request::remove(place.wire_key).on(server));
    };
    if (on_) {
      add(*on_);
    } else if (options_.everywhere) {
      for (std::size_t i = 0; i < session_.placement()->pool().size(); ++i) add(i);
    } else {
      for (const ItemPlace& place : item.places) add(place.server);
    }
    return target;
  }

  ExitStatus print(const Target& target) {
    std::vector<std::string> servers;
    for (const Reply& reply : target.replies) {
      if (!target.changed && (reply.outcome == Outcome::hit || reply.outcome == Outcome::deleted))
        servers.push_back(session_.server_address(reply.server));
    }
    const bool yes = !servers.empty();
    JsonObject line =
        JsonObject("key", target.key).boolean(options_.dry_run ? "would_remove" : "removed", yes);
    const char* reason = target.changed ? "changed" : "missing";
    if (!yes) line.bytes("reason", reason);
    yes ? ++removed_ : ++kept_[reason];
    undecided_ += target.changed && !target.listed->digest ? 1 : 0;
    line.bytes("server", yes ? servers.front() : session_.server_address(target.replies.front().server));
    if (servers.size() > 1) line.strings("servers", servers);
    return answer_yes(session_, line, yes);
  }

  Session& session_;
  const ItemOptions& options_;
  RemovalSummary summary_;
  std::optional<std::size_t> on_;
  std::uint64_t removed_ = 0;
  std::uint64_t undecided_ = 0, restarted_ = 0;  // kept items without a digest; of these, after a restart
  std::map<std::string, std::uint64_t> kept_;    // by reason
};

// Implements mcds item remove by selection. The algorithm is in common/operations/removal.hpp.
constexpr std::uint64_t usual_rate = 20'000;

void check_selection(const ItemOptions& options) {
  options.selected.check();
  if (!options.keys.empty())
    throw InvalidInput("KEY and a selection (--prefix, --match, --older-than) cannot be combined");
  if (options.everywhere) throw InvalidInput("a selection is always removed everywhere; omit --everywhere");
  if (options.older_than && *options.older_than <= Duration::zero())
    throw InvalidInput("--older-than must be longer than 0");
}

// Asks a person at a terminal for confirmation. A script must give --yes.
bool confirmed(const ItemOptions& options) {
  if (options.yes || options.dry_run) return true;
  if (isatty(STDIN_FILENO) == 0 || isatty(STDERR_FILENO) == 0)
    throw InvalidInput("add --dry-run to see what would be removed, or --yes to remove it");
  std::fputs("Remove all keys of this selection from the servers? [y/N] ", stderr);
  const std::string answer = LineReader().next().value_or("");
  return answer == "y" || answer == "yes";
}

// Describes the selection, for the audit file.
JsonObject selection_of(Session& session, const ItemOptions& options) {
  JsonObject selection;
  options.selected.describe(selection);
  if (!session.key_prefix().empty()) selection.bytes("namespace", session.key_prefix());
  if (options.older_than)
    selection.real("older_than_s", std::chrono::duration<double>(*options.older_than).count());
  if (options.on) selection.bytes("server", *options.on);
  return selection;
}

RemovalOptions removal_options(Session& session, const ItemOptions& options) {
  return {.selection = options.selected.of(session),
          .older_than = options.older_than,
          .rate = options.rate      ? std::optional(rate_of(*options.rate))
                  : options.dry_run ? std::nullopt
                                    : std::optional(usual_rate),
          .dry_run = options.dry_run};
}

ExitStatus remove_selected(Session& session, const ItemOptions& options) {
  check_selection(options);
  if (!confirmed(options)) return ExitStatus::no;
  Output& output = session.output();
  RemovalSummary summary(session, options.audit, options.dry_run);
  ExitStatus status = ExitStatus::ok;
  std::uint64_t kept_lines = 0;
  const auto show = [&](const std::string& key, std::size_t server, const char* kept) {
    if (output.mode() == OutputMode::value || (kept != nullptr && ++kept_lines > shown_lines)) return;
    JsonObject line("key", key.substr(session.key_prefix().size()));
    line.boolean(options.dry_run ? "would_remove" : "removed", kept == nullptr);
    if (kept != nullptr) line.bytes("reason", kept);
    output.answer(line.bytes("server", session.server_address(server)), {});
  };
  const auto fail = [&](const std::string& key, const Failure& failure) {
    status = worse(status, output.failed(key, failure));
  };
  SelectedRemoval removal({session.cluster(), session.clock(), session.random(), session.key_prefix(), 1},
                          removal_options(session, options), {show, fail});
  const RemovalReport& report = removal.report();
  const auto print = [&] {
    RemovalSummary::Removed removed{report.removed};
    removed.kept.number("changed", report.changed).number("held", report.held);
    if (options.older_than) removed.kept.number("used", report.used);
    removed.kept.number("gone", report.gone).number("failed", report.failed);
    JsonObject line = JsonObject().number("keys", report.listed).number("size_bytes", report.bytes);
    summary.print(line, removed, std::to_string(report.removed));
  };
  const auto remove = [&] {
    const auto results = list_keys_on(session, server_of(session, options), [&](const LiveKey& key) {
      session.expect_time();
      removal.take(key);
      return true;
    });
    status = worse(status, report_unlisted(session, session.placement()->pool(), results));
    removal.finish();
    if (report.failed > 0) session.expect_time();
    output.report_errors();
    if (report.changed > 0) status = worse(status, ExitStatus::no);
    print();
    return status;
  };
  output.buffered(true);
  return summary.around(selection_of(session, options), remove, print);
}

}  // namespace

ExitStatus item_remove(Session& session, const ItemOptions& options) {
  if (options.selected.any() || options.older_than) return remove_selected(session, options);
  if (options.keys.empty()) throw InvalidInput("no KEY given; see mcds item remove --help");
  return Remover(session, options).run();
}

}  // namespace mcds
