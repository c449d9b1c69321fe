#include "tools/cli/changed_pool.hpp"

#include "tools/cli/program.hpp"

namespace mcds {

namespace {

// Returns the profile that the change names, or an empty string if the profile stays.
std::string profile_said(Session& session, Session& other, const ChangedPool& pool) {
  if (pool.as_to) return *pool.as_to;
  if (session.options().profile) return "";
  if (pool.to_pool) {
    if (const auto profile = session.config().text("pool " + *pool.to_pool, "profile")) return *profile;
  }
  return other.pool().profile;
}

GlobalOptions changed(Session& session, const ChangedPool& pool) {
  GlobalOptions globals = session.options();
  if (pool.to || pool.to_servers_from || pool.to_pool) {
    globals.servers = pool.to;
    globals.servers_from = pool.to_servers_from;
    globals.pool = pool.to_pool;
  }
  globals.key_prefix = session.key_prefix();
  // The first session has this file open already.
  globals.errors = std::nullopt;
  return globals;
}

}  // namespace

void ChangedPool::check() const {
  const int pools = (to ? 1 : 0) + (to_servers_from ? 1 : 0) + (to_pool ? 1 : 0);
  if (pools > 1) throw InvalidInput("--to, --to-servers-from and --to-pool cannot be combined");
  if (pools == 0 && !as_to)
    throw InvalidInput(
        "nothing to compare with; give --to LIST, --to-servers-from SOURCE, --to-pool NAME or --as-to P");
}

void declare_changed_pool(Verb& verb, ChangedPool& pool) {
  verb.option("--to", "LIST", "the servers after the change, as for --servers", &pool.to)
      .option(
          "--to-servers-from", "SOURCE",
          "the same from a source, as for --servers-from; a hash function that it names decides the profile",
          &pool.to_servers_from)
      .option("--to-pool", "NAME",
              "the same from a pool of the configuration file, with its profile if it has one", &pool.to_pool)
      .option("--as-to", "P", "the client profile after the change", &pool.as_to);
}

ChangedSession::ChangedSession(Session& session, const ChangedPool& pool) : other_(changed(session, pool)) {
  other_.set_deadline(session.deadline());
  other_.change_for(session);
  // A pool of the config has credentials of its own.
  if (!pool.to_pool) other_.set_main_list(session.pool().pool);
  const std::string profile = profile_said(session, other_, pool);
  placement_ = other_.placement_as(profile.empty() ? session.placement()->profile() : profile);
  session.output().call_servers(placement_->pool());
}

}  // namespace mcds
