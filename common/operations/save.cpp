#include "common/operations/save.hpp"

#include <bit>
#include <deque>
#include <numeric>
#include <unordered_set>

#include "common/base/bounds.hpp"
#include "common/base/bytes.hpp"
#include "common/base/units.hpp"
#include "common/operations/expiry.hpp"
#include "common/operations/listings.hpp"
#include "common/operations/not_saveable.hpp"
#include "common/placement/key_hash.hpp"
#include "common/primitives/key_names.hpp"

namespace mcds {

namespace {

using moving::spilled;
using moving::SpilledRecord;
using moving::SpillFile;

constexpr std::size_t batches_in_flight = 3;
constexpr int rounds = 3;                      // for structures that change meanwhile
constexpr std::size_t spill_file_count = 128;  // of structures' keys; one is in memory at a time
constexpr std::size_t max_named = 100;
constexpr std::size_t save_sample_size = 1000;

// Returns true if the key needs no escape in JSON.
bool is_text(std::string_view key) {
  return std::ranges::all_of(
      key, [](char byte) { return byte > ' ' && byte < 127 && byte != '"' && byte != '\\'; });
}

// Returns a class of the time since the last use, two classes per doubling.
std::size_t heat_of(std::int64_t idle_s) {
  const auto seconds = static_cast<std::uint64_t>(std::max<std::int64_t>(idle_s, 0)) + 1;
  const auto power = static_cast<std::size_t>(std::bit_width(seconds)) - 1;
  const bool upper = power > 0 && ((seconds >> (power - 1)) & 1U) != 0;
  return std::min<std::size_t>(power * 2 + (upper ? 1 : 0), 63);
}

// Keys that name others are saved after these, so that while the file is loaded no reader misses a named key.
int rank_of(const SpilledRecord& record, std::string_view key_prefix) {
  const auto ours = structure_in(record.key, key_prefix);
  if (ours && ours->name.is_root) return 2;
  return record.key.find(":dir:") != std::string::npos ? 1 : 0;
}

class Saving {
 public:
  Saving(const Context& context, SaveOptions options, SavedWriter::Sink sink, ReadLiveKeys read,
         SaveWatch watch)
      : context_(context),
        options_(std::move(options)),
        sink_(std::move(sink)),
        read_(std::move(read)),
        watch_(std::move(watch)),
        clocks_(moving::read_clocks(context.cluster, context.clock)),
        started_(context.clock.wall()),
        limiter_(options_.rate, context.clock.steady()),
        sample_(context.cluster.placement().pool().size(), options_.selection.key_prefix,
                save_sample_size / context.cluster.placement().pool().size() + 1) {
    report_.servers.resize(context_.cluster.placement().pool().size());
  }

  SaveReport run() {
    report_.dumps = read_([this](const LiveKey& key) { return take(key); });
    for (std::optional<SpillFile>& candidates : candidates_) {
      if (candidates) report_apart(all_of(*candidates));
      candidates.reset();
    }
    std::uint64_t keys = 0;
    for (const auto& spill_file : spill_files_) keys += spill_file ? spill_file->count() : 0;
    for (const auto& [structure, group] : groups_) keys += group.keys;
    watch_.listed(keys);
    writer_ = std::make_unique<SavedWriter>(sink_, context_.random.token(), with_places(first_words()));
    if (!groups_.empty()) write_structures();
    write_items();
    report_.items = writer_->items();
    JsonObject about = first_words(), skipped;
    about.time("ended", context_.clock.wall());
    for (const auto& [why, count] : report_.skipped) skipped.number(why, count);
    const SavedServer all = report_.sum();
    about.boolean("complete", std::ranges::all_of(report_.dumps, &LiveKeysOfServer::complete));
    about.number("vanished", all.vanished).number("failed", all.failed).object("passed_over", skipped);
    if (!report_.torn.empty()) {
      const auto most = static_cast<std::ptrdiff_t>(std::min(report_.torn.size(), max_named));
      about.number("torn_count", report_.torn.size());
      about.strings("torn", {report_.torn.begin(), report_.torn.begin() + most});
    }
    writer_->finish(about);
    report_.bytes = writer_->bytes();
    return report_;
  }

