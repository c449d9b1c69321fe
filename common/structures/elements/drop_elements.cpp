// Drops a table or hash: removes the elements that its index lists, then each shard as it was read, and the
// manifest last, so that a second drop finds what an interrupted one has left.
//
// An element that is set after the index was read stays, with its shard. A client that has listed a name and
// not yet added its element (steps 2 to 4 in set.cpp) is recognized by a young line whose name is absent or
// has a second line. drop then waits until 2 s after it read the index: by then the element exists and stays,
// or its client lists it again (step 5). Before a shard is removed, the manifest records it, so a crash
// leaves nothing that looks lost.
//
// drop may leave behind: segments of a shard, if it crashes right after removing the root; with several
// copies tombstones, for an hour; an empty shard that a fetch created again meanwhile; the manifest's entry
// of a shard whose creator paused for more than 2 s, which is reported as a loss until the next drop or
// accept().
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "common/primitives/cas_update.hpp"
#include "common/structures/elements/elements.hpp"
#include "common/structures/elements/index_lines.hpp"

namespace mcds {

namespace {

constexpr std::size_t few_at_once = 64;
constexpr std::size_t max_at_once = 1024;
constexpr std::size_t bytes_at_once = 2 << 20;
constexpr int max_removals = 4;  // while others compact or repair the index

}  // namespace

class Elements::Dropping {
 public:
  explicit Dropping(const Elements& elements) : elements_(elements) {}

  // Returns true if there was anything.
  bool run() {
    const auto done = attempt([&] { return drop(); });
    if (!done.failure()) return done.value();
    if (!removes_ || done.failure()->code() == ErrorCode::bad_data) raise(*done.failure());
    throw UnknownOutcome(std::string("some elements may have been removed, then: ") + done.failure()->what() +
                             "; run the drop again",
                         done.failure()->server());
  }

 private:
  // The lines of the index for one name.
  struct Listed {
    std::size_t lines = 0;  // of the copy that has most
    bool young = false;
  };
  using Names = std::unordered_map<std::string, Listed>;

  bool drop() {
    if (!read(true)) return false;
    resolve_uncertain();
    for (int round = 1; !remove_shards() && round < max_removals; ++round) static_cast<void>(read(false));
    end();
    return true;
  }

  // Returns the roots of each copy, its manifest first. Throws if one cannot be read.
  std::vector<JournalReader> readers() const {
    auto all = expect_all(elements_.copies_.each([&](std::size_t copy) {
      return JournalReader(elements_.copies_.at(copy), elements_.index(copy).keys(),
                           JournalReader::RootRead::to_compare);
    }));
    for (const JournalReader& reader : all) {
      for (std::size_t i = 0; i <= index_shards; ++i) {
        if (reader.failed(i)) raise(*reader.failure(i));
      }
    }
    return all;
  }

  // Reads the index. With `first`, removes the elements that it lists; later, a shard that lists more stays.
  // Returns false if there is nothing.
  bool read(bool first) {
    auto all = readers();
    if (first) read_at_ = elements_.context_.clock.steady();
    shards_.assign(all.size(), {});
    bool found = std::ranges::any_of(all, [](const JournalReader& reader) { return reader.found(0); });
    for (std::size_t shard = 0; shard < index_shards; ++shard) {
      auto copies =
          expect_all(elements_.copies_.each([&](std::size_t copy) { return all[copy].take(shard + 1); }));
      Names names;
      for (std::size_t copy = 0; copy < copies.size(); ++copy) {
        JournalContents& contents = copies[copy];
        if (!contents.found) continue;
        found = true;
        if (first)
          take_names(contents, shard, names);
        else if (lists_more(contents, shard))
          staying_.insert(shard);
        contents.lines.clear();
        shards_[copy].emplace(shard, std::move(contents));
      }
      remove_elements(names, shard);
    }
    return found;
  }

  void take_names(const JournalContents& contents, std::size_t shard, Names& names) {
    const std::int64_t now = unix_seconds(elements_.context_.clock.wall());
    Names here;
    for (const JournalLine& line : contents.lines) {
      if (line.change != Change::add) continue;
      known_[shard].insert(digest_of_name(line.id));
      for_each_quoted(line.element, [&](std::string_view quoted) {
        auto name = unquote_bytes(quoted);
        if (!name) return;
        Listed& listed = here[*std::move(name)];
        ++listed.lines;
        listed.young = listed.young || !is_old(line.id, now);
      });
    }
    for (const auto& [name, listed] : here) {
      Listed& all = names[name];
      // A lost part may have listed it too.
      all.lines = std::max(all.lines, listed.lines + (contents.loss.any() ? 1 : 0));
      all.young = all.young || listed.young;
    }
  }

  bool lists_more(const JournalContents& contents, std::size_t shard) {
    return std::ranges::any_of(contents.lines, [&](const JournalLine& line) {
      return line.change == Change::add && !known_[shard].contains(digest_of_name(line.id));
    });
  }

  void remove_elements(const Names& names, std::size_t shard) {
    std::vector<std::string> window;
    const auto flush = [&] {
      const std::vector<bool> present = remove(window, shard);
      for (std::size_t i = 0; i < window.size(); ++i) {
        const Listed& listed = names.at(window[i]);
        // A client that has listed the name may be about to write it.
        if (listed.young && (!present[i] || listed.lines > 1)) uncertain_.emplace_back(window[i], shard);
      }
      window.clear();
    };
    for (const auto& [name, listed] : names) {
      window.push_back(name);
      if (window.size() >= window_) flush();
    }
    if (!window.empty()) flush();
  }

