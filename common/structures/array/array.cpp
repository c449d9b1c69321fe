#include "common/structures/array/array.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/json.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/primitives/several/quorum.hpp"
#include "common/structures/lock/lock.hpp"

namespace mcds {

namespace {

constexpr std::string_view json_has_one_copy =
    "an array with the JSON encoding has one copy; give --copies 1, or use the journal encoding";

constexpr auto lock_ttl = std::chrono::seconds(10);
constexpr auto lock_wait = std::chrono::seconds(10);

bool could_be_a_part(std::string_view name) {
  if (name.ends_with(":json") || name.ends_with(":lock")) return true;
  const auto segment = name.rfind(":s:");
  return segment != std::string_view::npos && parse_hex64(name.substr(segment + 3)).has_value();
}

// The indices of the lines whose elements are left.
std::vector<std::size_t> live_lines(std::span<const JournalLine> lines) {
  std::unordered_map<std::string_view, std::vector<std::size_t>> places;
  std::vector<bool> live(lines.size(), false);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const JournalLine& line = lines[i];
    if (line.change == Change::add) {
      live[i] = true;
      places[line.element].push_back(i);
    } else if (line.change == Change::remove) {
      for (const std::size_t place : places[line.element]) live[place] = false;
      places.erase(line.element);
    } else if (line.change == Change::clear) {
      for (auto& [element, indices] : places) {
        for (const std::size_t place : indices) live[place] = false;
      }
      places.clear();
    }
  }
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (live[i]) indices.push_back(i);
  }
  return indices;
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
                    "a JSON array cannot hold bytes that are not UTF-8; use the journal encoding");
  }
}

// Copies have changes in common; a leftover from before a change of servers has none. A copy with segments
// does not show it.
bool same_life(const std::string& one, const std::string& other) {
  const auto first = decode_journal_root(one);
  const auto second = decode_journal_root(other);
  if (!first || !second) return false;
  if (!first->segments.empty() || !second->segments.empty()) return true;
  std::unordered_set<std::string> ids;
  for (JournalLine& line : decode_journal_lines(first->tail)) ids.insert(std::move(line.id));
  const auto lines = decode_journal_lines(second->tail);
  return std::ranges::any_of(lines, [&](const JournalLine& line) { return ids.contains(line.id); });
}

}  // namespace

std::vector<JournalLine> without_removed(std::span<const JournalLine> lines) {
  std::vector<JournalLine> kept;
  for (const std::size_t index : live_lines(lines)) kept.push_back(lines[index]);
  return kept;
}

std::vector<std::string> replay(std::span<const JournalLine> lines) {
  std::vector<std::string> elements;
  for (const std::size_t index : live_lines(lines)) elements.push_back(lines[index].element);
  return elements;
}

Array::Array(const Context& context, std::string_view name, const Journal::Options& options)
    : context_(context),
      name_(name),
      copies_(context_),
      kept_(context, "array", name, "", same_life,
            [name = std::string(name), options](Recopying& change) { move(change, name, options); }),
      json_key_(structure_key(context, "array", name) + ":json"),
      options_(options) {
  if (could_be_a_part(name))
    throw InvalidInput(
        "an array's name must not end in :json, :lock or :s: and 16 hex digits: it could be another array's "
        "part");
}

Array::Changed Array::change(std::span<const std::string> add, std::span<const std::string> remove,
                             std::optional<ArrayEncoding> encoding, bool lock) {
  return apply({.add = add, .remove = remove, .creates = !add.empty()}, encoding, lock);
}

Array::Told Array::change_and_tell(std::span<const std::string> add, std::span<const std::string> remove) {
  expect_only(copies_.size(), "copies may order changes differently: who deleted what is told of one");
  const std::string operation = context_.random.token();
  Told told{
      append({.add = add, .remove = remove, .creates = !add.empty()}, ArrayEncoding::journal, operation)};
  if (told.changed.found && !remove.empty()) told.deleted = deleted_by(operation, remove);
  return told;
}

