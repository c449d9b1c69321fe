#include "common/structures/array/array.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "common/base/bytes.hpp"
#include "common/base/json.hpp"
#include "common/primitives/cas_update.hpp"

namespace mcds {

namespace {

// A change that returns what it deleted reads the journal afterwards. Therefore its ids begin with this, and
// compaction keeps what the last of these changes removed.
constexpr std::string_view to_report = "7e11";
constexpr std::size_t max_reported = 64;
// fetch compacts a journal that has this many lines or more than one item.
constexpr std::size_t min_lines = 1024;

bool could_be_a_part(std::string_view name) {
  if (name.ends_with(":json")) return true;
  const auto segment = name.rfind(":s:");
  return segment != std::string_view::npos && is_identifier(name.substr(segment + 3));
}

// Returns one index for each line: of an addition that was removed, that of the line that removed it, and of
// every other line its own.
std::vector<std::uint32_t> removed_by(std::span<const JournalLineView> lines) {
  std::vector<std::uint32_t> by(lines.size());
  std::iota(by.begin(), by.end(), std::uint32_t{0});
  // Most elements are never removed, and need no memory for their places.
  std::unordered_map<std::string_view, std::vector<std::uint32_t>> places;
  for (const JournalLineView& line : lines) {
    if (line.change() == Change::remove) places[line.element()];
  }
  std::uint32_t cleared = 0;  // the lines before this are cleared
  for (std::uint32_t i = 0; i < lines.size(); ++i) {
    const JournalLineView& line = lines[i];
    if (line.change() == Change::clear) {
      for (; cleared < i; ++cleared) {
        if (lines[cleared].change() == Change::add && by[cleared] == cleared) by[cleared] = i;
      }
    }
    const auto found = places.find(line.element());
    if (found == places.end()) continue;
    if (line.change() == Change::add) found->second.push_back(i);
    if (line.change() != Change::remove) continue;
    for (const std::uint32_t place : std::exchange(found->second, {})) {
      if (place >= cleared) by[place] = i;
    }
  }
  return by;
}

// Returns the index where the last changes that return what they deleted begin.
std::size_t changes_to_be_told(std::span<const JournalLineView> lines) {
  std::size_t first = lines.size();
  std::size_t changes = 0;
  std::string_view operation;
  for (std::size_t i = lines.size(); i-- > 0;) {
    const std::string_view id = lines[i].id();
    if (!id.starts_with(to_report) || lines[i].change() == Change::forgotten) continue;
    const std::string_view its = id.substr(0, id.find('.'));
    if (its != operation && changes++ == max_reported) break;
    operation = its;
    first = i;
  }
  return first;
}

std::vector<std::string> json_array(const std::string& value, const std::string& server) {
  auto elements = json_elements(value);
  if (!elements)
    throw CorruptData("the value is not a JSON array; does another program use this key?", server);
  return std::move(*elements);
}

void check_json(std::span<const std::string> elements) {
  for (const std::string& element : elements) {
    if (element.starts_with("b\""))
      throw Failure(ErrorCode::bad_data,
                    "a JSON array cannot hold bytes that are not UTF-8; encode them, or use a new array with "
                    "the journal encoding");
  }
}

// Returns for each line if compaction keeps it.
std::vector<bool> kept_by_compaction(std::span<const JournalLineView> lines) {
  const std::vector<std::uint32_t> by = removed_by(lines);
  const std::size_t first_told = changes_to_be_told(lines);
  std::vector<bool> kept(lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool is_left = lines[i].change() == Change::add && by[i] == i;
    const JournalLineView& remover = lines[by[i]];
    const bool is_told =
        by[i] >= first_told && remover.change() == Change::remove && remover.id().starts_with(to_report);
    kept[i] = is_left || is_told;
  }
  return kept;
}

bool is_half_dead(std::span<const JournalLineView> lines, std::size_t left) {
  const auto forgotten = std::ranges::count(lines, Change::forgotten, &JournalLineView::change);
  return lines.size() - static_cast<std::size_t>(forgotten) > 2 * left;
}

bool is_worth_compacting(const JournalContents& read, std::span<const JournalLineView> lines) {
  const bool is_small = read.segments.empty() && lines.size() < min_lines;
  if (is_small || read.loss.any()) return false;
  return is_half_dead(lines, static_cast<std::size_t>(std::ranges::count(kept_by_compaction(lines), true)));
}

}  // namespace

std::vector<std::string> replay(std::span<const JournalLineView> lines) {
  const std::vector<std::uint32_t> by = removed_by(lines);
  const auto is_left = [&](std::size_t i) { return lines[i].change() == Change::add && by[i] == i; };
  std::size_t left = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) left += is_left(i) ? 1 : 0;
  std::vector<std::string> elements;
  elements.reserve(left);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (is_left(i)) elements.emplace_back(lines[i].element());
  }
  return elements;
}

