#include "common/operations/doctor/checks.hpp"

#include <algorithm>
#include <array>

#include "common/base/text.hpp"
#include "common/operations/doctor/check_functions.hpp"

namespace mcds::doctor {

namespace {

// Returns the check for a finding of `ring check`, which needs no server.
constexpr Check of_ring(const char* name, Severity severity, const char* sentence) {
  return {name,
          severity,
          "placement",
          Needs::nothing,
          ring_finding,
          sentence,
          "mcds --as PROFILE ring check -o text"};
}

constexpr std::array checks{
    Check{"down", problem, "reach", Needs::nothing, failed<Cause::down>,
          "A server cannot be reached; clients miss its share of the keys.",
          "start it, or check its address: mcds -s SERVER servers"},
    Check{"silent", problem, "reach", Needs::nothing, silent,
          "A server takes connections and does not answer: it is stopped, swapping, overloaded or out of "
          "connections. Clients wait for it.",
          "look at the process on its machine; if it is stopped, kill -CONT, else restart it"},
    Check{"wrong_service", problem, "reach", Needs::nothing, failed<Cause::foreign>,
          "What answers there is not memcached's text protocol: another service, TLS missing on one side, or "
          "-B binary.",
          "correct the port or tls:// in the list: mcds -s SERVER servers"},
    Check{"login_refused", problem, "reach", Needs::nothing, failed<Cause::login>,
          "A server wants a login that it was not given, or rejects the one that it was given.",
          "give --user and --password-file, or correct the password on one side"},
    Check{"login_unused", problem, "reach", Needs::nothing, login_unused,
          "A login is configured, and a server answers anybody without one: it was started without -Y, or it "
          "is another one.",
          "start it with -Y FILE, or leave out --user for it"},
    Check{"certificate_refused", problem, "reach", Needs::nothing, failed<Cause::certificate>,
          "A certificate is not accepted, by us or by the server: another name, another CA, or it has ended.",
          "compare what it shows: openssl s_client -showcerts -connect SERVER </dev/null"},
    Check{"certificate_ends", problem, "reach", Needs::nothing, certificate_ends,
          "A server's certificate ends within 14 days; then no client gets through.",
          "renew it, and tell the server: printf 'refresh_certs\\r\\nquit\\r\\n' | openssl s_client -quiet "
          "-connect SERVER"},
    Check{"slow", warning, "reach", Needs::nothing, slow,
          "A server takes more than five times as long to answer as most of the pool, and more than 2 ms.",
          "compare: mcds servers --every 1s -o text; mcds -s SERVER item hot --for 10s"},
    Check{"same_server", problem, "reach", Needs::nothing, same_server,
          "Entries of the list are one server: it gets the keys of all of them, and copies there are no "
          "copies.",
          "list it once; for a larger share give it a weight"},
    Check{"several_addresses", warning, "reach", Needs::nothing, several_addresses,
          "A name stands for several addresses: each connection may reach another server, and keys seem to "
          "come and go.",
          "list each address by itself, or look them up: --servers-from dns:SERVER"},
    Check{"balancer", problem, "reach", Needs::stats, balancer,
          "Two connections to one address met two servers: a balancer stands there, and what is stored by "
          "one connection is missed by the next.",
          "list the servers behind it (in Kubernetes, the names of a headless service)"},
    Check{"restarted", problem, "versions", Needs::stats, restarted,
          "A server was restarted between the two reads: it has lost what it held, and may do so again.",
          "look for why it ended in its machine's log (journalctl -u memcached, dmesg)"},
    Check{"restarted_lately", note, "versions", Needs::stats, restarted_lately,
          "A server was started within the last hour: until then what it held was lost, and it fills again.",
          "mcds -s SERVER servers --every 1s -o text"},
    Check{"known_fault", problem, "versions", Needs::nothing, known_fault,
          "This release of memcached is known to crash or to block; the table of faults is of 2026-11-23.",
          "upgrade to the release that mended it, or later; until then: INSTEAD"},
    Check{"mixed_abilities", warning, "versions", Needs::nothing, mixed_abilities,
          "Some servers are too old for commands that the others know: clients fail on a part of the keys.",
          "upgrade them: mcds servers -o text"},
    Check{"mixed_versions", note, "versions", Needs::nothing, mixed_versions,
          "Not all servers run the same release.", "mcds servers -o text"},
    Check{
        "clock_off", warning, "clocks", Needs::stats, clock_off,
        "A server's clock is more than 2 seconds off: items with an absolute expiry end early or late there.",
        "run chrony or ntpd on its machine, and restart memcached, which keeps the time of its start"},
    Check{"clock_here", warning, "clocks", Needs::stats, clock_here,
          "All servers agree on a time more than 2 seconds away from this machine's: this machine's clock is "
          "off.",
          "timedatectl"},
    Check{"clock_stands", warning, "clocks", Needs::stats, clock_stands,
          "A server's time did not go on as ours did: it was stopped, its virtual machine was, or its clock "
          "is set back.",
          "look for pauses of its machine; nothing expires while its clock stands"},
    Check{"drift", warning, "configuration", Needs::settings, drift,
          "Servers of one pool are started with different options, so the same request has another outcome "
          "on some of them.",
          "mcds servers --stats settings -o text"},
    Check{"limits_low", warning, "configuration", Needs::settings, limits_low,
          "A limit is below memcached's default: memory (-m 64) or connections (-c 1024).",
          "mcds servers --stats settings -o text"},
    Check{"small_items_only", warning, "configuration", Needs::settings, small_items_only,
          "Items above a limit (-I) that is lower than the usual 1 MiB are refused; a set also removes the "
          "old value.",
          "start it with -I 1m"},
    Check{"no_cas", note, "configuration", Needs::settings, no_cas,
          "A server was started with -C: locks, arrays and everything that compares before it changes is "
          "refused there.",
          "start it without -C"},
    Check{"dump_off", warning, "configuration", Needs::settings, dump_off,
          "A server lists no keys (-X): item list, ring move and where --live do not see what it holds.",
          "start it without -X, or accept this"},
    Check{"stats_off", warning, "configuration", Needs::nothing, stats_off,
          "A server gives no statistics, though others do: it is hidden behind something, or is another "
          "program.",
          "mcds -s SERVER servers --stats"},
    Check{"proxy_among_servers", warning, "configuration", Needs::nothing, proxy_among_servers,
          "A proxy stands in the list. Statistics are its own, and beside real servers keys are placed twice "
          "over.",
          "list the servers behind it, or only the proxy: --servers-from reads its configuration, see "
          "mcds-sources(7)"},
    Check{"flush_scheduled", problem, "configuration", Needs::settings, flush_scheduled,
          "A flush_all with a delay waits in a server: at that time everything that it holds is gone.",
          "save what it holds before that time: mcds item save before-flush.saved"},
    Check{"flushed", warning, "configuration", Needs::settings, flushed,
          "Somebody has emptied a server with flush_all.",
          "find the client; start servers with -F to refuse it"},
    Check{"udp_open", warning, "configuration", Needs::settings, udp_open,
          "A server answers UDP, which strangers use to flood others in its name (CVE-2018-1000115).",
          "start it with -U 0"},
    Check{"detail_on", warning, "configuration", Needs::settings, detail_on,
          "`stats detail` is on: every request pays for statistics by prefix, and their memory grows without "
          "limit.",
          "printf 'stats detail off\\r\\nquit\\r\\n' | NETCAT"},
    Check{"verbose", warning, "configuration", Needs::settings, verbose,
          "A server was started with -v or -vv and writes its work to a log, -vv each request.",
          "printf 'verbosity 0\\r\\nquit\\r\\n' | NETCAT; at its next start leave out -v"},
    Check{"no_crawler", warning, "memory", Needs::settings, no_crawler,
          "The crawler is off: expired items keep their memory until they reach the end of the queue, and "
          "others are evicted.",
          "printf 'lru_crawler enable\\r\\nquit\\r\\n' | NETCAT; at its next start give it -o lru_crawler"},
    Check{"weights_against_memory", warning, "memory", Needs::stats, weights_against_memory,
          "The weights in the list do not agree with the memory (-m): the server with too little of it "
          "evicts first.",
          "give each server the same memory (-m)WEIGHTS: mcds servers -o text"},
    Check{"class_starves", problem, "memory", Needs::items, class_starves,
          "Items of one size are evicted or refused while pages of others lie idle.",
          "start it with -o slab_reassign,slab_automove=1: mcds -s SERVER servers --stats slabs"},
    Check{
        "evicts_young", warning, "memory", Needs::items, evicts_young,
        "Items are evicted that were used minutes ago: the server has too little memory for what is in use.",
        "mcds -s SERVER item hot --for 10s --sort evictions"},
    Check{"evicts_unfetched", warning, "memory", Needs::stats, evicts_unfetched,
          "Most evicted items were never read: what is stored does not live long enough to be of use.",
          "more memory, shorter ttls, or store less: mcds -s SERVER item hot --for 10s --sort stores"},
    Check{"evicting", note, "memory", Needs::stats, evicting,
          "A server evicts items for lack of memory, as a cache does.", "mcds servers --every 1s -o text"},
    Check{"evicts_structures", problem, "memory", Needs::live_keys, evicts_structures,
          "A server evicts what was idle for less time than locks, logs or caches kept there are to live.",
          "keep them on servers with -M, or with more memory"},
    Check{
        "evicted_before", warning, "memory", Needs::items, evicted_before,
        "Items were evicted since the server was started; with --live it says which structures of ours have "
        "items of those sizes: what they had may be among them.",
        "keep structures on servers with -M, or on an instance of their own"},
    Check{
        "one_page", warning, "memory", Needs::live_keys, one_page,
        "A server that evicts keeps items of our structures in a slab class with one page: about a megabyte "
        "of them survives, whatever its memory.",
        "keep structures on servers with -M, or on an instance of their own"},
    Check{"refuses_stores", problem, "memory", Needs::items, refuses_stores,
          "Stores are refused for lack of memory; a refused set also removes the old value.",
          "more memory (-m), or let it evict (without -M): mcds -s SERVER servers --stats items"},
    Check{"refused_before", warning, "memory", Needs::items, refused_before,
          "Stores were refused for lack of memory since the server was started.",
          "mcds -s SERVER servers --stats items"},
    Check{
        "full", warning, "memory", Needs::slabs, full,
        "A server that must not evict (-M) has less than a tenth of its memory left: soon it refuses stores.",
        "more memory, or remove items: mcds -s SERVER item list --sort size -n 20"},
    Check{"too_large", warning, "memory", Needs::stats, too_large,
          "Items were refused because they are larger than the server takes (-I); a set also removes the old "
          "value.",
          "store less in one item, or start it with a larger -I"},
    Check{"hash_growing", note, "memory", Needs::stats, hash_growing,
          "A server's hash table is being enlarged: requests take longer, and lists of keys must wait.",
          "wait, and look again"},
    Check{
        "hash_crowded", warning, "memory", Needs::stats, hash_crowded,
        "A hash table has three items a place and does not grow: every request walks through others' items.",
        "start it with a larger -o hashpower"},
    Check{"allocation_fails", problem, "memory", Needs::stats, allocation_fails,
          "A server could not get memory for connections or buffers, and closed connections or refused "
          "requests.",
          "look at its machine's memory (dmesg), and at response_obj_mem_limit, read_buf_mem_limit"},
    Check{"connections_full", problem, "connections", Needs::nothing, connections_full,
          "A server has no connection left: new clients are turned away.",
          "raise -c; who keeps them its own machine shows, because no command of ours gets through: ss "
          "-SOCKETS"},
    Check{"connections_high", warning, "connections", Needs::stats, connections_high,
          "More than 80 % of a server's connections are in use.",
          "raise -c, or look who has them: mcds -s SERVER servers --clients -o text"},
    Check{"connections_ran_out", warning, "connections", Needs::stats, connections_ran_out,
          "A server had no connection left at some time since its start.",
          "raise -c; who has them now: mcds -s SERVER servers --clients -o text"},
    Check{"idle_connections", warning, "connections", Needs::connections, idle_connections,
          "Hundreds of connections have done nothing for an hour: clients leak them.",
          "start it with -o idle_timeout=3600, and look at the clients' pools"},
    Check{"connects_per_request", warning, "connections", Needs::stats, connects_per_request,
          "Clients open a connection for every few requests, which costs more than the requests.",
          "make them keep their connections (persistent connections, a pool, a proxy)"},
    Check{"yields", warning, "connections", Needs::stats, yields,
          "Connections gave way to others (-R): batches are longer than a server does at a time.",
          "raise -R if latency matters less"},
    Check{"logins_fail", warning, "connections", Needs::stats, logins_fail,
          "Clients try to log in with a wrong password.", "find the client whose password is old"},
    Check{"handshakes_fail", warning, "connections", Needs::stats, handshakes_fail,
          "TLS handshakes fail: a client has another CA, an old certificate, or does not use TLS.",
          "look at the clients' logs"},
    Check{"busy", warning, "load", Needs::stats, busy,
          "A server uses most of the processor time that its threads can have.",
          "mcds -s SERVER item hot --for 10s"},
    Check{"load_uneven", warning, "load", Needs::stats, load_uneven,
          "A server's share of the requests is far from its share of the keys: a hot key, or a client with "
          "another list.",
          "mcds item hot --for 10s; mcds --as PROFILE where --probe --live"},
    Check{"hit_ratio_falls", warning, "load", Needs::stats, hit_ratio_falls,
          "Far fewer look-ups hit than before: something was emptied, a client has changed, or a scan runs.",
          "mcds -s SERVER item hot --for 10s --sort misses"},
    Check{
        "nothing_hits", warning, "load", Needs::stats, nothing_hits,
        "Clients store and look up, and find nothing: a ttl above 30 days is taken for a date in 1970, a "
        "ttl is below 0, or the keys of stores and look-ups differ.",
        "compare: mcds -s SERVER item hot --for 10s --sort misses; mcds -s SERVER item hot --for 10s --sort "
        "stores"},
    Check{"hit_ratio_differs", warning, "load", Needs::stats, hit_ratio_differs,
          "A server misses far more often than the rest of the pool.",
          "mcds -s SERVER item hot --for 10s --sort misses"},
    of_ring("repeated_server", problem,
            "A server is listed more than once, which clients treat differently."),
    of_ring("equal_names", problem, "Servers have the same NAME."),
    of_ring("duplicate_identity", problem, "Servers are hashed alike, so one gets the keys of all."),
    of_ring("mixed_case", problem, "A name has capital letters, and clients hash it as it is written."),
    of_ring("trailing_dot", problem, "A name ends with a dot, which clients hash too."),
    of_ring("leading_zero", problem, "An address has a number that starts with 0."),
    of_ring("names_and_addresses", problem, "The list mixes names and addresses."),
    of_ring("unresolved", problem, "A name has no address here."),
    of_ring("any_address", problem, "An address is one to listen on, not to connect to."),
    of_ring("local_server", problem, "A server is another one on every machine, unlike the rest."),
    of_ring("some_tls", note, "Only some of the servers use TLS."),
    of_ring("odd_port", note, "One server is on another port than all others."),
    of_ring("too_many_servers", problem, "The pool is larger than this client can use."),
    of_ring("zero_weight", problem, "A server has the weight 0."),
    of_ring("weight_in_path", problem, "A weight stands in the path of a socket."),
    of_ring("weights_ignored", problem, "This client ignores the weights."),
    of_ring("hash_misses_ring", problem, "The client's hash reaches a part of its circle only."),
    of_ring("all_on_one", problem, "Every key goes to one server."),
    of_ring("idle_server", problem, "No key goes to a server."),
    of_ring("uneven", problem, "A server gets far more or less than its share of the keys."),
    of_ring("few_points", problem, "A server's share of the circle is a matter of chance."),
    of_ring("default_port", problem, "Clients that write the default port, or do not, place keys elsewhere."),
    of_ring("order_dependent", note, "The order of the list matters."),
    of_ring("installed_differs", problem,
            "The installed libmemcached places keys elsewhere than its profile."),
    of_ring("same_as", note, "A profile places keys as the string of libmemcached does, or none."),
    of_ring("all_copies", note, "Every server has every key."),
    of_ring("replicated", note, "Each key is kept on several servers."),
    of_ring("fragile", note, "What this client does may differ on other machines."),
    Check{"misplaced", problem, "placement", Needs::live_keys, misplaced,
          "Keys lie on servers where this client does not look: another list, another client, or an earlier "
          "pool.",
          "mcds where --guess; mcds --as PROFILE where --probe --live"},
    Check{
        "duplicated", problem, "placement", Needs::live_keys, duplicated,
        "Keys have the same value on two servers: when it changes on one, the other keeps the older one. It "
        "looks so, too, between a move and the clients' change to its list.",
        "after a move take its last step, as mcds-ring-move(1) has it; if no client uses another list: mcds "
        "--as "
        "PROFILE where --prune --live --dry-run"},
    Check{"divergent", problem, "placement", Needs::live_keys, divergent,
          "Keys have different values on two servers, as after an outage that clients went around: they read "
          "an older one now, or at the next outage. To drop them removes every copy, so a session, a lock "
          "taken by add or an application's counter starts anew; --yes instead of --dry-run does it.",
          "wait until every client is back on the full list: mcds --as PROFILE where --prune --live --prefix "
          "PREFIX --divergent drop --journal drop.journal --dry-run"},
    Check{"unlisted", note, "placement", Needs::live_keys, unlisted, "A server did not list its keys.",
          "do what the error says, then list again: mcds -s SERVER item list -n 1"},
    Check{"watch_off", warning, "placement", Needs::live_keys, watch_off,
          "A server lets nobody watch its keys (-W): item hot and capacity do not work there.",
          "start it without -W, or accept this"},
    Check{"near_size_limit", warning, "structures", Needs::live_keys, near_size_limit,
          "An array with --encoding json, which is one item, has nearly the largest size that its server "
          "takes.",
          "fewer or shorter values, an array without --encoding json, or a larger -I on the server"},
    Check{"lost_parts", problem, "structures", Needs::live_keys, lost_parts,
          "A part of a log, an index or an array is gone, which others need: it was evicted, or a server was "
          "emptied. Readers report what is missing.",
          "more memory or -M; see how much of the first one is left: mcds CHECK"},
    Check{"two_numbers_of_copies", warning, "structures", Needs::live_keys, two_numbers_of_copies,
          "A structure is there under two numbers of copies: clients with other --copies do not see each "
          "other's changes.",
          "give all clients the same --copies; fetch each, drop it, which ends both, and put back what is to "
          "stay"},
    Check{"endless_lock", warning, "structures", Needs::live_keys, endless_lock,
          "A lock has no expiry, which mcds never writes: if its holder dies, nobody gets it.",
          "look whose it is, and take it from a holder that has died: mcds lock show NAME; mcds lock release "
          "--force NAME; of several slots (--slots N) the one that shows no expiry (--slot K)"},
};

}  // namespace

const char* name_of(Severity severity) {
  return severity == problem ? "problem" : severity == warning ? "warning" : "note";
}

const char* name_of(Needs needs) {
  constexpr std::array names{"",       "stats",        "stats settings", "stats items", "stats slabs",
                             "--live", "--connections"};
  return names[static_cast<std::size_t>(needs)];
}

std::span<const Check> all_checks() {
  return checks;
}

void ring_finding(const Examination& seen, Diagnosis& diagnosis) {
  for (const Finding& finding : seen.ring) {
    if (std::string_view(finding.check) != diagnosis.check().name) continue;
    diagnosis.add_one(finding.servers, JsonObject("message", finding.message),
                      finding.problem ? problem : note);
  }
}

void Diagnosis::add(std::size_t server, JsonObject evidence, Severity severity, double weight) {
  singles_.push_back({server, std::move(evidence), severity, weight});
}

void Diagnosis::add_one(std::vector<std::size_t> servers, JsonObject evidence, Severity severity) {
  found_.push_back({check_, severity, std::move(servers), std::move(evidence), {}, {}});
}

std::vector<CheckResult> Diagnosis::take() {
  std::ranges::stable_sort(singles_, [](const Single& one, const Single& other) {
    return one.severity != other.severity ? one.severity > other.severity : one.weight > other.weight;
  });
  CheckResult* last = nullptr;
  std::vector<CheckResult> all = std::move(found_);
  const std::size_t whole = all.size();
  for (Single& single : singles_) {
    if (all.size() == whole || last == nullptr || last->severity != single.severity) {
      all.push_back({check_, single.severity, {}, single.evidence, {}, {}});
      last = &all.back();
    } else {
      last->others.push_back(std::move(single.evidence));
    }
    last->servers.push_back(single.server);
  }
  return all;
}

std::vector<CheckResult> diagnose(const Examination& seen, const WantedCheck& wanted) {
  std::vector<CheckResult> all;
  for (const Check& check : checks) {
    if (!wanted(check) || (check.needs == Needs::live_keys && !seen.live)) continue;
    Diagnosis diagnosis(check, seen);
    if (PoolCheck* const* test = std::get_if<PoolCheck*>(&check.test)) (*test)(seen, diagnosis);
    for (std::size_t i = 0; i < seen.size() && std::holds_alternative<ServerCheck*>(check.test); ++i) {
      diagnosis.use_server(i);
      std::get<ServerCheck*>(check.test)(seen.snapshots[i], diagnosis);
    }
    for (CheckResult& check_result : diagnosis.take()) all.push_back(std::move(check_result));
  }
  std::ranges::stable_sort(all, std::greater{}, &CheckResult::severity);
  return all;
}

namespace {

bool lacks(const ServerSnapshot& snapshot, Needs needs) {
  const Reading& look = snapshot.before;
  return (needs == Needs::stats && !look.stats.known()) ||
         (needs == Needs::settings && !look.settings.known()) ||
         (needs == Needs::items && !look.knows_items) || (needs == Needs::slabs && !look.knows_slabs);
}

}  // namespace

std::string no_check(std::string_view name) {
  std::vector<std::string> known;
  for (const Check& check : checks) known.emplace_back(check.name);
  if (std::ranges::find(known, name) != known.end()) return {};
  return "no check '" + visible(name) + '\'' + did_you_mean(name, known, "; mcds doctor --checks lists them");
}

std::vector<Unknown> unknowns(const Examination& seen, const WantedCheck& wanted) {
  std::vector<Unknown> all;
  for (const Needs needs : {Needs::stats, Needs::settings, Needs::items, Needs::slabs}) {
    Unknown unknown{{}, needs, {}};
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (seen.snapshots[i].before.up && lacks(seen.snapshots[i], needs)) unknown.servers.push_back(i);
    }
    for (const Check& check : checks) {
      if (check.needs == needs && wanted(check)) unknown.checks.emplace_back(check.name);
    }
    if (!unknown.servers.empty() && !unknown.checks.empty()) all.push_back(std::move(unknown));
  }
  return all;
}

}  // namespace mcds::doctor
