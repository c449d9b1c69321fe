// Implements mcds where --guess: finds which client put the keys where they are.

#include "common/cluster/keys/probe.hpp"
#include "common/placement/profiles/profile.hpp"
#include "tools/commands/where/options.hpp"

namespace mcds {

namespace {

constexpr std::size_t keys_per_trip = 16;
constexpr std::size_t max_shown = 5;
constexpr std::uint64_t usual_sample = 2000;

struct LocationSearch {
  KeyLocations locations;
  ExitStatus status = ExitStatus::ok;  // of lines that cannot be keys
};

// Reads the given keys from every server. A key that no server has is not used. Throws if no server answers.
LocationSearch locate(Session& session, const WhereOptions& options) {
  const KeySelection selection = options.selected.of(session);
  const std::uint64_t most = options.sample.value_or(usual_sample);
  LocationSearch search;
  std::vector<std::string> keys;
  std::uint64_t nowhere = 0;
  std::map<std::size_t, std::string> silent;  // servers without an answer, and why
  const auto note = [&](const std::string& key, const KeyCopies& copies) {
    KeyLocation location{key, {}};
    for (const KeyCopy& copy : copies) {
      if (copy.found()) location.servers.push_back(copy.server);
      if (copy.state == KeyCopy::State::unanswered) silent.emplace(copy.server, copy.error);
    }
    if (location.servers.empty())
      ++nowhere;
    else
      search.locations.push_back(std::move(location));
  };
  const auto probe = [&] {
    if (keys.empty()) return ExitStatus::ok;
    const auto copies = probe_keys(session.cluster(), keys);
    for (std::size_t i = 0; i < keys.size(); ++i) note(keys[i], copies[i]);
    keys.clear();
    return ExitStatus::ok;
  };
  const auto take = [&](const std::string& key) {
    if (search.locations.size() < most && selection.has(key)) keys.push_back(key);
    return keys.size() == keys_per_trip ? probe() : ExitStatus::ok;
  };
  search.status = for_each_key(session, {session.placement()}, options, take, probe);
  if (silent.size() == session.placement()->pool().size() && search.locations.empty())
    throw NotApplied(ErrorCode::unavailable, silent.begin()->second,
                     session.server_address(silent.begin()->first));
  for (const auto& [server, why] : silent)
    session.output().warning(session.server_address(server) + ": " + why);
  if (nowhere > 0)
    session.output().warning(std::to_string(nowhere) + " of the keys are on no server and are ignored");
  return search;
}

// Rounds to four digits.
double share_of(double part) {
  return static_cast<double>(static_cast<std::uint64_t>(part * 10000 + 0.5)) / 10000;
}

JsonObject describe(const Candidate& candidate, std::size_t keys, bool best, std::optional<double> share) {
  const Profile& profile = profile_named(candidate.profiles.front());
  JsonObject line =
      JsonObject("profile", profile.name)
          .real("agreement", share_of(static_cast<double>(candidate.explained) / static_cast<double>(keys)));
  line.number("explained", candidate.explained).number("keys", keys);
  line.real("by_chance", share_of(candidate.by_chance));
  const char* when = best ? "told_apart_after" : "behind_after";
  if (candidate.keys_needed) line.number(when, *candidate.keys_needed);
  if (!candidate.keys_needed) line.raw(when, "null");
  line.bytes("client", profile.client->name).bytes("selected_by", profile.selected_by);
  line.strings("also", {candidate.profiles.begin() + 1, candidate.profiles.end()});
  line.strings("alike_here_only", {candidate.alike_here.begin(), candidate.alike_here.end()});
  if (!candidate.prefix.empty()) line.bytes("prefix", candidate.prefix);
  if (share) line.real("share", *share);
  return line;
}

// Returns the profile's name, and its prefix if it has one.
std::string writer_name(const Candidate& candidate) {
  return std::string(candidate.profiles.front()) +
         (candidate.prefix.empty() ? "" : " with the prefix '" + visible(candidate.prefix) + "'");
}

// Returns the candidates that are not writers and explain more than chance does.
std::vector<std::size_t> others_than(const std::vector<Writer>& writers,
                                     const std::vector<Candidate>& candidates) {
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < candidates.size() && others.size() + writers.size() < max_shown; ++i) {
    const bool wrote = std::ranges::any_of(writers, [&](const Writer& writer) {
      return candidates[writer.candidate].profiles.front() == candidates[i].profiles.front();
    });
    if (!wrote && !candidates[i].is_chance()) others.push_back(i);
  }
  return others;
}

// Prints the writers first. The bare answer is a single name.
void print_candidates(Session& session, const std::vector<Candidate>& candidates,
                      const std::vector<Writer>& writers, std::size_t keys) {
  const bool one = session.output().mode() == OutputMode::value;
  const auto print = [&](std::size_t i, std::optional<double> share) {
    session.output().answer(describe(candidates[i], keys, i == 0, share), candidates[i].profiles.front());
  };
  for (const Writer& writer : std::span(writers).first(one ? 1 : writers.size()))
    print(writer.candidate, writers.size() > 1 ? std::optional(share_of(writer.share)) : std::nullopt);
  if (one) return;
  for (const std::size_t i : others_than(writers, candidates)) print(i, std::nullopt);
}

// Returns the second writer's profile that places keys as the first writer does, or else the first's.
const Profile& profile_to_set(const std::vector<Candidate>& candidates, const std::vector<Writer>& writers) {
  const auto& alike = candidates[writers.front().candidate].profiles;
  const Profile& second = profile_named(candidates[writers.back().candidate].profiles.front());
  const auto own = std::ranges::find_if(
      alike, [&](std::string_view name) { return profile_named(name).client == second.client; });
  return profile_named(own == alike.end() ? alike.front() : *own);
}

// Returns one profile of each other client.
std::vector<std::string_view> other_clients(const std::vector<std::string_view>& profiles) {
  std::vector<std::string_view> others;
  std::set<const Client*> clients;
  for (const std::string_view name : profiles) {
    if (clients.insert(profile_named(name).client).second) others.push_back(name);
  }
  others.erase(others.begin());
  return others;
}

// Prints the writers with their shares, the other candidates, and the setting to use, in lines of 80 columns.
void print_text(Session& session, const std::vector<Candidate>& candidates,
                const std::vector<Writer>& writers, std::size_t keys, bool certain) {
  std::string text;
  const auto line = [&](const std::string& words, std::size_t indent) {
    text += std::string(indent, ' ') + wrapped(words, indent, indent + 2) + '\n';
  };
  const bool told_apart = certain || writers.size() > 1;
  const auto percent = [](std::size_t part, std::size_t whole) {
    return format_percent(static_cast<double>(part) / static_cast<double>(whole));
  };
  for (const Writer& writer : writers) {
    const Candidate& candidate = candidates[writer.candidate];
    const Profile& profile = profile_named(candidate.profiles.front());
    line(writer_name(candidate) + (told_apart ? " wrote " : " may have written ") +
             (writers.size() > 1 ? format_percent(writer.share) : percent(candidate.explained, keys)) +
             " of " + std::to_string(keys) + " keys",
         0);
    const auto also = other_clients(candidate.profiles);
    line(std::string(profile.client->name) + ", " + profile.selected_by +
             (also.empty() ? "" : "; also " + joined(also, ", ")),
         2);
  }
  const auto others = others_than(writers, candidates);
  if (!others.empty()) line(told_apart ? "not them" : "or", 0);
  for (const std::size_t i : others)
    line(writer_name(candidates[i]) + ' ' + percent(candidates[i].explained, candidates[i].keys()) +
             ", by chance " + format_percent(candidates[i].by_chance),
         2);
  const Profile& set = profile_to_set(candidates, writers);
  const Candidate& first = candidates[writers.front().candidate];
  line("to place keys as " + writer_name(first) + " does, set in " + set.client->name, 0);
  text += std::string("  ") + set.selected_by + (first.prefix.empty() ? "" : " = " + visible(first.prefix)) +
          '\n';
  session.output().raw(text);
}

// Adds a second client that wrote many keys to other servers too. The first still explains every key.
std::vector<Writer> writer_of_others(std::vector<Candidate>& candidates, const Pool& pool,
                                     const PlacementOptions& placing, const KeyLocations& locations) {
  const KeyLocations others = other_copies(candidates.front(), pool, placing, locations);
  if (others.size() * 20 < locations.size()) return {};
  const auto of_others = guess_profiles(pool, placing, others);
  if (of_others.empty() || !is_certain(of_others)) return {};
  const auto explained = static_cast<double>(candidates.front().explained);
  const auto added = static_cast<double>(of_others.front().explained);
  candidates.push_back(of_others.front());
  return {{0, explained / (explained + added)}, {candidates.size() - 1, added / (explained + added)}};
}

// Returns the pool with localhost for 127.0.0.1, and the reverse: clients hash the name as it is written.
Pool spelled_otherwise(Pool pool) {
  for (Server& server : pool) {
    if (server.host == "localhost" || server.host == "127.0.0.1")
      server.host = server.host == "localhost" ? "127.0.0.1" : "localhost";
  }
  return pool;
}

// Returns a hint if the other spelling explains the keys, otherwise an empty string.
std::string spelling_hint(const Pool& pool, const PlacementOptions& placing, const KeyLocations& locations) {
  const Pool other = spelled_otherwise(pool);
  if (other == pool) return "";
  const auto candidates = guess_profiles(other, placing, locations);
  if (candidates.empty() || !is_certain(candidates)) return "";
  const auto changed =
      std::mismatch(pool.begin(), pool.end(), other.begin(),
                    [](const Server& one, const Server& another) { return one.host == another.host; });
  return "the client that wrote these keys calls " + changed.first->host + " " + changed.second->host +
         ": with that spelling " + std::string(candidates.front().profiles.front()) + " explains " +
         std::to_string(candidates.front().explained) + " of " + std::to_string(locations.size()) +
         " keys; list the servers as the client does";
}

std::string why_not(const std::vector<Candidate>& candidates, const std::vector<Writer>& writers,
                    const std::optional<OtherOrder>& other, std::size_t keys) {
  const Candidate& best = candidates.front();
  if (!writers.empty()) {
    std::string names;
    for (const Writer& writer : writers) {
      names += (names.empty() ? "" : ", ") + writer_name(candidates[writer.candidate]) + ' ' +
               format_percent(writer.share);
    }
    return "several clients wrote these keys: " + names;
  }
  if (best.explained * 20 < keys * 19)
    return "no profile explains these keys: the best explains " + std::to_string(best.explained) + " of " +
           std::to_string(keys) + "; list the servers as the client does, in its order, with its weights";
  if (other && is_certain(candidates))
    return "or " + std::string(other->profile) +
           " wrote them with the servers in this order: " + joined(other->servers, ",", &Server::label) +
           "; find out which client it is";
  if (!best.not_elsewhere.empty())
    return std::string(best.not_elsewhere.front()) + " places these keys as " +
           std::string(best.profiles.front()) +
           " does with this number of servers, but not with one more: find out which client it is";
  if (keys >= 10 && best.by_chance >= 0.9)
    return "nearly all of the " + std::to_string(keys) +
           " keys are on one server: their writer may know no other; list the servers that it has";
  return "too few keys to be certain (" + std::to_string(keys) + "); give more of them";
}

}  // namespace

