// mcds where --guess: which client put the keys where they are.
#include "common/placement/guess.hpp"

#include "common/cluster/keys/probe.hpp"
#include "common/placement/profiles/profile.hpp"
#include "tools/cli/printed_command.hpp"
#include "tools/commands/where/options.hpp"

namespace mcds {

namespace {

constexpr std::size_t keys_per_trip = 16;
constexpr std::size_t most_shown = 5;
constexpr std::uint64_t usual_sample = 2000;

// Asks every server for the keys; those found nowhere say nothing.
class Seeker {
 public:
  Seeker(Session& session, const WhereOptions& options)
      : session_(session),
        most_(options.sample.value_or(usual_sample)),
        selection_(options.selected.of(session)) {}

  // Until enough are found.
  ExitStatus add(const std::string& key) {
    if (found_.size() < most_ && selection_.has(key)) keys_.push_back(key);
    return keys_.size() == keys_per_trip ? run() : ExitStatus::ok;
  }

  ExitStatus run() {
    if (keys_.empty()) return ExitStatus::ok;
    const auto copies = probe_keys(session_.cluster(), keys_);
    for (std::size_t i = 0; i < keys_.size(); ++i) note(keys_[i], copies[i]);
    keys_.clear();
    return ExitStatus::ok;
  }

  const Sightings& found() const { return found_; }
  std::uint64_t nowhere() const { return nowhere_; }
  // Throws when no server answers.
  void tell_silent_servers() const {
    if (silent_.size() == session_.cluster().placement().pool().size() && found_.empty()) {
      throw NotApplied(ErrorCode::unavailable, silent_.begin()->second,
                       session_.server_address(silent_.begin()->first));
    }
    for (const auto& [server, why] : silent_)
      session_.output().warning(session_.server_address(server) + ": " + why);
  }

 private:
  void note(const std::string& key, const KeyCopies& copies) {
    Sighting sighting{key, {}};
    for (const KeyCopy& copy : copies) {
      if (copy.found()) sighting.servers.push_back(copy.server);
      if (copy.state == KeyCopy::State::unanswered) silent_.emplace(copy.server, copy.error);
    }
    if (sighting.servers.empty()) {
      ++nowhere_;
    } else {
      found_.push_back(std::move(sighting));
    }
  }

