#include "common/structures/array.hpp"

#include <algorithm>
#include <unordered_map>

#include "common/base/bytes.hpp"
#include "common/base/errors.hpp"
#include "common/base/json.hpp"
#include "common/primitives/cas_update.hpp"
#include "common/primitives/key_names.hpp"
#include "common/structures/lock.hpp"

namespace mcds {

namespace {

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

std::string json_text(std::span<const std::string> elements) {
  std::string text = "[";
  for (const std::string& element : elements) text += (text.size() > 1 ? "," : "") + element;
  return text + ']';
}

std::vector<std::string> json_array(const std::string& value, const std::string& server) {
  auto elements = json_elements(value);
  if (!elements) throw CorruptData("the value is no JSON array; is this key somebody else's?", server);
  return std::move(*elements);
}

void check_json(std::span<const std::string> elements) {
  for (const std::string& element : elements) {
    if (element.starts_with("b\"")) throw Failure(ErrorCode::bad_data, "a JSON array cannot hold bytes that are not UTF-8; use the journal encoding");
  }
}

}  // namespace

std::vector<std::string> replay(std::span<const JournalLine> lines) {
  std::vector<std::string> elements;
  for (const std::size_t index : live_lines(lines)) elements.push_back(lines[index].element);
  return elements;
}

Array::Array(const Context& context, std::string_view name) : context_(context), key_(structure_key(context, "array", name)) {
  if (could_be_a_part(name)) throw InvalidInput("an array's name must not end in :json, :lock or :s: and 16 hex digits: it could be another array's part");
}

Array::Changed Array::append(std::vector<JournalLine> lines) {
  const std::string operation = context_.random.token();
  for (std::size_t i = 0; i < lines.size(); ++i) lines[i].id = journal_line_id(operation, i);
  Journal journal(context_, key_);
  const Journal::Appended appended = journal.append(lines);
  return {appended.created, appended.server};
}

Array::Changed Array::change(std::span<const std::string> add, std::span<const std::string> remove, ArrayEncoding encoding, bool lock) {
  if (encoding == ArrayEncoding::json) return update_json(add, remove, false, lock);
  std::vector<JournalLine> lines;
  for (const std::string& element : remove) lines.push_back({Change::remove, {}, element});
  for (const std::string& element : add) lines.push_back({Change::add, {}, element});
  return append(std::move(lines));
}

Array::Changed Array::replace(std::span<const std::string> elements, ArrayEncoding encoding, bool lock) {
  if (encoding == ArrayEncoding::json) return update_json(elements, {}, true, lock);
  std::vector<JournalLine> lines{{Change::clear, {}, {}}};
  for (const std::string& element : elements) lines.push_back({Change::add, {}, element});
  return append(std::move(lines));
}

Array::Changed Array::update_json(std::span<const std::string> add, std::span<const std::string> remove, bool replaces, bool lock) {
  check_json(add);
  if (!lock) return cas_json(add, remove, replaces);
  Lock guard = Lock::at_key(context_, json_key() + ":lock");
  const Lock::Answer answer = guard.acquire({.ttl = lock_ttl, .holder = {}, .wait = lock_wait});
  if (!answer.lease) throw Contention("another holds the array's lock; try again", context_.cluster.address_of(answer.server));
  try {
    const Changed changed = cas_json(add, remove, replaces);
    static_cast<void>(guard.release(*answer.lease));
    return changed;
  } catch (const Failure&) {
    static_cast<void>(guard.release(*answer.lease));
    throw;
  }
}

// A cas even under the lock: a lock that has expired meanwhile must not let an older value overwrite a newer one.
Array::Changed Array::cas_json(std::span<const std::string> add, std::span<const std::string> remove, bool replaces) {
  bool created = false;
  const auto decide = [&](const Observed& observed) -> std::optional<Write> {
    created = !observed.found;
    std::vector<std::string> elements;
    if (observed.found && !replaces) elements = json_array(observed.value, context_.cluster.address_of(observed.server));
    std::erase_if(elements, [&](const std::string& element) { return std::find(remove.begin(), remove.end(), element) != remove.end(); });
    elements.insert(elements.end(), add.begin(), add.end());
    Write write{json_text(elements)};
    if (write.value.size() > max_value_size) throw Failure(ErrorCode::bad_data, "the JSON array would be larger than one item; use the journal encoding");
    return write;
  };
  const CasUpdateResult result = cas_update(context_, json_key(), unless_applied(decide, "change of the array"));
  return {created, result.server};
}

Array::Contents Array::fetch(std::optional<ArrayEncoding> encoding) const {
  Contents contents;
  if (encoding != ArrayEncoding::json) {
    const JournalContents journal = Journal(context_, key_).read();
    contents.server = journal.server;
    if (journal.found) {
      contents.found = true;
      contents.elements = replay(journal.lines);
      contents.complete = journal.lost_segments == 0 && journal.foreign == 0;
      contents.lines = journal.lines.size();
      return contents;
    }
    if (encoding) return contents;
  }
  const Reply reply = context_.cluster.execute(Request::get(json_key()));
  expect_read(context_.cluster, reply);
  if (encoding || reply.outcome == Outcome::hit) contents.server = reply.server;
  if (reply.outcome != Outcome::hit) return contents;
  contents.found = true;
  contents.encoding = ArrayEncoding::json;
  contents.elements = json_array(reply.value, context_.cluster.address_of(reply.server));
  return contents;
}

bool Array::compact() {
  return Journal(context_, key_).compact([](const std::vector<JournalLine>& lines) {
    std::vector<JournalLine> kept;
    for (const std::size_t index : live_lines(lines)) kept.push_back(lines[index]);
    return kept;
  });
}

std::vector<std::string> Array::keys() const {
  std::vector<std::string> keys{key_};
  const JournalContents journal = Journal(context_, key_).read();
  keys.insert(keys.end(), journal.segments.begin(), journal.segments.end());
  if (!journal.found && fetch(ArrayEncoding::json).found) keys = {json_key()};
  return keys;
}

}  // namespace mcds
