#include "common/operations/listings.hpp"

#include "common/primitives/key_names.hpp"

namespace mcds {

namespace {

// A listing in a file, followed by its name.
struct Stored {
  Listing listing;
  std::uint32_t name_size;
};
static_assert(std::is_trivially_copyable_v<Stored>);

}  // namespace

void Listings::add(const Listing& listing, std::string_view name) {
  if (records_.size() * sizeof(Record) + names_.size() >= most_bytes_) spill();
  records_.push_back(
      {listing, static_cast<std::uint32_t>(names_.size()), static_cast<std::uint32_t>(name.size())});
  names_ += name;
}

void Listings::spill() {
  if (files_.empty()) files_ = std::vector<moving::SpillFile>(parts);
  for (const Record& record : std::exchange(records_, {})) {
    const Stored stored{record.listing, record.name_size};
    char bytes[sizeof stored];
    std::memcpy(bytes, &stored, sizeof stored);
    files_[record.listing.hash / (UINT64_MAX / parts + 1)].add_bytes(
        {bytes, sizeof bytes}, std::string_view(names_).substr(record.name_at, record.name_size));
  }
  names_ = {};
}

void Listings::group(const Take& take) {
  std::ranges::sort(records_, std::less{}, [](const Record& record) { return record.listing.hash; });
  std::vector<Listing> group;
  std::string name;
  for (auto record = records_.begin(); record != records_.end();) {
    group.clear();
    name.clear();
    for (const std::uint64_t hash = record->listing.hash;
         record != records_.end() && record->listing.hash == hash; ++record) {
      if (name.empty()) name = names_.substr(record->name_at, record->name_size);
      if (std::ranges::find(group, record->listing.server, &Listing::server) == group.end())
        group.push_back(record->listing);
    }
    take(group, name);
  }
}

void Listings::for_each(const Take& take) {
  if (files_.empty()) return group(take);
  spill();
  for (moving::SpillFile& file : files_) {
    Listings part(SIZE_MAX);
    file.rewind();
    for (auto bytes = file.next_bytes(sizeof(Stored)); !bytes.empty();
         bytes = file.next_bytes(sizeof(Stored))) {
      Stored stored;
      std::memcpy(&stored, bytes.data(), sizeof stored);
      part.add(stored.listing, file.next_bytes(stored.name_size));
    }
    part.group(take);
  }
}

void PlacementSample::take(const LiveKey& key) {
  if (counts_[key.server] == of_each_ || is_vote_key(key.key)) return;
  const auto ours = structure_in(key.key, key_prefix_);
  if (ours && (ours->name.in_several() || ours->name.structure == "lock" ||
               !placed(std::string(key.key), ours->key_prefix).with.empty()))
    return;
  ++counts_[key.server];
  const auto [at, is_new] = known_.emplace(std::string(key.key), keys_.size());
  if (is_new)
    keys_.push_back({at->first, {key.server}});
  else
    keys_[at->second].servers.push_back(key.server);
}

}  // namespace mcds