 private:
  using Records = std::vector<moving::SpilledRecord>;
  struct Reading {
    Records records;
    WallTime asked;
    std::unique_ptr<Pending> pending;
  };
  // The keys of a structure, summed up over one listing.
  struct Group {
    std::uint64_t keys = 0, sum = 0;
    bool comparable = true;
    bool operator==(const Group&) const = default;
  };
  using Groups = std::unordered_map<std::uint64_t, Group>;
  using Names = std::map<std::uint64_t, std::string>;

  bool take(const LiveKey& key) {
    const SavedAs as = as_of(key.key);
    const bool selected = options_.selection.has(key.key);
    if (selected && is_text(key.key)) sample_.take(key);
    if (as.grouped && (selected || as.tells || selects(options_.selection, as))) {
      auto& candidates = candidates_[id_of(as) % spill_file_count];
      if (!candidates) candidates.emplace();
      candidates->add(spilled(key, place_of(key)));
    } else if (!as.grouped && selected) {
      ++report_.servers[key.server].keys;
      add_item(spilled(key, place_of(key)));
    } else if (!selected && as.why == nullptr && !key.key.starts_with("lock:")) {
      ++report_.unselected;
    }
    return true;
  }

  // Returns the position class of an item in the file.
  std::size_t place_of(const LiveKey& key) const {
    const auto& clock = clocks_[key.server];
    const WallTime now = started_ + std::chrono::duration_cast<std::chrono::microseconds>(
                                        clock ? clock->ahead : Duration::zero());
    // A copy where clients do not look may be old. The first copy in the file is loaded, so it comes last.
    const bool elsewhere = context_.cluster.placement().server_of(key.key) != key.server;
    return heat_of(whole_seconds(now) - key.last_accessed_at) + (elsewhere ? heats : 0);
  }

  void add_item(const SpilledRecord& record) {
    auto& spill_file = spill_files_[record.to];
    if (!spill_file) spill_file.emplace();
    spill_file->add(record);
  }

  static Records all_of(SpillFile& spill_file) {
    Records records;
    spill_file.for_each([&](SpilledRecord record) { records.push_back(std::move(record)); });
    return records;
  }

  // Separates the keys of structures from an application's keys with such names, by the values of those keys
  // that identify a structure.
  void report_apart(Records records) {
    std::unordered_set<std::uint64_t> selected;
    for (const SpilledRecord& record : records) {
      const SavedAs as = as_of(record.key);
      if (options_.selection.has(record.key) || selects(options_.selection, as)) selected.insert(id_of(as));
    }
    std::erase_if(records,
                  [&](const SpilledRecord& record) { return !selected.contains(id_of(as_of(record.key))); });
    const std::unordered_set<std::uint64_t> ours = ours_among(records);
    for (const SpilledRecord& record : records) {
      const SavedAs as = as_of(record.key);
      const std::uint64_t id = id_of(as);
      const bool of_structure = ours.contains(id);
      if (!(of_structure ? selects(options_.selection, as) : options_.selection.has(record.key))) continue;
      ++report_.servers[record.from].keys;
      if (!of_structure) {
        add_item(record);
      } else if (as.what == Savable::never || !options_.structures) {
        ++report_.skipped[as.what == Savable::never ? as.why : "structures"];
      } else {
        add_to(groups_, id, record);
      }
    }
  }

