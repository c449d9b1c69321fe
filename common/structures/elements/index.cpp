// Reads and compacts an index; listing.cpp writes it.
#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <unordered_set>

#include "common/base/distinct.hpp"
#include "common/base/json.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/structures/elements/index_lines.hpp"

namespace mcds {

namespace {

constexpr std::size_t names_per_question = 4096;
constexpr std::size_t max_repeated_names = std::size_t{1} << 18;  // in memory
constexpr int max_checks = 4;  // reads of roots that seem to contradict the manifest
constexpr BackOff poll_interval{std::chrono::milliseconds(5), std::chrono::milliseconds(40)};

void drop_repeated(std::vector<std::string>& names) {
  keep_first_of_each(names, [](const std::string& name) { return std::string_view(name); });
}

}  // namespace

std::uint64_t digest_of_name(std::string_view name) {
  return std::hash<std::string_view>{}(name);
}

// The roots of manifest and shards as of one look.
struct ElementIndex::Roots {
  Roots(const Context& context, std::span<const std::string> keys) : reader(context, keys) {
    if (reader.failed(0)) return;
    const JournalContents manifest = reader.take(0);
    manifest_found = manifest.found;
    for (const JournalLine& line : manifest.lines) {
      if (line.element == loss_mark) {
        loss_recorded = line.change == Change::add;
      } else if (line.change == Change::add) {
        named.insert(line.element);
        dropped.erase(line.element);
      } else if (line.change == Change::remove) {
        dropped.insert(line.element);
      }
    }
    manifest_lost = manifest.loss.any();
    stale = named;
    for (std::size_t shard = 0; shard < index_shards; ++shard) {
      if (reader.failed(shard + 1)) forget_entries_of(shard);
      if (!reader.found(shard + 1)) continue;
      std::string entry = manifest_entry(shard, reader.incarnation(shard + 1));
      if (stale.erase(entry) == 0) unnamed.emplace(shard, reader.incarnation(shard + 1));
    }
    for (const std::string& entry : dropped) {
      if (stale.erase(entry) != 0) ended.insert(entry);
    }
  }
  bool whole() const { return !manifest_lost && unnamed.empty() && stale.empty(); }
  // Returns true if there is an index, as far as is known.
  bool any() const {
    for (std::size_t i = 0; i <= index_shards; ++i) {
      if (reader.failed(i) || reader.found(i)) return true;
    }
    return !stale.empty() || manifest_lost;
  }
  // A shard on a server that does not answer does not count as lost.
  void forget_entries_of(std::size_t shard) {
    std::erase_if(stale,
                  [&](const std::string& entry) { return entry.starts_with(std::to_string(shard) + ':'); });
  }
  // Throws the first failure.
  void expect_all() {
    for (std::size_t i = 0; i <= index_shards; ++i) {
      if (reader.failed(i)) static_cast<void>(reader.take(i));
    }
  }

