// Tests of a server's version, uptime and clock.
#include <algorithm>
#include <array>
#include <cmath>

#include "common/base/bytes.hpp"
#include "common/base/units.hpp"
#include "common/cluster/transport.hpp"
#include "common/operations/doctor/check_functions.hpp"

namespace mcds::doctor {

namespace {

struct KnownFault {
  std::uint32_t from, mended;  // releases, as of release_of()
  Severity severity;
  enum class Where { anywhere, udp, proxy } where;
  const char* what;
  const char* meanwhile;  // advice until the upgrade
};

// Source: memcached's release notes, as of 2026-11-23.
constexpr std::array known_faults{
    KnownFault{10000, 10433, problem, KnownFault::Where::anywhere,
               "a client can run code in it by the binary protocol (CVE-2016-8704 to 8706)",
               "start it with -B ascii, and let only trusted clients reach its port"},
    KnownFault{10433, 10437, warning, KnownFault::Where::anywhere,
               "items can be freed twice, which blocks or crashes it (CVE-2018-1000127)",
               "let only trusted clients reach its port"},
    KnownFault{10500, 10514, warning, KnownFault::Where::anywhere,
               "a client can crash it by an `lru` command (CVE-2019-11596)",
               "let only trusted clients reach its port"},
    KnownFault{10515, 10516, problem, KnownFault::Where::anywhere,
               "storing items whose flags are 0 overwrites memory",
               "nothing helps but an older or a newer release"},
    KnownFault{10600, 10602, problem, KnownFault::Where::anywhere,
               "a client can crash it by a header of the binary protocol (CVE-2020-10931)",
               "start it with -B ascii, and let only trusted clients reach its port"},
    KnownFault{10600, 10603, problem, KnownFault::Where::anywhere, "a meta get can crash it",
               "use classic commands (--protocol classic), in other clients too"},
    KnownFault{10600, 10608, problem, KnownFault::Where::udp,
               "an upload in several UDP packets crashes it (CVE-2022-48571)", "start it with -U 0"},
    KnownFault{10600, 10622, warning, KnownFault::Where::proxy,
               "requests to its proxy can overflow a buffer (CVE-2023-46852, 46853)",
               "let only trusted clients reach its proxy"},
    KnownFault{10609, 10619, note, KnownFault::Where::anywhere,
               "a client that reads `lru_crawler metadump hash` slowly stops it for all clients",
               "list keys only with programs that read without a pause"},
    KnownFault{10609, 10626, note, KnownFault::Where::anywhere,
               "a client that leaves at the end of a dump of keys can crash it",
               "let each dump of keys come to its end"},
};

std::string release_text(std::uint32_t release) {
  return std::to_string(release / 10000) + '.' + std::to_string(release / 100 % 100) + '.' +
         std::to_string(release % 100);
}

bool applies(const KnownFault& fault, const ServerSnapshot& snapshot, std::uint32_t release) {
  if (release < fault.from || release >= fault.mended) return false;
  if (fault.where == KnownFault::Where::udp)
    return snapshot.before.settings.number("udpport").value_or(0) != 0;
  return fault.where != KnownFault::Where::proxy || snapshot.is_proxy();
}

// Returns the features of a release that clients may depend on.
std::string abilities_of(std::uint32_t release) {
  return std::string(release >= 10408 ? "touch " : "") + (release >= 10426 ? "watch " : "") +
         (release >= 10431 ? "metadump " : "") + (release >= 10600 ? "meta " : "");
}

template <typename Key>
std::map<Key, std::vector<std::size_t>> by_release(const Examination& seen, Key (*key)(std::uint32_t)) {
  std::map<Key, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (const std::uint32_t release = release_of(seen.snapshots[i])) groups[key(release)].push_back(i);
  }
  return groups;
}

JsonObject versions_in(const Examination& seen, const std::vector<std::size_t>& servers) {
  std::map<std::string, std::uint64_t> versions;
  for (const std::size_t server : servers) ++versions[seen.snapshots[server].version];
  JsonObject counts;
  for (const auto& [version, count] : versions) counts.number(version, count);
  return counts;
}

// Returns the lead of a server's clock over ours, in seconds. It may stand still for up to 2 s.
std::optional<double> ahead_at(const Reading& look) {
  const auto time = look.stats.number("time");
  if (!time) return std::nullopt;
  const double theirs = static_cast<double>(*time);
  const auto seconds = [](WallTime at) {
    return std::chrono::duration<double>(at.time_since_epoch()).count();
  };
  constexpr double least = 2, lag = 1.5;
  if (theirs - seconds(look.answered) > least) return theirs - seconds(look.answered);
  if (seconds(look.asked) - theirs > least + lag) return theirs - seconds(look.asked);
  return 0;
}

// Returns the offset that both readings agree on, or 0.
double ahead(const ServerSnapshot& snapshot) {
  const auto first = ahead_at(snapshot.before), second = ahead_at(snapshot.after);
  if (!snapshot.reported() || !first || !second || *first * *second <= 0) return 0;
  return std::abs(*first) < std::abs(*second) ? *first : *second;
}

// Returns true if all servers have the same offset, so that our own clock is wrong.
bool all_agree(const Examination& seen) {
  double least = 1e300, most = -1e300;
  std::size_t reported = 0;
  for (const ServerSnapshot& snapshot : seen.snapshots) {
    if (!snapshot.reported()) continue;
    ++reported;
    least = std::min(least, ahead(snapshot));
    most = std::max(most, ahead(snapshot));
  }
  return reported > 1 && least * most > 0 && most - least <= 3;
}

}  // namespace

