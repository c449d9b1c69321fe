// mcds item remove: keys that are typed, and lines as item list prints them.
#include <map>

#include "common/operations/removal.hpp"
#include "tools/commands/item/places.hpp"

namespace mcds {

namespace {

// What item list --digest saw of an item.
struct Seen {
  std::string digest;
  std::uint64_t flags = 0;
  std::optional<WallTime> end = {};  // by its server's clock; unset: never
};

// One key, and what is sent for it.
struct Target {
  std::string key;
  std::vector<Request> requests;
  std::optional<Seen> seen = {};
};

// A target that has another cas than when it was listed, and what its removal said.
struct Doubt {
  const Target* target;
  Reply* reply;
};
constexpr int most_looks = 4;

// By which two ends may differ that are the same: a server's clock shows whole seconds.
constexpr auto tick = std::chrono::seconds(2);

// A line as list prints it: the item it saw, and no other. nullopt: it is a key.
std::optional<Target> listed(Session& session, const std::string& line) {
  if (!line.starts_with("{\"key")) return std::nullopt;
  const auto key = json_bytes(line, "key");
  const auto server = json_bytes(line, "server");
  const auto cas = json_bytes(line, "cas");
  if (!key || !server || !cas) return std::nullopt;
  const std::size_t index = server_named(session.placement()->pool(), *server, "\"server\"");
  const std::uint64_t unique = parse_u64(*cas).value_or(0);
  std::optional<Seen> seen;
  if (const auto digest = json_bytes(line, "digest")) {
    seen = {.digest = *digest, .flags = parse_u64(json_field(line, "flags").value_or("")).value_or(0)};
    if (const auto end = json_bytes(line, "expires_at")) seen->end = parse_time(*end, {}, "\"expires_at\"");
  }
  std::string whole = session.key_prefix() + *key;
  Request request =
      unique == 0 ? Request::remove(std::move(whole)) : Request::remove_if(std::move(whole), {unique});
  return Target{*key, {std::move(request).on(index)}, std::move(seen)};
}

class Remover {
 public:
  Remover(Session& session, const ItemOptions& options)
      : session_(session), options_(options), summary_(session, options.audit) {
    if (options.rate) throw InvalidInput("--rate needs a selection: --prefix, --match or --older-than");
    if (options.on && options.everywhere) throw InvalidInput("give either --on or --everywhere, not both");
    if (options.yes && options.dry_run) throw InvalidInput("give either --yes or --dry-run, not both");
    if (options.on) on_ = server_named(session.placement()->pool(), *options.on, "--on");
  }

  ExitStatus run() {
    const auto removes = [this](const Window<std::string>& names) { remove(names); };
    const auto listed = [this](const std::string& line) { return is_listed(line); };
    return summary_.around(
        selection(),
        [&] {
          const ExitStatus status = for_items(session_, options_, removes, listed);
          finish();
          return status;
        },
        [this] {
          if (removed_ + kept_.size() > 0) finish();
        });
  }

 private:
  void remove(const Window<std::string>& names) {
    const std::vector<Target> targets = targets_of(names.items);
    std::vector<Request> requests;
    for (const Target& target : targets) {
      for (const Request& request : target.requests) requests.push_back(as_asked(request));
    }
    std::vector<Reply> replies = session_.cluster().execute(requests);
    look_closer(targets, replies);
    auto next = replies.begin();
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const auto end = next + static_cast<std::ptrdiff_t>(targets[i].requests.size());
      const std::span<const Reply> of_target(next, end);
      next = end;
      const auto failed = std::ranges::find_if(of_target, &Reply::failed);
      if (failed != of_target.end()) {
        names.fail(i, failure_of(session_, *failed));
        ++kept_["failed"];
      } else {
        names.note(print(targets[i], of_target));
      }
    }
  }

  // Whether the line is one of item list.
  bool is_listed(const std::string& line) const { return listed(session_, line).has_value(); }

  // Of lines of standard input; of typed keys the answers say it all, and only the audit file has it.
  void finish() {
    RemovalSummary::Removed removed{.keys = removed_, .dry_run = options_.dry_run};
    for (const auto& [reason, count] : kept_) removed.kept.number(reason, count);
    removed.selection = selection();
    if (!of_lines() || session_.output().mode() == OutputMode::value) return summary_.keep({}, removed);
    if (undecided_ > 0)
      session_.output().warning(
          std::to_string(undecided_) +
          " of these have another cas than when they were listed, and stay: they were written, or their "
          "server moved them in its memory; lines of item list --digest tell these apart");
    summary_.print({}, removed, {});
  }

  bool of_lines() const { return options_.keys.front() == "-"; }

  JsonObject selection() const {
    return of_lines() ? JsonObject("keys", "-") : JsonObject().strings("keys", options_.keys);
  }