// Its lines are behind all that they deleted.
std::vector<std::string> Array::deleted_by(const std::string& operation,
                                           std::span<const std::string> remove) const {
  const auto untold = [&](const std::string& why) {
    return UnknownOutcome(
        "the values were deleted, but " + why + ": perhaps by this change, perhaps by another",
        context_.cluster.address_of(context_.cluster.placement().server_of(kept_.key())));
  };
  const auto read = attempt([&] { return journal().read(); });
  if (read.failure()) throw untold(read.failure()->what());
  const JournalContents& contents = read.value();
  const std::string first = journal_line_id(operation, 0);
  // A compaction leaves the id alone, without what it stood for.
  const auto ours = std::ranges::find_if(contents.lines, [&](const JournalLine& line) {
    return line.id == first && line.change == Change::remove;
  });
  if (ours == contents.lines.end()) throw untold("the array was compacted or replaced since");
  if (contents.loss.any()) throw untold("a part of the array is lost");
  const auto before = static_cast<std::size_t>(ours - contents.lines.begin());
  const std::unordered_set<std::string_view> asked(remove.begin(), remove.end());
  std::vector<std::string> deleted = replay(std::span(contents.lines).first(before));
  std::erase_if(deleted, [&](const std::string& element) { return !asked.contains(element); });
  return deleted;
}

Array::Changed Array::replace(std::span<const std::string> elements, std::optional<ArrayEncoding> encoding,
                              bool lock) {
  return apply({.add = elements, .remove = {}, .replaces = true}, encoding, lock);
}

Array::Changed Array::apply(const Step& step, std::optional<ArrayEncoding> encoding, bool lock) {
  if (encoding != ArrayEncoding::json) {
    const Changed changed = append(step, encoding, context_.random.token());
    if (changed.found || encoding || (!has_one_copy() && !step.creates)) return changed;
  }
  return update_json(step, lock);
}

// One change that is being appended to all copies.
struct Array::Writing {
  struct Copy {
    Result<Journal::Appended> appended = Journal::Appended();
    std::optional<Failure> behind = {};      // it may lack what the change undoes: it does not get the change
    Creation creation = Creation::needless;  // asked for if there is no journal, or a full one
    std::optional<Failure> unanswered = {};  // what may be executed late

    bool has_it() const { return !appended.failure() && !appended.value().declined; }
    bool has_lost() const { return !appended.failure() && appended.value().declined; }
    bool is_missing() const { return has_lost() && creation != Creation::other; }
    // Full when it was asked, and not there any more.
    bool has_vanished() const { return has_lost() && creation == Creation::needless; }
    bool is_wanted() const { return creation == Creation::wanted; }
    bool is_unknown() const {
      return appended.failure() && appended.failure()->code() == ErrorCode::unknown_outcome;
    }
  };

  const Step& step;
  std::vector<JournalLine> lines;
  std::vector<Copy> copies;

  bool any(bool (Copy::*is)() const) const {
    return std::ranges::any_of(copies, [&](const Copy& copy) { return (copy.*is)(); });
  }
};

// `lossy`: a journal that is created lacks what came before.
Result<Journal::Appended> Array::append_to(const Writing& writing, std::size_t copy, bool lossy,
                                           const std::function<bool()>& may_create) const {
  return attempt([&] {
    Journal journal = this->journal(copy, lossy);
    return writing.step.replaces ? journal.replace(writing.lines, may_create)
                                 : journal.append(writing.lines, may_create);
  });
}

