// Decides which credentials each server of a list may be shown.
#pragma once

#include "common/cluster/credentials.hpp"
#include "common/placement/pools/files.hpp"
#include "tools/cli/output.hpp"
#include "tools/cli/settings.hpp"

namespace mcds {

// The credentials that the servers of a list may be shown.
struct Access {
  bool tls_for_all = false;
  Credentials credentials;
  bool plain_login = false;  // may be sent without TLS to any server of the list
  Login::Form login_form = Login::Form::ascii;
  bool beside = false;             // the login has the same source as the list
  std::string password_file = {};  // the file from which the password was read, or empty
};

// Returns the access for a list of this origin. Throws InvalidInput for an incomplete login,
// Failure(cannot_read) for the password's file. Warns if others can read that file, or if certificates are
// not verified.
Access resolve_credentials(const Settings& settings, Origin list, const Output& output);

// Throws Failure(configuration) if a login would be sent because of a configuration file that everybody can
// write, or that neither root nor this user owns. Write permission for a group is accepted. A file may always
// cause the login that it holds itself to be sent.
void expect_trusted(const Config& config, const Access& access);

struct ListOrigin {
  bool discovered = false;         // see FoundServers
  bool main_list_has_tls = false;  // second list of a run whose main list is reached with TLS
};

// Sets the credentials of every server. Without TLS, a login is sent to loopback, to unix sockets and, unless
// the main list has TLS, to servers named by the same source as the login. It is sent to other servers only
// with plain_login; any server left over is not contacted (Credentials::withheld).
void give(Pool& servers, const Access& access, const ListOrigin& from);
// Gives each server whose address is also in `known` the connection settings it has there.
void take_over(Pool& servers, const Pool& known);

// Uses the login that the list itself contains, for its servers only, unless a login was given.
void log_in_as_listed(Access& access, const PoolFile& list);

}  // namespace mcds