  JournalReader reader;
  bool manifest_found = false;
  bool manifest_lost = false;
  bool loss_recorded = false;
  bool certain = true;                         // false: a shard that seems lost may only not be named yet
  std::map<std::size_t, std::string> unnamed;  // existing shards that the manifest does not name
  std::set<std::string> named;                 // entries of the manifest
  std::set<std::string> dropped;               // entries whose shards drop is removing
  std::set<std::string> ended;                 // entries of `dropped` whose shards no longer exist
  std::set<std::string> stale;                 // other entries whose shards no longer exist
};

// Creating a shard and naming it are two steps, and the roots are not read as a snapshot. Therefore a shard
// that seems lost is read again.
std::unique_ptr<ElementIndex::Roots> ElementIndex::roots(bool despite_failures) const {
  const std::vector<std::string> all = keys();
  for (int look = 1;; ++look) {
    auto roots = std::make_unique<Roots>(context_, all);
    if (!despite_failures) roots->expect_all();
    name_new(*roots);
    if (roots->whole() || look == max_checks) return roots;
    back_off(context_, look, poll_interval);
  }
}

// Names the shards whose creators may have crashed before they named them.
void ElementIndex::name_new(Roots& roots) const {
  if (roots.unnamed.empty() || roots.reader.failed(0)) return;
  const auto is_new = [&](const auto& shard) {
    const JournalContents contents = Journal(context_, shard_key(shard.first)).read();
    if (contents.incarnation != shard.second) return false;
    const auto says = [&](std::string_view word) {
      return std::ranges::any_of(contents.lines, [&](const JournalLine& line) {
        return line.change == Change::remove && line.element == word;
      });
    };
    return says(born_mark) && !says(std::string(named_mark) + shard.second);
  };
  // A shard that is not named now is named by the next client that looks.
  const auto named = attempt([&] {
    auto found = roots.unnamed;
    std::erase_if(found, std::not_fn(is_new));
    std::erase_if(roots.unnamed, [&](const auto& shard) { return found.contains(shard.first); });
    name_in_manifest(found);
    std::vector<Request> marks;
    for (const auto& [shard, incarnation] : found) marks.push_back(mark(shard, incarnation));
    if (!marks.empty()) static_cast<void>(context_.cluster.execute(marks));
  });
  roots.certain = roots.certain && !named.failure();
}

ElementIndex::Look::Look(Look&&) noexcept = default;
ElementIndex::Look::~Look() = default;

ElementIndex::Look::Look(std::unique_ptr<Roots> roots, std::int64_t now)
    : roots_(std::move(roots)), now_(now) {
  set_states();
}

void ElementIndex::Look::set_states() {
  const JournalReader& reader = roots_->reader;
  manifest_whole_ = !reader.failed(0) && !roots_->manifest_lost && roots_->unnamed.empty();
  for (std::size_t shard = 0; shard < index_shards; ++shard) {
    const bool found = reader.found(shard + 1);
    states_[shard] = reader.failed(shard + 1) ? Shard::unreachable : found ? Shard::whole : Shard::absent;
  }
  for (const std::string& entry : roots_->stale) {
    const auto shard = parse_u64(entry.substr(0, entry.find(':'))).value_or(0) % index_shards;
    if (states_[shard] != Shard::unreachable) states_[shard] = Shard::lost;
  }
}

void ElementIndex::Look::reconcile(std::span<Look> copies) {
  std::set<std::string> named, there;
  for (const Look& copy : copies) {
    const JournalReader& reader = copy.roots_->reader;
    named.insert(copy.roots_->named.begin(), copy.roots_->named.end());
    there.insert(copy.roots_->dropped.begin(), copy.roots_->dropped.end());
    for (std::size_t shard = 0; shard < index_shards; ++shard) {
      if (!reader.failed(shard + 1) && reader.found(shard + 1))
        there.insert(manifest_entry(shard, reader.incarnation(shard + 1)));
    }
  }
  for (Look& copy : copies) {
    std::erase_if(copy.roots_->stale, [&](const std::string& entry) { return there.contains(entry); });
    std::erase_if(copy.roots_->unnamed, [&](const auto& shard) {
      return named.contains(manifest_entry(shard.first, shard.second));
    });
    copy.set_states();
  }
}

const std::optional<Failure>& ElementIndex::Look::manifest_failure() const {
  return roots_->reader.failure(0);
}

bool ElementIndex::Look::loss_recorded() const {
  return roots_->loss_recorded;
}

bool ElementIndex::Look::certain() const {
  return roots_->certain && roots_->manifest_found &&
         std::ranges::find(states_, Shard::unreachable) == states_.end();
}

std::vector<std::string> ElementIndex::Look::take(std::size_t shard) {
  if (!roots_->reader.failed(shard + 1) && !roots_->reader.found(shard + 1)) return {};
  JournalReading reading = roots_->reader.read_whole(shard + 1);
  std::vector<std::string> names;
  std::size_t limit = max_repeated_names;
  names.reserve(reading.bytes() / 8);  // few names are shorter; pages that are not used cost nothing
  reading.report_lines([&](const JournalLineView& line) {
    if (line.change() == Change::remove) return;
    ++lines_;
    if (line.change() != Change::add) return;
    const bool old = is_old(line.id(), now_);
    for_each_quoted(line.element(), [&](std::string_view quoted) {
      ++names_[shard].listed;
      if (old) ++names_[shard].old;
      if (auto name = unquote_bytes(quoted)) names.push_back(std::move(*name));
      if (names.size() < limit) return;
      drop_repeated(names);
      limit = std::max(limit, 2 * names.size());
    });
  });
  ++shards_;
  if (reading.contents.loss.any()) states_[shard] = Shard::lost;
  drop_repeated(names);
  return names;
}

ElementIndex::Look ElementIndex::look(bool despite_failures) const {
  return {roots(despite_failures), unix_seconds(context_.clock.wall())};
}

std::vector<std::string> ElementIndex::keys() const {
  std::vector<std::string> keys{manifest_key()};
  for (std::size_t shard = 0; shard < index_shards; ++shard) keys.push_back(shard_key(shard));
  return keys;
}

// Returns the lines that compaction keeps. It drops a line only if it finds the element absent after the
// shard was read, and only if the line is older than the grace, or is the only one of a name in `removed` and
// settled. A client that has listed a name and not yet added the element (steps 2 to 4 in set.cpp) has a
// younger line, or lists the name again (step 5). A line that is appended during compaction makes its cas
// fail or follows what it compacted.
std::vector<JournalLine> ElementIndex::still_needed(const std::vector<JournalLine>& lines,
                                                    RemovedNames* removed) const {
  const std::int64_t now = unix_seconds(context_.clock.wall());
  // The number of lines that list a name, counted only if names were removed.
  std::unordered_map<std::uint64_t, std::size_t> times;
  for (const JournalLine& line : lines) {
    if (line.change != Change::add || removed == nullptr) continue;
    for_each_quoted(line.element, [&](std::string_view quoted) { ++times[digest_of_name(quoted)]; });
  }
  const auto is_settled = [&](const std::string& name, const JournalLine& line, std::string_view quoted) {
    if (removed == nullptr || times[digest_of_name(quoted)] != 1 ||
        !std::ranges::binary_search(removed->digests, digest_of_name(name)))
      return false;
    if (removed->settled.contains(digest_of_name(line.id))) return true;
    removed->seen.insert(digest_of_name(line.id));
    removed->waiting.insert(digest_of_name(name));
    return false;
  };
  std::unordered_set<std::string_view> seen;
  std::vector<JournalLine> kept;
  std::vector<std::string> names;
  std::vector<std::pair<std::size_t, std::string_view>> uncertain;  // in kept, if present
  const auto ask = [&] {
    const std::vector<bool> present = present_(names);
    for (std::size_t i = 0; i < uncertain.size(); ++i) {
      if (present[i]) append_quoted(kept[uncertain[i].first].element, uncertain[i].second);
    }
    names.clear();
    uncertain.clear();
  };
  std::ranges::copy_if(lines, std::back_inserter(kept), is_mark);
  // The youngest of several old lines of one name stays. All young lines stay, because drop counts them.
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (line->change != Change::add) continue;
    const bool old = is_old(line->id, now);
    JournalLine& left = kept.emplace_back(JournalLine{line->change, line->id, {}});
    for_each_quoted(line->element, [&](std::string_view quoted) {
      auto name = unquote_bytes(quoted);
      if (!name || (!old && !is_settled(*name, *line, quoted))) return append_quoted(left.element, quoted);
      if (!seen.insert(quoted).second) return;
      names.push_back(std::move(*name));
      uncertain.emplace_back(kept.size() - 1, quoted);
    });
    if (names.size() >= names_per_question) ask();
  }
  if (!names.empty()) ask();
  std::erase_if(kept, [](const JournalLine& line) { return line.element.empty(); });
  require(kept.size() <= lines.size(), "a compaction adds nothing");
  return kept;
}