  // Removes the elements and returns whether each existed. Those that another client changes meanwhile stay.
  std::vector<bool> remove(const std::vector<std::string>& names, std::size_t shard) {
    return elements_.versions_.in_use() ? remove_copies(names, shard) : remove_only(names, shard);
  }

  std::vector<bool> remove_copies(const std::vector<std::string>& names, std::size_t shard) {
    removes_ = true;
    const Removals removals = elements_.remove_copies(names);
    std::vector<bool> present;
    for (const ElementResult& result : removals.results) {
      if (result.failure) raise(*result.failure);
      present.push_back(result.yes);
    }
    if (!removals.changed.empty()) staying_.insert(shard);
    return present;
  }

  std::vector<bool> remove_only(const std::vector<std::string>& names, std::size_t shard) {
    Cluster& cluster = elements_.context_.cluster;
    std::vector<Request> gets, removals;
    for (std::string& key : elements_.keys_of(names)) gets.push_back(Request::gets(std::move(key)));
    std::vector<bool> present;
    std::size_t bytes = 0;
    for (const Reply& reply : cluster.execute(gets)) {
      const bool hit = expect_read(cluster, reply).outcome == Outcome::hit;
      bytes += reply.value.size();
      if (hit) expect_cas(cluster, reply.server, reply.cas);
      if (hit) removals.push_back(Request::remove_if(gets[present.size()].key, reply.cas));
      present.push_back(hit);
    }
    window_ = std::clamp(bytes_at_once / (bytes / names.size() + 1), std::size_t{1}, max_at_once);
    if (removals.empty()) return present;
    removes_ = true;
    for (const Reply& reply : cluster.execute(removals)) {
      if (expect(cluster, reply).outcome == Outcome::exists) staying_.insert(shard);
    }
    return present;
  }

  // Waits until clients that had listed these names before the read have written or listed them again.
  void resolve_uncertain() {
    if (uncertain_.empty()) return;
    const Duration passed = elements_.context_.clock.steady() - read_at_;
    if (passed < ElementIndex::settles_after)
      elements_.context_.clock.sleep_for(ElementIndex::settles_after - passed);
    for (std::size_t first = 0; first < uncertain_.size(); first += few_at_once) {
      const std::size_t count = std::min(few_at_once, uncertain_.size() - first);
      std::vector<std::string> names;
      for (std::size_t i = first; i < first + count; ++i) names.push_back(uncertain_[i].first);
      const auto results = elements_.get_here(names);
      for (std::size_t i = 0; i < count; ++i) {
        if (results[i].failure) raise(*results[i].failure);
        if (results[i].yes) staying_.insert(uncertain_[first + i].second);
      }
    }
  }

  // Removes, in every copy, the shards that list nothing more. Returns false if one has changed since the
  // read.
  bool remove_shards() {
    std::vector<std::vector<std::string>> entries(shards_.size());
    for (std::size_t copy = 0; copy < shards_.size(); ++copy) {
      for (const auto& [shard, seen] : going(copy))
        entries[copy].push_back(manifest_entry(shard, seen.incarnation));
      dropped_.insert(entries[copy].begin(), entries[copy].end());
    }
    expect_all(elements_.copies_.each(
        [&](std::size_t copy) { elements_.index(copy).say_dropped(entries[copy], true); }));
    const auto unchanged = expect_all(elements_.copies_.each([&](std::size_t copy) {
      std::vector<JournalContents> seen;
      for (auto& [shard, contents] : going(copy)) seen.push_back(contents);
      if (seen.empty()) return true;
      removes_ = true;
      const auto removed = remove_journals(elements_.copies_.at(copy), seen);
      return std::ranges::find(removed, false) == removed.end();
    }));
    return std::ranges::all_of(unchanged, std::identity());
  }

  std::map<std::size_t, JournalContents> going(std::size_t copy) const {
    std::map<std::size_t, JournalContents> going = shards_[copy];
    std::erase_if(going, [&](const auto& shard) { return staying_.contains(shard.first); });
    return going;
  }

  // Records shards that stay, so that their loss is reported, and removes a manifest without existing shards.
  void end() {
    auto all = readers();
    expect_all(elements_.copies_.each([&](std::size_t copy) {
      bool any = false;
      std::vector<std::string> entries;
      for (std::size_t shard = 0; shard < index_shards; ++shard) {
        if (!all[copy].found(shard + 1)) continue;
        any = true;
        std::string entry = manifest_entry(shard, all[copy].incarnation(shard + 1));
        if (dropped_.contains(entry)) entries.push_back(std::move(entry));
      }
      elements_.index(copy).say_dropped(entries, false);
      const JournalContents manifest = all[copy].take(0);
      if (manifest.found && !any)
        static_cast<void>(remove_journals(elements_.copies_.at(copy), std::span(&manifest, 1)));
    }));
  }

  const Elements& elements_;
  SteadyTime read_at_{};
  std::vector<std::map<std::size_t, JournalContents>> shards_;  // per copy, without their lines
  std::array<std::unordered_set<std::uint64_t>, index_shards>
      known_;                      // digests of the line ids that were read first
  std::set<std::size_t> staying_;  // shards with newer lines or elements
  std::set<std::string> dropped_;  // entries of the manifest
  std::vector<std::pair<std::string, std::size_t>> uncertain_;  // names and their shards
  std::size_t window_ = few_at_once;
  bool removes_ = false;  // something may have been removed
};

bool Elements::drop() {
  if (Dropping(*this).run()) return true;
  expect_here();
  return false;
}

}  // namespace mcds