  // Whether what was listed has another cas now.
  static bool has_changed(const Request& request, const Reply& reply) {
    const bool other =
        reply.outcome == Outcome::hit && request.op == Op::remove_if && reply.cas != request.cas;
    return other || reply.outcome == Outcome::exists;
  }

  // Where only the cas differs, the item is the one that was listed: a server that moves items in its memory
  // gives them another cas, perhaps once more before it can be removed by that.
  void look_closer(const std::vector<Target>& targets, std::vector<Reply>& replies) {
    std::vector<Doubt> doubts;
    auto next = replies.begin();
    for (const Target& target : targets) {
      if (target.seen && has_changed(target.requests.front(), *next)) doubts.push_back({&target, &*next});
      next += static_cast<std::ptrdiff_t>(target.requests.size());
    }
    for (int look = 0; look < most_looks && !doubts.empty(); ++look) look_once(doubts);
  }

  // Leaves those that have another cas again.
  void look_once(std::vector<Doubt>& doubts) {
    std::vector<Request> probes;
    for (const Doubt& doubt : doubts) {
      const Request& asked = doubt.target->requests.front();
      probes.push_back(Request::probe(asked.key, *asked.server));
    }
    const std::vector<std::int64_t> times = server_times(session_.cluster(), session_.clock());
    const std::vector<Reply> now = session_.cluster().execute(probes);
    std::vector<Request> removals;
    std::vector<Doubt> same;
    for (std::size_t i = 0; i < doubts.size(); ++i) {
      if (!is_same(*doubts[i].target->seen, now[i], WallTime(std::chrono::seconds(times[*probes[i].server]))))
        continue;
      if (options_.dry_run) doubts[i].reply->cas = doubts[i].target->requests.front().cas;
      if (options_.dry_run) continue;
      same.push_back(doubts[i]);
      removals.push_back(Request::remove_if(probes[i].key, now[i].cas).on(*probes[i].server));
    }
    std::vector<Reply> removed = session_.cluster().execute(removals);
    for (std::size_t i = 0; i < same.size(); ++i) *same[i].reply = std::move(removed[i]);
    std::erase_if(same, [](const Doubt& one) { return one.reply->outcome != Outcome::exists; });
    doubts = std::move(same);
  }

  static bool is_same(const Seen& seen, const Reply& now, WallTime server_time) {
    if (now.outcome != Outcome::hit || now.flags != seen.flags || md5_hex(now.value) != seen.digest)
      return false;
    if (!now.age.ttl) return true;
    const bool never = now.age.ttl->count() < 0;
    if (never || !seen.end) return never == !seen.end;
    const auto apart = server_time + *now.age.ttl - *seen.end;
    return apart <= tick && apart >= -tick;
  }

  Request as_asked(const Request& request) const {
    if (!options_.dry_run) return request;
    return Request::gets(request.key).on(*request.server);
  }

  std::vector<Target> targets_of(std::span<const std::string> names) {
    std::vector<Target> targets;
    for (const std::string& name : names) {
      if (auto target = listed(session_, name)) {
        if (!options_.yes && !options_.dry_run)
          throw InvalidInput("lines of item list need --dry-run, to see what would be removed, or --yes");
        targets.push_back(std::move(*target));
      } else {
        targets.push_back(target_of(items_of(session_, std::span(&name, 1)).front()));
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

  ExitStatus print(const Target& target, std::span<const Reply> replies) {
    std::vector<std::string> servers;
    bool changed = false;
    for (std::size_t i = 0; i < replies.size(); ++i) {
      const bool other = has_changed(target.requests[i], replies[i]);
      changed = changed || other;
      if (!other && (replies[i].outcome == Outcome::hit || replies[i].outcome == Outcome::deleted))
        servers.push_back(session_.server_address(replies[i].server));
    }
    const bool yes = !servers.empty();
    JsonObject line =
        JsonObject("key", target.key).boolean(options_.dry_run ? "would_remove" : "removed", yes);
    const char* reason = changed ? "changed" : "missing";
    if (!yes) line.bytes("reason", reason);
    yes ? ++removed_ : ++kept_[reason];
    undecided_ += changed && !target.seen ? 1 : 0;
    line.bytes("server", yes ? servers.front() : session_.server_address(replies.front().server));
    if (servers.size() > 1) line.strings("servers", servers);
    return answer_yes(session_, line, yes);
  }

  Session& session_;
  const ItemOptions& options_;
  RemovalSummary summary_;
  std::optional<std::size_t> on_;
  std::uint64_t removed_ = 0, undecided_ = 0;
  std::map<std::string, std::uint64_t> kept_;  // by reason
};

}  // namespace

ExitStatus item_remove(Session& session, const ItemOptions& options) {
  if (options.selected.any() || options.older_than) return item_remove_selected(session, options);
  if (options.keys.empty()) throw InvalidInput("no KEY given; see mcds item remove --help");
  return Remover(session, options).run();
}

}  // namespace mcds