void ElementIndex::compact(std::size_t shard, std::size_t max_segments, RemovedNames* removed) const {
  const auto size = [](const std::vector<JournalLine>& lines) {
    std::size_t bytes = 0;
    for (const JournalLine& line : lines) {
      if (line.change == Change::add) bytes += line.id.size() + line.element.size();
    }
    return bytes;
  };
  const auto rewrite = [&](const auto& lines) {
    auto kept = still_needed(lines, removed);
    return 2 * size(kept) > size(lines) ? std::nullopt : std::optional(std::move(kept));
  };
  // A shard with segments is sealed first, so each attempt that drops nothing would leave another one.
  const JournalContents there = journal(shard_key(shard)).read();
  if (there.segments.size() > max_segments || (!there.segments.empty() && !rewrite(there.lines))) return;
  static_cast<void>(journal(shard_key(shard)).compact(rewrite, false, max_segments));
}

// Names are sampled by their digests, so that all lines of a name are in the sample or none.
bool ElementIndex::may_be_half_dead(std::size_t shard) const {
  constexpr std::size_t max_sampled = 128;
  const std::string key = shard_key(shard);
  JournalReader reader(context_, std::span(&key, 1));
  if (reader.failed(0) || !reader.found(0)) return false;
  const std::int64_t now = unix_seconds(context_.clock.wall());
  std::size_t listed = 0, old = 0;
  std::uint64_t stride = 1;
  std::unordered_map<std::string, std::size_t> lines;  // per name of the sample
  reader.read_whole(0).report_lines([&](const JournalLineView& line) {
    if (line.change() != Change::add) return;
    const bool counts = is_old(line.id(), now);
    for_each_quoted(line.element(), [&](std::string_view quoted) {
      ++listed;
      if (!counts) return;
      ++old;
      if (digest_of_name(quoted) % stride == 0) ++lines[std::string(quoted)];
      if (lines.size() <= max_sampled) return;
      stride *= 2;
      std::erase_if(lines, [&](const auto& name) { return digest_of_name(name.first) % stride != 0; });
    });
  });
  if (2 * old < listed || lines.empty()) return false;
  std::vector<std::string> names;
  std::size_t sampled = 0;
  for (const auto& [quoted, times] : lines) {
    sampled += times;
    if (auto name = unquote_bytes(quoted)) names.push_back(*std::move(name));
  }
  const auto live = static_cast<std::size_t>(std::ranges::count(present_(names), true));
  // Returns true if two fifths of the names are dead, because the sample may miss some of one half.
  return 5 * (sampled - live) * old >= 2 * sampled * listed;
}

bool ElementIndex::accept() {
  const std::unique_ptr<Roots> found = roots(beside_copies_);
  if (!found->any()) return false;
  name_in_manifest(found->unnamed);
  for (std::size_t shard = 0; shard < index_shards; ++shard) {
    if (!found->reader.found(shard + 1)) continue;
    static_cast<void>(
        journal(shard_key(shard)).compact([&](const auto& lines) { return still_needed(lines); }, true));
  }
  const std::int64_t now = unix_seconds(context_.clock.wall());
  const auto without_stale = [&](std::vector<JournalLine> lines) {
    std::set<std::string> dropping;  // by a drop that may still run, and must find what it recorded
    for (const JournalLine& line : lines) {
      if (line.change == Change::add) dropping.erase(line.element);
      if (line.change == Change::remove && !is_old(line.id, now)) dropping.insert(line.element);
    }
    std::erase_if(lines, [&](const JournalLine& line) {
      if (line.element != loss_mark && dropping.contains(line.element)) return false;
      return line.change != Change::add || line.element == loss_mark || found->stale.contains(line.element) ||
             found->ended.contains(line.element);
    });
    return lines;
  };
  static_cast<void>(journal(manifest_key()).compact(without_stale, true));
  return true;
}

}  // namespace mcds