// Not found: there is no journal, and either a JSON array, or nothing and `step` creates nothing. Under the
// same ids however often it is repeated.
Array::Changed Array::append(const Step& step, std::optional<ArrayEncoding> encoding,
                             const std::string& operation) {
  Writing writing{step, {}, std::vector<Writing::Copy>(copies_.size())};
  std::vector<JournalLine>& lines = writing.lines;
  if (step.replaces) lines.push_back({Change::clear, {}, {}});
  for (const std::string& element : step.remove) lines.push_back({Change::remove, {}, element});
  for (const std::string& element : step.add) lines.push_back({Change::add, {}, element});
  for (std::size_t i = 0; i < lines.size(); ++i) lines[i].id = journal_line_id(operation, i);
  // What undoes must not be where the additions before it are not: another copy would bring them, behind it.
  if (quorum(copies_.size()) > 1 && (step.replaces || !step.remove.empty())) {
    const auto behind = make_equal();
    for (std::size_t copy = 0; copy < copies_.size(); ++copy) writing.copies[copy].behind = behind[copy];
  }
  static_cast<void>(copies_.each([&](std::size_t copy) {
    Writing::Copy& one = writing.copies[copy];
    if (one.behind) {
      one.appended = *one.behind;
      return;
    }
    one.appended = append_to(writing, copy, false, [&] {
      one.creation = creation(copies_.at(copy), step, encoding);
      return one.creation == Creation::needless;
    });
    if (!one.is_unknown() || !one.is_wanted()) return;
    // If the journal is created meanwhile, it may be executed late: with the same ids it adds nothing.
    one.unanswered = one.appended.failure();
    one.appended = Journal::Appended{.declined = true, .incarnation = {}};
  }));
  const bool late = writing.any(&Writing::Copy::has_it);
  const bool missing = writing.any(&Writing::Copy::is_missing);
  if (!late && missing) {
    const bool vanished = writing.any(&Writing::Copy::has_vanished);
    const bool elsewhere = is_elsewhere(writing);
    if (!elsewhere && vanished) static_cast<void>(thaw());
    if (elsewhere || vanished) return append_again(writing, encoding, operation);
  }
  // A copy without a journal has lost it if another has one; another client may be about to restore it.
  // Unless all are being put elsewhere: then what one copy got is taken along, and the others do not get it.
  if (late && missing) {
    const auto looked = attempt([&] {
      const bool elsewhere = kept_.elsewhere();
      if (!elsewhere) static_cast<void>(thaw());
      return elsewhere;
    });
    if (!looked.failure() && looked.value()) return append_again(writing, encoding, operation);
    for (Writing::Copy& one : writing.copies) {
      if (looked.failure() && one.has_lost()) one.appended = *looked.failure();
    }
  }
  if (late ? missing : writing.any(&Writing::Copy::is_wanted)) {
    static_cast<void>(copies_.each([&](std::size_t copy) {
      Writing::Copy& one = writing.copies[copy];
      if (!one.has_lost()) return;
      one.appended = append_to(writing, copy, late && !step.replaces, {});
      if (one.appended.failure() && one.unanswered) one.appended = *one.unanswered;
    }));
  }
  settle(writing);
  return written(writing);
}

// Elsewhere, or where it was dropped meanwhile.
Array::Changed Array::append_again(const Writing& writing, std::optional<ArrayEncoding> encoding,
                                   const std::string& operation) {
  auto changed = attempt([&] { return append(writing.step, encoding, operation); });
  if (changed.failure()) raise_perhaps(writing, *changed.failure());
  return changed.value();
}

// With three copies and more, what not every copy got is behind a removal that only some have, on all that
// answer: else who reads the others would not know which was first. Created copies do not vouch for what came
// before, until they have it.
void Array::settle(Writing& writing) const {
  const auto created = [](const Writing::Copy& one) { return one.has_it() && one.appended.value().created; };
  const auto births = std::ranges::count_if(writing.copies, created);
  const bool whole =
      std::ranges::all_of(writing.copies, [](const Writing::Copy& one) { return one.has_it(); }) &&
      (births == 0 || births == std::ssize(writing.copies));
  if (whole || quorum(copies_.size()) == 1 || !writing.any(&Writing::Copy::has_it)) return;
  const auto behind = attempt([&] { return make_equal(); });
  for (std::size_t copy = 0; copy < copies_.size(); ++copy) {
    Writing::Copy& one = writing.copies[copy];
    const auto failure = behind.failure() ? behind.failure() : behind.value()[copy];
    if (one.has_it() && failure) one.appended = UnknownOutcome(failure->what(), failure->server());
  }
}

// Kept::elsewhere(); what a copy has perhaps was perhaps taken along.
bool Array::is_elsewhere(const Writing& writing) {
  const auto elsewhere = attempt([&] { return kept_.elsewhere(); });
  if (elsewhere.failure()) raise_perhaps(writing, *elsewhere.failure());
  return elsewhere.value();
}

// What fails after an attempt that was not answered may be done.
void Array::raise_perhaps(const Writing& writing, const Failure& failure) {
  if (std::ranges::any_of(writing.copies, [](const auto& one) { return one.unanswered || one.is_unknown(); }))
    throw UnknownOutcome("no reply to the change, then: " + std::string(failure.what()), failure.server());
  raise(failure);
}

// Nobody is taking it elsewhere. False: nobody was.
bool Array::thaw() const {
  const auto held = copies_.each([&](std::size_t copy) { return journal(copy).thaw(); });
  return held.any(std::identity());
}