std::vector<JournalLine> compacted(std::span<const JournalLine> lines) {
  const auto keeps = kept_by_compaction(std::vector<JournalLineView>(lines.begin(), lines.end()));
  std::vector<JournalLine> kept;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (keeps[i]) kept.push_back(lines[i]);
  }
  return kept;
}

Array::Array(const Context& context, std::string_view name, const Journal::Options& options)
    : context_(context.in_copies(1)),
      key_(structure_key(context, "array", name)),
      json_key_(key_ + ":json"),
      options_(options) {
  if (could_be_a_part(name))
    throw InvalidInput(
        "an array's name must not end in ':json' or in ':s:' and a word, which are reserved for parts of "
        "arrays; use another name");
}

Array::Changed Array::change(std::span<const std::string> add, std::span<const std::string> remove,
                             std::optional<ArrayEncoding> encoding) {
  return apply({.add = add, .remove = remove, .creates = !add.empty()}, encoding);
}

Array::ChangeResult Array::change_and_report(std::span<const std::string> add,
                                             std::span<const std::string> remove) {
  std::string operation = context_.random.token();
  operation.replace(0, to_report.size(), to_report);
  ChangeResult reported{
      append({.add = add, .remove = remove, .creates = !add.empty()}, ArrayEncoding::journal, operation)};
  if (reported.changed.found && !remove.empty()) reported.deleted = deleted_by(operation, remove);
  return reported;
}

// Its lines come after everything that they deleted.
std::vector<std::string> Array::deleted_by(const std::string& operation,
                                           std::span<const std::string> remove) const {
  const auto unconfirmed_deletion = [&](const std::string& why) {
    return UnknownOutcome(
        "the values are gone, but this change may not have been the one that deleted them: " + why,
        context_.cluster.address_of(context_.cluster.placement().server_of(key_)));
  };
  auto read = attempt([&] { return journal().read_whole(); });
  // The key holds another program's value, not a journal that is too large.
  if (read.failure() && read.failure()->code() == ErrorCode::bad_data &&
      !decode_journal_root(context_.cluster.execute(Request::get(key_)).value))
    raise(*read.failure());
  if (read.failure()) throw unconfirmed_deletion(read.failure()->what());
  const std::vector<JournalLineView> lines = read.value().views();
  const JournalContents& contents = read.value().contents;
  const std::string first = journal_line_id(operation, 0);
  // Compaction may keep the id alone, without the removal.
  const auto ours = std::ranges::find_if(lines, [&](const JournalLineView& line) {
    return line.id() == first && line.change() == Change::remove;
  });
  if (ours == lines.end()) throw unconfirmed_deletion("the array was compacted or replaced since");
  if (contents.loss.any()) throw unconfirmed_deletion("a part of the array is lost");
  const std::unordered_set<std::string_view> asked(remove.begin(), remove.end());
  std::vector<std::string> deleted = replay({lines.begin(), ours});
  std::erase_if(deleted, [&](const std::string& element) { return !asked.contains(element); });
  if (is_worth_compacting(contents, lines)) compact();
  return deleted;
}

