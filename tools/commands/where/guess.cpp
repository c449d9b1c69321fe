// mcds where --guess: which client put the keys where they are.
#include "common/placement/guess.hpp"

#include <algorithm>
#include <map>

#include "common/cluster/keys/probe.hpp"
#include "common/placement/profiles/profile.hpp"
#include "tools/cli/output.hpp"
#include "tools/cli/session.hpp"
#include "tools/commands/where/live_keys.hpp"
#include "tools/commands/where/options.hpp"

namespace mcds {

namespace {

constexpr std::size_t keys_per_trip = 16;
constexpr std::size_t most_shown = 5;
constexpr std::uint64_t usual_sample = 2000;
// From here on a profile explains the keys; what is missing may be left over from before or written by others.
constexpr double explains = 0.95;

// Two hundred profiles ask for the same few names, and a name server may be slow to say no.
Resolver remembering(const Resolver& resolver) {
  const auto once = [](std::function<std::optional<std::string>(const std::string&)> look_up) {
    auto known = std::make_shared<std::map<std::string, std::optional<std::string>>>();
    return [look_up = std::move(look_up), known](const std::string& name) {
      const auto found = known->find(name);
      return found != known->end() ? found->second : known->emplace(name, look_up(name)).first->second;
    };
  };
  return {once(resolver.address_of), once(resolver.name_of)};
}

// Asks every server for the keys; those found nowhere say nothing.
class Seeker {
 public:
  Seeker(Session& session, std::size_t most) : session_(session), most_(most) {}

  // Until enough are found.
  ExitStatus add(const std::string& key) {
    if (found_.size() < most_) keys_.push_back(key);
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
  Seeker seeker(session, options.sample.value_or(usual_sample));
  const ExitStatus status = for_each_key(
      session, options.keys, [&](const std::string& key) { return seeker.add(key); },
      [&] { return seeker.run(); });
  seeker.tell_silent_servers();
  if (seeker.nowhere() > 0) {
    session.output().warning(std::to_string(seeker.nowhere()) +
                             " of the keys are on no server and say nothing");
  }
  return {seeker.found(), status};
}

// To four digits.
double share_of(std::size_t part, std::size_t whole) {
  return static_cast<double>((part * 10000 + whole / 2) / whole) / 10000;
}

JsonObject describe(const Candidate& candidate, std::size_t keys, bool best) {
  const Profile& profile = profile_named(candidate.profiles.front());
  JsonObject line;
  line.bytes("profile", profile.name).real("agreement", share_of(candidate.explained, keys));
  line.number("explained", candidate.explained).number("keys", keys);
  const char* when = best ? "told_apart_after" : "behind_after";
  if (candidate.keys_needed) line.number(when, *candidate.keys_needed);
  if (!candidate.keys_needed) line.raw(when, "null");
  line.bytes("client", profile.client->name).bytes("selected_by", profile.selected_by);
  return line.strings("also", {candidate.profiles.begin() + 1, candidate.profiles.end()});
}

}  // namespace

ExitStatus where_guess(Session& session, const WhereOptions& options) {
  if (options.sample == std::uint64_t{0}) throw InvalidInput("--sample must be at least 1");
  const Pool& pool = session.placement()->pool();
  if (pool.size() < 2)
    throw InvalidInput("with one server every client puts every key there; name the whole pool");
  const auto [sightings, read] =
      options.keys.empty()
          ? Sought{live_sample(session, pool, options.sample.value_or(usual_sample)), ExitStatus::ok}
          : seek(session, options);
  if (sightings.empty()) {
    session.output().warning("no key was found on any server: there is nothing to guess from");
    return worse(read, ExitStatus::no);
  }
  PlacementOptions placing = session.placement_options();
  placing.resolver = remembering(placing.resolver);
  const auto candidates = guess_profiles(pool, placing, sightings);
  for (std::size_t i = 0; i < std::min(candidates.size(), most_shown); ++i) {
    session.output().answer(describe(candidates[i], sightings.size(), i == 0),
                            candidates[i].profiles.front());
  }
  const Candidate& best = candidates.front();
  const bool explained =
      static_cast<double>(best.explained) >= explains * static_cast<double>(sightings.size());
  return worse(read, explained && best.keys_needed ? ExitStatus::ok : ExitStatus::no);
}

}  // namespace mcds