  Session& session_;
  std::size_t most_;
  KeySelection selection_;
  std::vector<std::string> keys_;
  Sightings found_;
  std::uint64_t nowhere_ = 0;
  std::map<std::size_t, std::string> silent_;
};

struct Sought {
  Sightings sightings;
  ExitStatus status;  // of the lines that could be no key
};

Sought seek(Session& session, const WhereOptions& options) {
  Seeker seeker(session, options);
  const ExitStatus status = for_each_key(
      session, {session.placement()}, options, [&](const std::string& key) { return seeker.add(key); },
      [&] { return seeker.run(); });
  seeker.tell_silent_servers();
  if (seeker.nowhere() > 0) {
    session.output().warning(std::to_string(seeker.nowhere()) +
                             " of the keys are on no server and are ignored");
  }
  return {seeker.found(), status};
}

// To four digits.
double share_of(double part) {
  return static_cast<double>(static_cast<std::uint64_t>(part * 10000 + 0.5)) / 10000;
}

JsonObject describe(const Candidate& candidate, std::size_t keys, bool best, std::optional<double> share) {
  const Profile& profile = profile_named(candidate.profiles.front());
  JsonObject line =
      JsonObject("profile", profile.name)
          .real("agreement", share_of(static_cast<double>(candidate.explained) / static_cast<double>(keys)));
  line.number("explained", candidate.explained).number("keys", keys);
  line.real("by_chance", share_of(candidate.by_luck));
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

// With the prefix, where it has one.
std::string writer_name(const Candidate& candidate) {
  return std::string(candidate.profiles.front()) +
         (candidate.prefix.empty() ? "" : " with the prefix '" + visible(candidate.prefix) + "'");
}

// Returns those that are no writers and explain more than chance does.
std::vector<std::size_t> others_than(const std::vector<Writer>& writers,
                                     const std::vector<Candidate>& candidates) {
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < candidates.size() && others.size() + writers.size() < most_shown; ++i) {
    const bool wrote = std::ranges::any_of(writers, [&](const Writer& writer) {
      return candidates[writer.candidate].profiles.front() == candidates[i].profiles.front();
    });
    if (!wrote && !candidates[i].is_luck()) others.push_back(i);
  }
  return others;
}

// Prints the writers first; a bare answer is one name.
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

// Returns the setting of the second writer's client that places keys as the first does, or else the first's.
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

// Prints who wrote what share, the others, and what to set, in lines of 80 columns.
void print_text(Session& session, const std::vector<Candidate>& candidates,
                const std::vector<Writer>& writers, std::size_t keys, bool certain) {
  std::string text;
  const auto line = [&](const std::string& words, std::size_t indent) {
    text += std::string(indent, ' ') + wrapped(words, indent, indent + 2) + '\n';
  };
  const auto percent = [](std::size_t part, std::size_t whole) {
    return format_percent(static_cast<double>(part) / static_cast<double>(whole));
  };
  for (const Writer& writer : writers) {
    const Candidate& candidate = candidates[writer.candidate];
    const Profile& profile = profile_named(candidate.profiles.front());
    line(writer_name(candidate) + (certain || writers.size() > 1 ? " wrote " : " may have written ") +
             (writers.size() > 1 ? format_percent(writer.share) : percent(candidate.explained, keys)) +
             " of " + std::to_string(keys) + " keys",
         0);
    const auto also = other_clients(candidate.profiles);
    line(std::string(profile.client->name) + ", " + profile.selected_by +
             (also.empty() ? "" : "; also " + joined(also, ", ")),
         2);
  }
  const auto others = others_than(writers, candidates);
  if (!others.empty()) line("not them", 0);
  for (const std::size_t i : others)
    line(writer_name(candidates[i]) + ' ' + percent(candidates[i].explained, candidates[i].keys()) +
             ", by chance " + format_percent(candidates[i].by_luck),
         2);
  const Profile& set = profile_to_set(candidates, writers);
  const Candidate& first = candidates[writers.front().candidate];
  line("to place keys as " + writer_name(first) + " does, set in " + set.client->name, 0);
  text += std::string("  ") + set.selected_by + (first.prefix.empty() ? "" : " = " + visible(first.prefix)) +
          '\n';
  session.output().raw(text);
}

// A second client that wrote many of the keys again elsewhere: the first one explains every key all the same.
// Adds it.
std::vector<Writer> writer_of_others(std::vector<Candidate>& candidates, const Pool& pool,
                                     const PlacementOptions& placing, const Sightings& sightings) {
  const Sightings others = other_copies(candidates.front(), pool, placing, sightings);
  if (others.size() * 20 < sightings.size()) return {};
  const auto of_others = guess_profiles(pool, placing, others);
  if (of_others.empty() || !is_certain(of_others)) return {};
  const auto explained = static_cast<double>(candidates.front().explained);
  const auto added = static_cast<double>(of_others.front().explained);
  candidates.push_back(of_others.front());
  return {{0, explained / (explained + added)}, {candidates.size() - 1, added / (explained + added)}};
}

// The pool with localhost for 127.0.0.1, and the reverse: clients hash the name as it is written.
Pool spelled_otherwise(Pool pool) {
  for (Server& server : pool) {
    if (server.host == "localhost" || server.host == "127.0.0.1")
      server.host = server.host == "localhost" ? "127.0.0.1" : "localhost";
  }
  return pool;
}

// What finds the client if only the spelling is wrong; empty: nothing does.
std::string spelling_hint(const Pool& pool, const PlacementOptions& placing, const Sightings& sightings) {
  const Pool other = spelled_otherwise(pool);
  if (other == pool) return "";
  const auto candidates = guess_profiles(other, placing, sightings);
  if (candidates.empty() || !is_certain(candidates)) return "";
  const auto changed =
      std::mismatch(pool.begin(), pool.end(), other.begin(),
                    [](const Server& one, const Server& another) { return one.host == another.host; });
  return "the client that wrote these keys calls " + changed.first->host + " " + changed.second->host +
         ": with that spelling " + std::string(candidates.front().profiles.front()) + " explains " +
         std::to_string(candidates.front().explained) + " of " + std::to_string(sightings.size()) +
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
  return "too few keys to be certain (" + std::to_string(keys) + "); give more of them";
}

}  // namespace

void warn_of_another_client(Session& session, const Placement& placement) {
  const Pool& pool = placement.pool();
  if (pool.size() < 2) return;
  const PlacementOptions placing = session.placement_options();
  const Sightings sightings = live_sample(session, pool, usual_sample, false);
  const auto candidates =
      sightings.empty() ? std::vector<Candidate>() : guess_profiles(pool, placing, sightings);
  const bool found = !candidates.empty() && is_certain(candidates);
  session.output().warning(
      "most live keys are not where " + std::string(placement.profile()) + " looks; " +
      (found ? "they are where " + std::string(candidates.front().profiles.front()) +
                   " puts them: give --as " + std::string(candidates.front().profiles.front())
             : "find the client that wrote them with: " + printed_command(session, "where --guess")));
}

ExitStatus where_guess(Session& session, const WhereOptions& options) {
  options.selected.check();
  if (options.sample == std::uint64_t{0}) throw InvalidInput("--sample must be at least 1");
  const Pool& pool = session.placement()->pool();
  if (pool.size() < 2)
    throw InvalidInput("with one server, every client places every key there; give the whole pool");
  const auto [sightings, read] =
      options.keys.empty() ? Sought{live_sample(session, pool, options.sample.value_or(usual_sample), true,
                                                options.selected.of(session)),
                                    ExitStatus::ok}
                           : seek(session, options);
  if (sightings.empty()) {
    session.output().warning("no key was found on any server; give keys that the servers hold");
    return worse(read, ExitStatus::no);
  }
  const PlacementOptions placing = session.placement_options();
  auto candidates = guess_profiles(pool, placing, sightings);
  auto writers = writers_of(candidates);
  if (writers.empty() && is_certain(candidates))
    writers = writer_of_others(candidates, pool, placing, sightings);
  const auto others = other_order(candidates.front(), pool);
  const bool certain = is_certain(candidates) && writers.empty() && !others;
  const std::vector<Writer> shown = writers.empty() ? std::vector<Writer>{{0, 1}} : writers;
  const bool in_text = session.output().mode() == OutputMode::text;
  if (in_text) print_text(session, candidates, shown, sightings.size(), certain);
  if (!in_text) print_candidates(session, candidates, shown, sightings.size());
  const auto& best = candidates.front().profiles;
  if (std::ranges::any_of(
          best, [](std::string_view name) { return profile_named(name).rule.copies == every_server; }))
    session.output().warning("every key is on every server");
  if (!certain && !(in_text && !writers.empty())) {
    const std::string spelling = writers.empty() ? spelling_hint(pool, placing, sightings) : std::string();
    session.output().warning(spelling.empty() ? why_not(candidates, writers, others, sightings.size())
                                              : spelling);
  }
  return worse(read, certain ? ExitStatus::ok : ExitStatus::no);
}

}  // namespace mcds