Array::Changed Array::replace(std::span<const std::string> elements, std::optional<ArrayEncoding> encoding) {
  return apply({.add = elements, .remove = {}, .replaces = true}, encoding);
}

Array::Changed Array::apply(const Step& step, std::optional<ArrayEncoding> encoding) {
  if (encoding != ArrayEncoding::json) {
    const Changed changed = append(step, encoding, context_.random.token());
    if (changed.found || encoding) return changed;
  }
  return cas_json(step);
}

// Returns found == false if there is no journal, and either there is a JSON array, or `step` creates nothing.
Array::Changed Array::append(const Step& step, std::optional<ArrayEncoding> encoding,
                             const std::string& operation) const {
  std::vector<JournalLine> lines;
  if (step.replaces) lines.push_back({Change::clear, {}, {}});
  for (const std::string& element : step.remove) lines.push_back({Change::remove, {}, element});
  for (const std::string& element : step.add) lines.push_back({Change::add, {}, element});
  for (std::size_t i = 0; i < lines.size(); ++i) lines[i].id = journal_line_id(operation, i);
  Journal::Options options = options_;
  const auto write = [&](const std::function<bool()>& may_create) {
    Journal journal(context_, key_, options);
    return step.replaces ? journal.replace(lines, may_create) : journal.append(lines, may_create);
  };
  Creation asked = Creation::needless;
  auto appended = attempt([&] {
    return write([&] {
      asked = creation(step, encoding);
      return asked == Creation::needless;
    });
  });
  // If another client creates the journal meanwhile, a request that got no reply may be executed late. The
  // lines sent now have the same ids, and of two lines with one id the second has no effect.
  const auto unanswered = appended.failure();
  const bool unknown = unanswered && unanswered->code() == ErrorCode::unknown_outcome;
  if (unanswered && !(unknown && asked == Creation::wanted)) raise(*unanswered);
  if (unanswered || appended.value().declined) {
    // The journal was full, and has disappeared since.
    if (asked == Creation::needless) asked = creation(step, encoding);
    if (asked == Creation::other || asked == Creation::unwanted)
      return {.found = false, .server = context_.cluster.placement().server_of(key_)};
    options.seems_missing = asked == Creation::wanted;
    appended = attempt([&] { return write({}); });
    if (appended.failure()) raise(unanswered ? *unanswered : *appended.failure());
  }
  if (appended.value().doubled) compact();
  return {.created = appended.value().created, .server = appended.value().server};
}

Array::Creation Array::creation(const Step& step, std::optional<ArrayEncoding> encoding) const {
  const std::vector<Request> batch{Request::get(key_), Request::get(json_key_)};
  const auto replies = context_.cluster.execute(batch);
  expect_read(context_.cluster, replies[0]);
  const bool json = expect_read(context_.cluster, replies[1]).outcome == Outcome::hit;
  if (replies[0].outcome != Outcome::miss) return Creation::needless;
  if (json && encoding == ArrayEncoding::journal) {
    throw Failure(ErrorCode::bad_data, "the array has the JSON encoding; omit --encoding and --tell",
                  context_.cluster.address_of(replies[1].server));
  }
  if (json) return Creation::other;
  return step.creates ? Creation::wanted : Creation::unwanted;
}

// Compacts the journal if more than half of its lines are dead. A claim admits one client at a time, and a
// command does it at most once. If a conflicting write or a failure prevents it, the array is as complete as
// before, and the next client tries again. Neither the contents nor the answer change.
void Array::compact() const {
  static_cast<void>(attempt([&] {
    if (!journal().claim()) return;
    bool first = true;
    static_cast<void>(attempt([&] {
      journal().compact([&](const std::vector<JournalLine>& lines) {
        auto left = std::optional(compacted(lines));
        const std::vector<JournalLineView> views(lines.begin(), lines.end());
        if (!std::exchange(first, false) || !is_half_dead(views, left->size())) left.reset();
        return left;
      });
    }));
    journal().give_up_claim();
  }));
}