Array::Changed Array::written(const Writing& writing) const {
  std::vector<std::optional<Failure>> failures;
  std::vector<CopyState> states;
  for (const Writing::Copy& one : writing.copies) {
    failures.push_back(one.appended.failure());
    states.push_back({.failure = failures.back(), .has = one.has_it()});
  }
  const bool found = writing.any(&Writing::Copy::has_it);
  const bool unknown = writing.any(&Writing::Copy::is_unknown);
  if (const auto failure = failure_of(found || unknown ? Part::changing : Part::reading, states))
    raise(*failure);
  // One of two that does not answer may have what was to be undone.
  if (!found && quorum(failures.size()) == 1) expect_all(failures);
  const auto& first = writing.copies.front().appended;
  Changed changed{
      .found = found,
      .created = found,
      .server = first.failure() ? context_.cluster.placement().server_of(kept_.key()) : first.value().server,
      .copies = copy_outcomes(context_, kept_.key(), failures)};
  bool any_created = false;
  for (const Writing::Copy& one : writing.copies) {
    if (!one.has_it()) continue;
    changed.created = changed.created && one.appended.value().created;
    any_created = any_created || one.appended.value().created;
  }
  if (any_created) kept_.confirm([&] { return take_back(writing); });
  return changed;
}

// Every copy, as long as nobody else has put anything there.
bool Array::take_back(const Writing& writing) const {
  std::unordered_set<std::string_view> ours;
  for (const JournalLine& line : writing.lines) ours.insert(line.id);
  const auto is_ours = [&](std::size_t, const Reply& there) {
    const auto root = decode_journal_root(there.value);
    if (!root || !root->segments.empty()) return false;
    const auto lines = decode_journal_lines(root->tail);
    return std::ranges::all_of(lines, [&](const JournalLine& line) { return ours.contains(line.id); });
  };
  const Request get = Request::gets(kept_.key());
  const auto taken = copies_.each([&](std::size_t copy) {
    const Writing::Copy& one = writing.copies[copy];
    return !one.is_unknown() && !one.unanswered && !(one.has_it() && one.appended.value().repeated) &&
           mcds::take_back(copies_.at(copy).cluster, std::span(&get, 1), is_ours);
  });
  return taken.count(std::identity()) == copies_.size();
}

Array::Creation Array::creation(const Context& context, const Step& step,
                                std::optional<ArrayEncoding> encoding) const {
  const std::size_t json_server = context_.cluster.placement().server_of(json_key_);
  const std::vector<Request> batch{Request::get(kept_.key()), Request::get(json_key_).on(json_server)};
  const auto replies = context.cluster.execute(batch);
  expect_read(context_.cluster, replies[0]);
  const bool json = is_json(replies[1], false);
  if (replies[0].outcome != Outcome::miss) return Creation::needless;
  if (json && !encoding) expect_only(copies_.size(), json_has_one_copy);
  if (json && encoding == ArrayEncoding::journal) {
    throw Failure(ErrorCode::bad_data,
                  "the array has the JSON encoding; omit --encoding, or give --encoding json",
                  context_.cluster.address_of(replies[1].server));
  }
  if (json) return Creation::other;
  return step.creates ? Creation::wanted : Creation::unwanted;
}

// `asked`: nothing else is, so its server must answer.
bool Array::is_json(const Reply& reply, bool asked) const {
  if (asked || has_one_copy()) expect_read(context_.cluster, reply);
  return reply.outcome == Outcome::hit;
}

Array::Changed Array::update_json(const Step& step, bool lock) {
  expect_only(copies_.size(), json_has_one_copy);
  check_json(step.add);
  if (!lock) return cas_json(step);
  Lock guard = Lock::at_key(context_, json_key_ + ":lock");
  const Lock::Answer answer = guard.acquire({.ttl = lock_ttl, .holder = {}, .wait = lock_wait});
  if (!answer.lease)
    throw Contention("another program holds the array's lock; try again",
                     context_.cluster.address_of(answer.server));
  const auto changed = attempt([&] { return cas_json(step); });
  // What comes of that is reported all the same; the lock expires by itself.
  static_cast<void>(attempt([&] { static_cast<void>(guard.release(*answer.lease)); }));
  return changed.value();
}

// In no number of copies.
void Array::expect_no_journal() const {
  do {
    const Reply reply = context_.cluster.execute(Request::get(kept_.key()));
    if (expect_read(context_.cluster, reply).outcome != Outcome::miss) {
      throw Failure(ErrorCode::bad_data,
                    "the array has the journal encoding; omit --encoding, or give --encoding journal",
                    context_.cluster.address_of(reply.server));
    }
  } while (kept_.elsewhere());
}