  // Returns the ids of the structures that exist.
  std::unordered_set<std::uint64_t> ours_among(const Records& records) {
    std::unordered_set<std::uint64_t> ours;
    Records some;
    std::size_t bytes = 0;
    const auto read_some = [&] {
      bytes = 0;
      const Reading reading = begin(std::exchange(some, {}));
      const std::vector<Reply> replies = reading.pending->finish();
      for (std::size_t i = 0; i < replies.size(); ++i) {
        const std::string& key = reading.records[i].key;
        const SavedAs as = as_of(key);
        if (replies[i].outcome == Outcome::hit && is_of(as, key, replies[i].value, replies[i].flags))
          ours.insert(id_of(as));
      }
    };
    for (const SpilledRecord& record : records) {
      if (!as_of(record.key).tells) continue;
      bytes += moving::reckoned_size(record.size_bytes);
      some.push_back(record);
      if (some.size() >= batch_items || bytes >= batch_bytes) read_some();
    }
    if (!some.empty()) read_some();
    return ours;
  }

  SavedAs as_of(std::string_view key) const { return saved_as(key, options_.selection.key_prefix); }
  static std::uint64_t id_of(const SavedAs& as) { return key_hash::xxh3(as.root); }
  std::string structure_of(const SpilledRecord& record) const { return full_name(as_of(record.key)); }
  // Returns why the item must not be saved with this value, or nullptr.
  const char* why_not(const SpilledRecord& record, const Reply& reply) const {
    const SavedAs as = judged(as_of(record.key), record.key, reply.value, reply.flags);
    if (as.what == Savable::never) return as.why;
    return as.what == Savable::item || options_.structures ? nullptr : "structures";
  }

  void add_to(Groups& groups, std::uint64_t structure, const SpilledRecord& record) const {
    Group& group = groups[structure];
    ++group.keys;
    group.sum +=
        key_hash::xxh3(std::to_string(record.from) + ' ' + std::to_string(record.cas) + ' ' + record.key);
    group.comparable = group.comparable && record.cas != 0;
  }

  void write_structures() {
    Groups before = groups_;
    Names names;  // of structures that could not be saved
    for (int round = 0; round < rounds && !groups_.empty(); ++round) {
      Groups now;
      std::vector<SpillFile> spill_files(spill_file_count);
      names.clear();
      const auto again = read_([&](const LiveKey& key) {
        const SavedAs as = as_of(key.key);
        if (!as.grouped || !groups_.contains(id_of(as))) return true;
        const SpilledRecord record = spilled(key);
        add_to(now, id_of(as), record);
        spill_files[id_of(as) % spill_file_count].add(record);
        return true;
      });
      const bool complete = std::ranges::all_of(again, &LiveKeysOfServer::complete);
      Groups unchanged, saved;
      for (const auto& [structure, group] : now) {
        const auto was = before.find(structure);
        if (complete && group.comparable && was != before.end() && was->second == group)
          unchanged.emplace(structure, group);
      }
      for (SpillFile& spill_file : spill_files) {
        Records records = all_of(spill_file);
        for (const SpilledRecord& record : records) {
          const SavedAs as = as_of(record.key);
          if (!unchanged.contains(id_of(as))) names.emplace(id_of(as), full_name(as));
        }
        write_part(std::move(records), unchanged, saved, names);
      }
      // A structure without keys in this listing was removed.
      std::erase_if(groups_, [&](const auto& one) {
        return saved.contains(one.first) || (complete && !now.contains(one.first));
      });
      before = std::move(now);
    }
    for (const auto& [structure, group] : groups_) {
      const auto name = names.find(structure);
      report_.torn.push_back(name == names.end() ? "a structure on a server that does not answer"
                                                 : name->second);
    }
    std::ranges::sort(report_.torn);
  }

