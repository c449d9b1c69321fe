#include "common/operations/listings.hpp"

#include "common/primitives/key_names.hpp"

namespace mcds {

namespace {

constexpr std::size_t max_runs = 64;  // each needs a buffer and a descriptor

// A listing in a run, followed by its name.
struct Stored {
  std::uint64_t hash, bytes;
  std::uint32_t server;
  std::uint16_t name_size;
  bool owner;
};
static_assert(std::is_trivially_copyable_v<Stored>);

void write(moving::SpillFile& run, const Listing& listing, std::string_view name) {
  const Stored stored{listing.hash, listing.bytes, listing.server, static_cast<std::uint16_t>(name.size()),
                      listing.owner};
  char bytes[sizeof stored];
  std::memcpy(bytes, &stored, sizeof stored);
  run.add_bytes({bytes, sizeof bytes}, name);
}

// The reading position in a run.
struct Head {
  moving::SpillFile* run;
  Listing listing = {};
  std::string name = {};

  bool read() {
    const std::string_view bytes = run->next_bytes(sizeof(Stored));
    if (bytes.empty()) return false;
    Stored stored;
    std::memcpy(&stored, bytes.data(), sizeof stored);
    listing = {stored.hash, stored.bytes, stored.server, stored.owner};
    name = run->next_bytes(stored.name_size);
    return true;
  }
};

// Groups listings, which arrive in the order of their hashes, by key.
class Grouping {
 public:
  explicit Grouping(const Listings::Take& take) : take_(take) {}

  void add(const Listing& listing, std::string_view name) {
    if (!group_.empty() && group_.front().hash != listing.hash) finish();
    if (name_.empty()) name_ = name;
    if (std::ranges::find(group_, listing.server, &Listing::server) == group_.end())
      group_.push_back(listing);
  }
  void finish() {
    if (!group_.empty()) take_(group_, name_);
    group_.clear();
    name_.clear();
  }

 private:
  const Listings::Take& take_;
  std::vector<Listing> group_;
  std::string name_;
};

}  // namespace

void Listings::add(const Listing& listing, std::string_view name) {
  if (records_.size() * sizeof(Record) + names_.size() >= most_bytes_) spill();
  records_.push_back(
      {listing, static_cast<std::uint32_t>(names_.size()), static_cast<std::uint32_t>(name.size())});
  names_ += name;
}

void Listings::sort() {
  std::ranges::sort(records_, std::less{}, [](const Record& record) { return record.listing.hash; });
}

void Listings::spill() {
  sort();
  moving::SpillFile run;
  for (const Record& record : std::exchange(records_, {}))
    write(run, record.listing, std::string_view(names_).substr(record.name_at, record.name_size));
  names_ = {};
  runs_.push_back(std::move(run));
  if (runs_.size() < max_runs) return;
  moving::SpillFile all;
  merge([&](const Listing& listing, std::string_view name) { write(all, listing, name); });
  runs_.clear();
  runs_.push_back(std::move(all));
}

template <typename Sink>
void Listings::merge(const Sink& sink) {
  std::vector<Head> heads;
  for (moving::SpillFile& run : runs_) {
    run.rewind();
    heads.push_back({&run});
  }
  std::vector<Head*> open;
  for (Head& head : heads) {
    if (head.read()) open.push_back(&head);
  }
  const auto later = [](const Head* one, const Head* other) {
    return one->listing.hash > other->listing.hash;
  };
  std::ranges::make_heap(open, later);
  while (!open.empty()) {
    std::ranges::pop_heap(open, later);
    Head& least = *open.back();
    sink(std::as_const(least.listing), std::string_view(least.name));
    if (least.read())
      std::ranges::push_heap(open, later);
    else
      open.pop_back();
  }
}

void Listings::for_each(const Take& take) {
  Grouping groups(take);
  if (!runs_.empty() && !records_.empty()) spill();
  sort();
  for (const Record& record : records_)
    groups.add(record.listing, std::string_view(names_).substr(record.name_at, record.name_size));
  merge([&](const Listing& listing, std::string_view name) { groups.add(listing, name); });
  groups.finish();
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
