// mcds item remove: keys that are typed, and lines as item list prints them.
#include <algorithm>

#include "common/base/bytes.hpp"
#include "tools/cli/key_rules.hpp"
#include "tools/cli/session.hpp"
#include "tools/commands/item/places.hpp"

namespace mcds {

namespace {

// One key, and what is sent for it.
struct Target {
  std::string key;
  std::vector<Request> requests;
};

std::optional<std::string> text_of(const std::string& object, const std::string& name) {
  if (const auto plain = json_field(object, name)) return json_unquote(*plain);
  const auto encoded = json_field(object, name + "_b64");
  const auto digits = encoded ? json_unquote(*encoded) : std::nullopt;
  return digits ? parse_base64(*digits) : std::nullopt;
}

// A line as list prints it: the item it saw, and no other. nullopt: it is a key.
std::optional<Target> listed(Session& session, const std::string& line) {
  if (!line.starts_with("{\"key")) return std::nullopt;
  const auto key = text_of(line, "key");
  const auto server = text_of(line, "server");
  const auto cas = text_of(line, "cas");
  if (!key || !server || !cas) return std::nullopt;
  const std::size_t index = server_named(session.placement()->pool(), *server, "\"server\"");
  const std::uint64_t unique = parse_u64(*cas).value_or(0);
  std::string whole = session.key_prefix() + *key;
  Request request =
      unique == 0 ? Request::remove(std::move(whole)) : Request::remove_if(std::move(whole), {unique});
  return Target{*key, {std::move(request).on(index)}};
}

class Remover {
 public:
  Remover(Session& session, const ItemOptions& options) : session_(session), options_(options) {
    if (options.on && options.everywhere) throw InvalidInput("give either --on or --everywhere, not both");
    if (options.yes && options.dry_run) throw InvalidInput("give either --yes or --dry-run, not both");
    if (options.on) on_ = server_named(session.placement()->pool(), *options.on, "--on");
  }

  ExitStatus remove(std::span<const std::string> names, const NameTasks::Fail& fail) {
    const std::vector<Target> targets = targets_of(names);
    std::vector<Request> requests;
    for (const Target& target : targets) {
      for (const Request& request : target.requests) requests.push_back(as_asked(request));
    }
    const std::vector<Reply> replies = session_.cluster().execute(requests);
    ExitStatus status = ExitStatus::ok;
    auto next = replies.begin();
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const auto end = next + static_cast<std::ptrdiff_t>(targets[i].requests.size());
      const std::span<const Reply> of_target(next, end);
      next = end;
      const auto failed =
          std::find_if(of_target.begin(), of_target.end(), [](const Reply& reply) { return reply.failed(); });
      if (failed != of_target.end())
        fail(i, failure_of(session_, *failed));
      else
        status = worse(status, print(targets[i], of_target));
    }
    return status;
  }

  // Whether the line is one of item list.
  bool is_listed(const std::string& line) const { return listed(session_, line).has_value(); }

 private:
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
      const auto own = std::find_if(item.places.begin(), item.places.end(),
                                    [&](const ItemPlace& place) { return place.server == server; });
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
      const Request& request = target.requests[i];
      const bool other =
          replies[i].outcome == Outcome::hit && request.op == Op::remove_if && replies[i].cas != request.cas;
      changed = changed || other || replies[i].outcome == Outcome::exists;
      if (!other && (replies[i].outcome == Outcome::hit || replies[i].outcome == Outcome::deleted))
        servers.push_back(session_.server_address(replies[i].server));
    }
    const bool yes = !servers.empty();
    JsonObject line;
    line.bytes("key", target.key).boolean(options_.dry_run ? "would_remove" : "removed", yes);
    if (!yes) line.bytes("reason", changed ? "changed" : "missing");
    line.bytes("server", yes ? servers.front() : session_.server_address(replies.front().server));
    if (servers.size() > 1) line.strings("servers", servers);
    session_.output().answer(line, yes ? "1" : "0");
    return yes ? ExitStatus::ok : ExitStatus::no;
  }

  Session& session_;
  const ItemOptions& options_;
  std::optional<std::size_t> on_;
};

}  // namespace

ExitStatus item_remove(Session& session, const ItemOptions& options) {
  Remover remover(session, options);
  return for_items(
      session, options,
      [&](std::span<const std::string> names, const NameTasks::Fail& fail) {
        return remover.remove(names, fail);
      },
      [&](const std::string& name) { return remover.is_listed(name); });
}

}  // namespace mcds