  // Saves the unchanged structures among `records`, which hold all their keys.
  void write_part(Records records, const Groups& unchanged, Groups& saved, Names& names) {
    struct Keyed {
      std::uint64_t structure;
      SpilledRecord record;
      int rank;
    };
    std::vector<Keyed> keyed;
    for (SpilledRecord& record : records) {
      const std::uint64_t structure = id_of(as_of(record.key));
      if (!unchanged.contains(structure)) continue;
      const int rank = rank_of(record, options_.selection.key_prefix);
      keyed.push_back({structure, std::move(record), rank});
    }
    std::ranges::sort(keyed, [](const Keyed& one, const Keyed& other) {
      return std::tuple(one.structure, one.rank, other.record.key.size()) <
             std::tuple(other.structure, other.rank, one.record.key.size());
    });
    for (std::size_t first = 0; first < keyed.size();) {
      // Read whole structures, as many as fit into a batch.
      Records some;
      std::vector<std::pair<std::uint64_t, std::size_t>> ends;
      std::size_t bytes = 0;
      while (first < keyed.size() && (some.empty() || (some.size() < batch_items && bytes < batch_bytes))) {
        const std::uint64_t structure = keyed[first].structure;
        for (; first < keyed.size() && keyed[first].structure == structure; ++first) {
          bytes += moving::reckoned_size(keyed[first].record.size_bytes);
          some.push_back(std::move(keyed[first].record));
        }
        ends.emplace_back(structure, some.size());
      }
      Reading reading = begin(std::move(some));
      std::vector<Reply> replies = replies_of(reading);
      std::span<SpilledRecord> left(reading.records);
      std::span<Reply> left_replies(replies);
      std::size_t from = 0;
      for (const auto& [structure, end] : ends) {
        if (write_whole(left.subspan(from, end - from), left_replies.subspan(from, end - from)))
          saved.emplace(structure, Group{});
        else
          names.emplace(structure, structure_of(left[from]));
        from = end;
      }
      watch_.progress(done_ += replies.size());
    }
  }

  // Returns false if any item of the structure has changed.
  bool write_whole(std::span<SpilledRecord> records, std::span<Reply> replies) {
    for (std::size_t i = 0; i < records.size(); ++i) {
      // Structures expect their items to expire, so an expired one may be missing.
      if (!end_of(records[i])) continue;
      if (replies[i].outcome != Outcome::hit || replies[i].cas.value != records[i].cas ||
          !SavedWriter::can_save(records[i].key))
        return false;
    }
    ++report_.structures;
    for (std::size_t i = 0; i < records.size(); ++i) {
      const auto end = end_of(records[i]);
      SavedServer& server = report_.servers[records[i].from];
      if (!end || replies[i].outcome != Outcome::hit) {
        ++server.expired;
        continue;
      }
      ++server.saved;
      writer_->from(records[i].from);
      writer_->add(records[i].key, replies[i].flags, *end, replies[i].value);
    }
    return true;
  }

  void write_items() {
    std::deque<Reading> reading;
    Records next;
    std::size_t bytes = 0;
    for (auto& spill_file : spill_files_) {
      if (!spill_file) continue;
      spill_file->for_each([&](SpilledRecord record) {
        bytes += moving::reckoned_size(record.size_bytes);
        next.push_back(std::move(record));
        if (next.size() < batch_items && bytes < batch_bytes) return;
        reading.push_back(begin(std::exchange(next, {})));
        bytes = 0;
        if (reading.size() < batches_in_flight) return;
        finish(std::move(reading.front()));
        reading.pop_front();
      });
      spill_file.reset();
    }
    if (!next.empty()) reading.push_back(begin(std::move(next)));
    for (Reading& one : reading) finish(std::move(one));
  }

  Reading begin(Records records) {
    limiter_.wait_for(records.size(), context_.clock);
    std::vector<Request> probes;
    probes.reserve(records.size());
    for (const SpilledRecord& record : records) probes.push_back(Request::probe(record.key, record.from));
    return {std::move(records), context_.clock.wall(), context_.cluster.begin(std::move(probes))};
  }

  void finish(Reading reading) {
    const std::vector<Reply> replies = replies_of(reading);
    std::vector<std::size_t> order(replies.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return reading.records[i].from; });
    for (const std::size_t i : order) keep(reading.records[i], replies[i]);
    watch_.progress(done_ += replies.size());
  }

