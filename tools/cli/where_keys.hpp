// The answer to 'which server has this key', for `mcds where` and the `where` verbs of all structures.
#pragma once

#include "common/base/json.hpp"
#include "common/placement/placement.hpp"
#include "common/primitives/key_names.hpp"
#include "tools/cli/exit_status.hpp"

namespace mcds {

class Session;

// {"key":"price:44","server":"10.0.0.1:11211","index":0,"hash":"2876543210","profile":"ketama"}
// With several copies also "copies":[{"server":…,"index":…},…], the owner first.
// What is the same for all keys of a server is made once. A line is there until the next is made.
class PlacedLines {
 public:
  PlacedLines(Session& session, const Placement& placement) : session_(session), placement_(placement) {}
  JsonObject& line(std::string_view key, const Placement::Place& place);
  // With several copies also where they are; without a number, as many as the session says.
  JsonObject& line(const PlacedKey& key, const Placement::Place& place, std::optional<std::size_t> copies);
  // Prints it without a document between, if nothing else is to be told of it and its bytes stand for
  // themselves. False: nothing is printed.
  bool print(const PlacedKey& key, const Placement::Place& place);

 private:
  struct OfServer {
    std::string before_hash, behind_hash;
  };
  const OfServer& of_server(std::size_t server);
  Session& session_;
  const Placement& placement_;
  std::vector<OfServer> servers_;
  std::optional<bool> prints_;
  JsonObject line_;
};

// "servers" and "policy" where the client itself keeps the key on several; "wire_key" where it goes by
// another name.
void add_owners(Session& session, JsonObject& line, const Placement& placement, std::string_view key);

// Where a key is kept: by the client itself where it replicates, else in as many copies as its own name says,
// or the session.
// A part that each copy names itself must be on none of them.
Owners key_owners(Session& session, const Placement& placement, const PlacedKey& key);

// Whether so many copies are mcds's own, beside what the client itself replicates.
bool keeps_copies(Session& session, const Placement& placement, std::size_t copies);

// One line per key; asks no server.
ExitStatus print_where(Session& session, std::span<const PlacedKey> keys,
                       std::optional<std::size_t> copies = {});
ExitStatus print_where(Session& session, std::span<const std::string> keys,
                       std::optional<std::size_t> copies = {});

// Which whole keys a verb accepts, as the given clients do.

struct KeyRules {
  const std::string& prefix;  // the namespace, put before every key
  std::span<const std::shared_ptr<const Placement>> placements;
  bool sent;  // servers will be asked for it, not only the client's rule

  // The whole key. Where all clients of `placements` send servers a fitting key in its stead, a longer one or
  // one with spaces is a key as well; and such as they send as they are, unless servers will be asked. Throws
  // InvalidInput.
  std::string checked(const std::string& text) const;
  // The same of a line of input: a JSON object as our commands print it, with the field key or key_b64, or
  // the key itself.
  // The keys of JSON, and those of lists that end names with a NUL, may have any bytes.
  std::string of_line(std::string line, bool ends_with_nul) const;
};

// The key that a JSON object names; nullopt: `line` is not one.
std::optional<std::string> key_in_json(std::string_view line);

// These servers of the pool: by their addresses, or as people call them.
std::vector<std::string> labels_of(const Pool& pool, std::span<const std::size_t> servers,
                                   bool for_people = false);
// A server as the pool has it: by its name, or by its address however it is written. Throws InvalidInput,
// naming `option`.
std::size_t server_named(const Pool& pool, const std::string& text, const char* option);

}  // namespace mcds