void Array::expect_no_journal() const {
  const Reply reply = context_.cluster.execute(Request::get(key_));
  if (expect_read(context_.cluster, reply).outcome == Outcome::miss) return;
  throw Failure(ErrorCode::bad_data,
                "the array has the journal encoding; omit --encoding, or give --encoding journal",
                context_.cluster.address_of(reply.server));
}

Array::Changed Array::cas_json(const Step& step) const {
  check_json(step.add);
  Changed changed{.encoding = ArrayEncoding::json};
  const auto decide = [&](const Observed& observed) -> std::optional<Write> {
    changed.found = observed.found || step.creates;
    changed.created = !observed.found;
    if (!changed.found) return std::nullopt;
    if (!observed.found && !observed.uncertain) expect_no_journal();
    std::vector<std::string> elements;
    if (observed.found) elements = json_array(observed.value, context_.cluster.address_of(observed.server));
    if (step.replaces) elements.clear();
    std::erase_if(elements, [&](const std::string& element) {
      return std::ranges::find(step.remove, element) != step.remove.end();
    });
    elements.insert(elements.end(), step.add.begin(), step.add.end());
    Write write{'[' + joined(elements) + ']', Exptime::never(), observed.flags};
    if (observed.ttl && observed.ttl->count() > 0)
      write.exptime = Exptime::after(*observed.ttl, context_.clock.wall());
    if (write.value.size() > max_value_size)
      throw Failure(
          ErrorCode::bad_data,
          "the JSON array would be larger than one item; use a new array with the journal encoding");
    return write;
  };
  changed.server = cas_update(context_, json_key_, unless_applied(decide, "change of the array")).server;
  changed.created = changed.created && changed.found;
  return changed;
}

Array::Contents Array::fetch(std::optional<ArrayEncoding> encoding) const {
  Contents contents;
  if (encoding != ArrayEncoding::json) {
    bool is_worthwhile = false;
    {
      JournalReading read = journal().read_whole();
      const std::vector<JournalLineView> lines = read.views();
      is_worthwhile = is_worth_compacting(read.contents, lines);
      contents.found = read.contents.found;
      contents.elements = replay(lines);
      contents.loss = read.contents.loss;
      contents.server = read.contents.server;
    }
    if (is_worthwhile) compact();
    if (contents.found || encoding) return contents;
  }
  const Reply reply = context_.cluster.execute(Request::get(json_key_));
  contents.found = expect_read(context_.cluster, reply).outcome == Outcome::hit;
  if (encoding || contents.found) contents.server = reply.server;
  if (!contents.found) return contents;
  contents.encoding = ArrayEncoding::json;
  contents.elements = json_array(reply.value, context_.cluster.address_of(reply.server));
  return contents;
}

UnknownOutcome Array::half_dropped(const Failure& failure) {
  return UnknownOutcome(
      "a part of the array was removed, then: " + std::string(failure.what()) + "; run the command again",
      failure.server());
}

bool Array::drop() {
  const bool json = drop_json();
  const auto journal = attempt([&] { return drop_journal(); });
  if (json && journal.failure()) throw half_dropped(*journal.failure());
  return journal.value() || json;
}

bool Array::drop_json() const {
  CasUnique seen;
  bool found = false;
  cas_update(context_, json_key_, [&](const Observed& there) -> std::optional<Write> {
    if (!there.found) return std::nullopt;
    // Another client's array, created since the removal that got no reply, is not removed.
    if (there.uncertain && !(there.cas == seen))
      throw UnknownOutcome("no reply to the removal, and the array has changed since; run the command again",
                           context_.cluster.address_of(there.server));
    json_array(there.value, context_.cluster.address_of(there.server));
    seen = there.cas;
    found = true;
    return Write{.removes = true};
  });
  return found;
}

std::vector<PlacedKey> Array::keys() const {
  JournalContents stored = journal().read();
  if (!stored.found && fetch(ArrayEncoding::json).found) return {{json_key_, {}}};
  std::vector<PlacedKey> keys{{key_, {}}};
  for (std::string& segment : stored.segments) keys.push_back({std::move(segment), key_});
  return keys;
}

}  // namespace mcds