void warn_of_another_client(Session& session, const Placement& placement) {
  const Pool& pool = placement.pool();
  if (pool.size() < 2) return;
  const PlacementOptions placing = session.placement_options();
  const KeyLocations locations = live_sample(session, pool, usual_sample, false);
  const auto candidates =
      locations.empty() ? std::vector<Candidate>() : guess_profiles(pool, placing, locations);
  const bool found = !candidates.empty() && is_certain(candidates);
  session.output().warning(
      "most live keys are not on the servers that " + std::string(placement.profile()) + " selects; " +
      (found ? "the keys match " + std::string(candidates.front().profiles.front()) + "; use --as " +
                   std::string(candidates.front().profiles.front())
             : "find the client that wrote them with: " + printed_command(session, "where --guess")));
}

ExitStatus where_guess(Session& session, const WhereOptions& options) {
  options.selected.check();
  if (options.sample == std::uint64_t{0}) throw InvalidInput("--sample must be at least 1");
  const Pool& pool = session.placement()->pool();
  if (pool.size() < 2)
    throw InvalidInput(
        "one server does not tell clients apart: they all place every key on it; give the whole pool");
  const auto [locations, read] =
      options.keys.empty() ? LocationSearch{live_sample(session, pool, options.sample.value_or(usual_sample),
                                                        true, options.selected.of(session))}
                           : locate(session, options);
  if (locations.empty()) {
    session.output().warning("no key was found on any server; give keys that the servers hold");
    return worse(read, ExitStatus::no);
  }
  const PlacementOptions placing = session.placement_options();
  auto candidates = guess_profiles(pool, placing, locations);
  auto writers = writers_of(candidates);
  if (writers.empty() && is_certain(candidates))
    writers = writer_of_others(candidates, pool, placing, locations);
  const auto others = other_order(candidates.front(), pool);
  const bool certain = is_certain(candidates) && writers.empty() && !others;
  const std::vector<Writer> shown = writers.empty() ? std::vector<Writer>{{0, 1}} : writers;
  const bool in_text = session.output().mode() == OutputMode::text;
  if (in_text) print_text(session, candidates, shown, locations.size(), certain);
  if (!in_text) print_candidates(session, candidates, shown, locations.size());
  const auto& best = candidates.front().profiles;
  if (std::ranges::any_of(
          best, [](std::string_view name) { return profile_named(name).rule.copies == every_server; }))
    session.output().warning("every key is on every server, so clients cannot be distinguished");
  if (!certain && !(in_text && !writers.empty())) {
    const std::string spelling = writers.empty() ? spelling_hint(pool, placing, locations) : std::string();
    session.output().warning(spelling.empty() ? why_not(candidates, writers, others, locations.size())
                                              : spelling);
  }
  return worse(read, certain ? ExitStatus::ok : ExitStatus::no);
}

}  // namespace mcds