std::uint32_t release_of(const ServerSnapshot& snapshot) {
  // Other programs number their versions differently.
  if (snapshot.before.stats.known() && !snapshot.before.stats.number("limit_maxbytes")) return 0;
  ServerProtocol protocol;
  protocol.take_version(snapshot.version);
  return protocol.release < 100'000 ? protocol.release : 0;
}

void known_fault(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  const std::uint32_t release = release_of(snapshot);
  const KnownFault* worst = nullptr;
  for (const KnownFault& fault : known_faults) {
    if (applies(fault, snapshot, release) && (worst == nullptr || fault.severity > worst->severity))
      worst = &fault;
  }
  if (worst == nullptr) return;
  diagnosis.add(JsonObject("version", snapshot.version)
                    .bytes("fault", worst->what)
                    .bytes("mended_in", release_text(worst->mended))
                    .bytes("meanwhile", worst->meanwhile),
                worst->severity);
}

void mixed_abilities(const Examination& seen, Diagnosis& diagnosis) {
  const auto groups = by_release<std::string>(seen, abilities_of);
  if (groups.size() < 2) return;
  // Servers with fewer features than others.
  std::vector<std::size_t> poorer, all;
  std::size_t most = 0;
  for (const auto& [abilities, servers] : groups) most = std::max(most, abilities.size());
  for (const auto& [abilities, servers] : groups) {
    all.insert(all.end(), servers.begin(), servers.end());
    if (abilities.size() < most) poorer.insert(poorer.end(), servers.begin(), servers.end());
  }
  diagnosis.add_one(poorer, JsonObject().object("versions", versions_in(seen, all)), warning);
}

void mixed_versions(const Examination& seen, Diagnosis& diagnosis) {
  const auto groups = by_release<std::uint32_t>(seen, [](std::uint32_t release) { return release; });
  if (groups.size() < 2) return;
  std::vector<std::size_t> all;
  for (const auto& [release, servers] : groups) all.insert(all.end(), servers.begin(), servers.end());
  diagnosis.add_one(all, JsonObject().object("versions", versions_in(seen, all)), note);
}

void restarted(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  if (!snapshot.restarted() || snapshot.is_balanced()) return;
  JsonObject evidence;
  if (const auto uptime = snapshot.number("uptime")) evidence.number("uptime_s", *uptime);
  diagnosis.add(evidence.number("items", snapshot.count("curr_items")), problem);
}

void restarted_lately(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  const auto uptime = snapshot.before.stats.number("uptime");
  if (!uptime || *uptime >= hour_s || snapshot.restarted()) return;
  diagnosis.add(JsonObject().number("uptime_s", *uptime), note, -static_cast<double>(*uptime));
}

void clock_off(const Examination& seen, Diagnosis& diagnosis) {
  if (all_agree(seen)) return;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const double off = ahead(seen.snapshots[i]);
    if (off != 0) diagnosis.add(i, JsonObject().raw("ahead_s", format_fixed(off, 0)), warning, std::abs(off));
  }
}

void clock_here(const Examination& seen, Diagnosis& diagnosis) {
  if (!all_agree(seen)) return;
  const auto first = std::ranges::find_if(seen.snapshots, &ServerSnapshot::reported);
  diagnosis.add_one({}, JsonObject().raw("behind_s", format_fixed(ahead(*first), 0)), warning);
}

void clock_stands(const ServerSnapshot& snapshot, Diagnosis& diagnosis) {
  constexpr double allowed = 2.2;  // the clock ticks once a second
  if (!snapshot.reported() || snapshot.restarted()) return;
  const auto was = snapshot.before.stats.number("time"), is = snapshot.after.stats.number("time");
  if (!was || !is) return;
  const double went = static_cast<double>(*is) - static_cast<double>(*was);
  if (std::abs(snapshot.seconds() - went) <= allowed) return;
  diagnosis.add(
      JsonObject().raw("went_s", format_fixed(went, 0)).raw("real_s", format_fixed(snapshot.seconds(), 1)),
      warning, std::abs(snapshot.seconds() - went));
}

}  // namespace mcds::doctor