  std::vector<Reply> replies_of(Reading& reading) {
    std::vector<Reply> replies = reading.pending->finish();
    std::vector<SpilledRecord*> records;
    for (SpilledRecord& record : reading.records) records.push_back(&record);
    moving::read_touched_again(context_.cluster, clocks_, records, replies, reading.asked,
                               context_.clock.wall());
    return replies;
  }

  void keep(SpilledRecord& record, const Reply& reply) {
    SavedServer& server = report_.servers[record.from];
    const auto fail = [&](const Failure& failure) {
      ++server.failed;
      watch_.failed(record.key, failure);
    };
    if (reply.failed()) return fail(failure_of_read(context_.cluster, reply));
    const auto end = end_of(record);
    if (!end) {
      ++server.expired;
    } else if (reply.outcome != Outcome::hit) {
      ++server.vanished;
    } else if (const char* why = why_not(record, reply)) {
      ++report_.skipped[why];
    } else if (!SavedWriter::can_save(record.key)) {
      fail({ErrorCode::refused,
            "the key has spaces or control characters and more than 186 bytes, which no text command can "
            "carry",
            context_.cluster.address_of(record.from)});
    } else {
      ++server.saved;
      writer_->from(record.from);
      writer_->add(record.key, reply.flags, *end, reply.value);
    }
  }

  // Returns the expiry by our clock, 0 for never, or nullopt if the item has expired.
  std::optional<std::int64_t> end_of(const SpilledRecord& record) const {
    if (record.expires_s == 0) return 0;
    const auto clock = clocks_[record.from].value_or(moving::ClockLook{});
    const std::int64_t end = record.expires_s + moving::seconds_ahead(clock, moving::ClockLook{});
    if (end <= whole_seconds(context_.clock.wall())) return std::nullopt;
    return end;
  }

  JsonObject first_words() const {
    std::vector<std::string> servers;
    for (const Server& server : context_.cluster.placement().pool()) servers.push_back(server.address());
    JsonObject about;
    return about.number("format", 2).time("started", started_).strings("servers", servers);
  }

  // Adds the server list and the sample by which item load judges a profile.
  JsonObject with_places(JsonObject about) const {
    std::vector<std::string> list, keys, on;
    for (const Server& server : context_.cluster.placement().pool()) list.push_back(list_entry(server));
    for (const KeyLocation& location : sample_.keys()) {
      for (const std::size_t server : location.servers) {
        keys.push_back(location.key);
        on.push_back(std::to_string(server));
      }
    }
    about.strings("list", list).bytes("profile", context_.cluster.placement().profile());
    return about.strings("sample", keys).raw("sample_on", '[' + joined(on, ",") + ']');
  }

  Context context_;
  SaveOptions options_;
  SavedWriter::Sink sink_;
  ReadLiveKeys read_;
  SaveWatch watch_;
  moving::Clocks clocks_;
  WallTime started_;
  RateLimiter limiter_;
  std::unique_ptr<SavedWriter> writer_;
  static constexpr std::size_t heats = 64;
  // By time since the last use, then the same for copies where clients do not look.
  std::array<std::optional<moving::SpillFile>, 2 * heats> spill_files_;
  // Keys named like those of structures, all keys of a structure in one spill file, until their values are
  // read.
  std::array<std::optional<moving::SpillFile>, spill_file_count> candidates_;
  Groups groups_;
  std::uint64_t done_ = 0;
  PlacementSample sample_;
  SaveReport report_;
};

}  // namespace

SaveReport save_pool(const Context& context, const SaveOptions& options, const SavedWriter::Sink& sink,
                     const ReadLiveKeys& read, const SaveWatch& watch) {
  return Saving(context, options, sink, read, watch).run();
}

}  // namespace mcds
