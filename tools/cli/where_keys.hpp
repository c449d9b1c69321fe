// Answers which server has a key, for `mcds where` and the `where` verbs of all structures.
#pragma once

#include "common/base/json.hpp"
#include "common/placement/placement.hpp"
#include "common/primitives/key_names.hpp"
#include "tools/cli/exit_status.hpp"

namespace mcds {

class Session;

// Makes lines such as
// {"key":"price:44","server":"10.0.0.1:11211","index":0,"hash":"2876543210","profile":"ketama"} and, with
// several copies, "copies":[{"server":…,"index":…},…] with the owner first. The parts that all keys of a
// server share are made once. A returned line is valid until the next call.
class PlacedLines {
 public:
  PlacedLines(Session& session, const Placement& placement) : session_(session), placement_(placement) {}
  JsonObject& line(std::string_view key, const Placement::Place& place);
  // Adds the servers of all copies. Without a number, uses the session's copy count.
  JsonObject& line(const PlacedKey& key, const Placement::Place& place, std::optional<std::size_t> copies);
  // Prints the line without building a JsonObject, if no further fields are needed and the key needs no
  // escapes. Returns false if nothing was printed.
  bool print(const PlacedKey& key, const Placement::Place& place);

 private:
  struct PerServer {
    std::string before_hash, behind_hash;
  };
  const PerServer& per_server(std::size_t server);
  Session& session_;
  const Placement& placement_;
  std::vector<PerServer> servers_;
  std::optional<bool> prints_;
  JsonObject line_;
};

// Adds "servers" and "policy" if the client replicates the key, and "wire_key" if its name differs there.
void add_owners(Session& session, JsonObject& line, const Placement& placement, std::string_view key);

// Returns the owners of a key: the client's own if it replicates, else as many copies as the key's name or
// the session says. A journal segment, which each copy names itself, is not required on any of them.
Owners key_owners(Session& session, const Placement& placement, const PlacedKey& key);

// Returns true if mcds keeps this number of copies itself, in addition to the client's own replication.
bool keeps_copies(Session& session, const Placement& placement, std::size_t copies);

// Prints one line per key without contacting a server.
ExitStatus print_where(Session& session, std::span<const PlacedKey> keys,
                       std::optional<std::size_t> copies = {});
ExitStatus print_where(Session& session, std::span<const std::string> keys,
                       std::optional<std::size_t> copies = {});

// Decides which whole keys a verb accepts, as the given clients do.

struct KeyRules {
  const std::string& prefix;  // the namespace, prepended to every key
  std::span<const std::shared_ptr<const Placement>> placements;
  bool sent;  // servers will be queried, so the client's rule alone is not enough

  // Returns the whole key. A longer key, or one with spaces, is valid if all clients of `placements` send a
  // valid key in its place or, if no server is queried, send it unchanged, or with `any_byte`. Throws
  // InvalidInput.
  std::string checked(const std::string& text, bool any_byte = false) const;
  // Returns the whole key of a line of input: a JSON object as mcds prints it, with the field key or key_b64,
  // or the key itself. Keys in JSON, and in lists that end names with a NUL, may have any bytes.
  std::string of_line(std::string line, bool ends_with_nul) const;
};

// Returns the key that a JSON object names, or nullopt if `line` is not such an object. Throws InvalidInput
// for a key that is not a string.
std::optional<std::string> key_in_json(std::string_view line);

// Returns the addresses of these servers of the pool, or their labels for people.
std::vector<std::string> labels_of(const Pool& pool, std::span<const std::size_t> servers,
                                   bool for_people = false);
// Returns the index of the server by name, or by address in any notation. InvalidInput names `option`.
std::size_t server_named(const Pool& pool, const std::string& text, const char* option);

}  // namespace mcds