// A cas even under the lock: a lock that has expired meanwhile must not let an older value overwrite a newer
// one.
Array::Changed Array::cas_json(const Step& step) {
  Changed changed{.encoding = ArrayEncoding::json};
  std::string written;
  const auto decide = [&](const Observed& observed) -> std::optional<Write> {
    changed.found = observed.found || step.creates;
    changed.created = !observed.found;
    if (!changed.found) return std::nullopt;
    if (!observed.found && !observed.uncertain) expect_no_journal();
    std::vector<std::string> elements;
    if (observed.found && !step.replaces)
      elements = json_array(observed.value, context_.cluster.address_of(observed.server));
    std::erase_if(elements, [&](const std::string& element) {
      return std::ranges::find(step.remove, element) != step.remove.end();
    });
    elements.insert(elements.end(), step.add.begin(), step.add.end());
    Write write{'[' + joined(elements) + ']', Exptime::never(), observed.flags};
    if (observed.ttl && observed.ttl->count() > 0)
      write.exptime = Exptime::after(*observed.ttl, context_.clock.wall());
    if (write.value.size() > max_value_size)
      throw Failure(ErrorCode::bad_data,
                    "the JSON array would be larger than one item; use the journal encoding");
    written = write.value;
    return write;
  };
  const CasUpdateResult result =
      cas_update(context_, json_key_, unless_applied(decide, "change of the array"));
  changed.created = changed.created && changed.found;
  changed.server = result.server;
  if (!changed.created) return changed;
  const Request get = Request::gets(json_key_);
  const auto is_ours = [&](std::size_t, const Reply& there) { return there.value == written; };
  kept_.confirm([&] { return mcds::take_back(context_.cluster, std::span(&get, 1), is_ours); });
  return changed;
}

Array::Contents Array::fetch(std::optional<ArrayEncoding> encoding) const {
  Contents contents = fetch_here(encoding);
  if (!contents.found && kept_.elsewhere()) contents = fetch_here(encoding);
  return contents;
}

Array::Contents Array::fetch_here(std::optional<ArrayEncoding> encoding) const {
  Contents contents;
  if (encoding != ArrayEncoding::json) {
    contents = fetch_journals();
    if (contents.found || encoding) return contents;
  }
  const Reply reply = context_.cluster.execute(Request::get(json_key_));
  contents.found = is_json(reply, encoding.has_value());
  if (encoding || contents.found) contents.server = reply.server;
  if (!contents.found) return contents;
  contents.encoding = ArrayEncoding::json;
  contents.elements = json_array(reply.value, context_.cluster.address_of(reply.server));
  return contents;
}

bool Array::drop() {
  bool found = kept_.drop();
  cas_update(context_, json_key_, [&](const Observed& there) -> std::optional<Write> {
    if (!there.found) return std::nullopt;
    json_array(there.value, context_.cluster.address_of(there.server));
    found = true;
    return Write{.removes = true};
  });
  return found;
}

std::optional<Array::Compacted> Array::compact() {
  auto compacted = attempt([&] { return compact_here(); });
  const bool busy = compacted.failure() && compacted.failure()->code() == ErrorCode::try_again;
  return busy && (kept_.elsewhere() || thaw()) ? compact_here() : compacted.value();
}

std::optional<Array::Compacted> Array::compact_here() {
  // A single copy has no order to agree on: it is compacted as it is read.
  if (!has_one_copy()) return compact_copies();
  Compacted result;
  const bool done = journal().compact([&](const std::vector<JournalLine>& lines) {
    std::vector<JournalLine> kept = without_removed(lines);
    result = {lines.size(), kept.size()};
    return kept;
  });
  if (!done) return std::nullopt;
  return result;
}

// The first copy that answers.
JournalContents Array::read_first() const {
  for (auto& copy : expect_any(copies_.each([&](std::size_t copy) { return journal(copy).read(); }))) {
    if (!copy.failure() && copy.value().found) return std::move(copy.value());
  }
  return {};
}

std::vector<PlacedKey> Array::keys() const {
  JournalContents stored = read_first();
  if (!stored.found && kept_.elsewhere()) stored = read_first();
  if (!stored.found && has_one_copy() && fetch_here(ArrayEncoding::json).found) return {{json_key_, {}}};
  std::vector<PlacedKey> keys{{kept_.key(), {}}};
  for (std::string& segment : stored.segments) keys.push_back({std::move(segment), kept_.key()});
  return keys;
}

}  // namespace mcds
