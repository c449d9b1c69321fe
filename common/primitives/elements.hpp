// What tables and hashes are made of: one key per element is the truth, an index is only a hint where to look.
//
// Key layout (base: `<namespace>table:<name>` or `<namespace>hash:<name>`)
//   <base>:v:<element>   the value; the element encoded, or digested when long (key_names.hpp)
//   <base>:i:<shard>     a journal of `+ <time and chance> "<element>"` lines, full names; shard = crc32(element) % 16
//   <base>:i             the manifest: a journal of the shards that were created
//   E.g. table:blocked:v:10.1.2.3 = 1, and in table:blocked:i:9 the line + 6920f3d5b7c1e0f2.0 "10.1.2.3" *0b2f1c9e
//   The first 8 hex digits of a line's id are the writer's UNIX seconds.
//
// Why the index may be wrong and nothing else ever is. An element is present exactly when its key is: has, get and fetch
// all ask the key, so they cannot disagree. The one promise of the index is: every acknowledged element is listed. Step by
// step, setting an element that is missing:
//   1 `replace` says missing                 dead here: nothing happened
//   2 append the name to its shard           dead here: a listed name without a key, which fetch finds absent
//   3 (new shard) append it to the manifest  dead here: the same; the shard's own loss would go unnoticed
//   4 `add` the key                          stored: acknowledged, and listed since step 2
//                                            exists: a rival was first; back to 1
//   5 if 4 was acknowledged more than half the grace after 2, append the name again
// Removing deletes the key: one step, the linearization point. The line stays until compaction.
// Compaction of a shard drops lines whose element it finds absent *after* it has read the shard, and only those older
// than the grace of 60 s. An adder between its steps 2 and 4 has a younger line, or is slower than half the grace and
// lists the name again in step 5; one that appends while compaction runs makes compaction's cas fail. What remains: an add
// whose reply was lost and that the server executes later than the grace after step 2. It was never acknowledged; has
// finds it, fetch does not, and any later set of the element lists it again only after a removal.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/errors.hpp"
#include "common/primitives/context.hpp"

namespace mcds {

constexpr std::size_t index_shards = 16;

class Elements {
 public:
  // Clients' clocks may differ by half of it.
  static constexpr auto grace = std::chrono::seconds(60);

  Elements(const Context& context, std::string base) : context_(context), base_(std::move(base)) {}

  struct Element {
    std::string name;
    std::string value;
  };
  struct Outcome {
    bool yes = false;      // set: it was missing; get: present; remove: it was present
    std::string value;     // get
    std::size_t server = 0;
    std::optional<Failure> failure;  // then `yes` says nothing
  };
  // Round trips whatever the number: 1 when all exist, else 3 (4 with a new shard).
  std::vector<Outcome> set(std::span<const Element> elements);
  std::vector<Outcome> get(std::span<const std::string> names) const;
  std::vector<Outcome> remove(std::span<const std::string> names) const;

  struct Listing {
    bool complete = true;             // false: a part of the index was lost, so elements may be missing
    std::vector<std::string> lost;    // its keys
    std::size_t lines = 0;            // of the index
    std::size_t names = 0;            // different ones
    std::size_t present = 0;          // of these
    std::size_t shards = 0;
  };
  // Every present element, in no order; memory for one shard and one window. 2 round trips, more with segments and beyond
  // a window. Throws NotApplied, CorruptData.
  using Visit = std::function<void(const std::string& name, const std::string& value, std::size_t server)>;
  Listing fetch(const Visit& visit) const;

  // Drops what is listed and absent; true if all shards could be gone through.
  bool compact();
  // Removes every listed element, then compacts; not one step: what others add meanwhile may stay.
  std::size_t clear();

  // All physical keys of the index, and those of the elements named.
  std::vector<std::string> index_keys() const;
  std::string key_of(std::string_view name) const;

 private:
  struct Pending;
  void list(std::span<const std::string* const> names, std::vector<std::optional<Failure>>& failures);
  void list_shard(std::size_t shard, std::span<const std::string* const> names);
  std::string shard_key(std::size_t shard) const { return base_ + ":i:" + std::to_string(shard); }
  std::string manifest_key() const { return base_ + ":i"; }
  std::string line_operation() const;
  bool compact_shard(std::size_t shard);

  const Context& context_;
  std::string base_;
};

// A name whose element keys could be another's index.
void check_element_base_name(std::string_view name);

}  // namespace mcds
