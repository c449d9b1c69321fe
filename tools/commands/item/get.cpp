// Implements mcds item get, show and formats: shows items, and their values as their clients read them.
#include "common/base/bounds.hpp"
#include "common/base/json_reader.hpp"
#include "common/cluster/keys/probe.hpp"
#include "common/values/values.hpp"
#include "tools/commands/item/options.hpp"

namespace mcds {

namespace {

// Returns the JSON with one member or element a line, indented by two spaces for each container.
std::string indented_json(std::string_view json) {
  using enum JsonPart::Kind;
  std::string out;
  auto before = string;
  json_fault(json, [&](JsonPart part) {
    if (std::exchange(part.comma, false)) out += ',';
    const bool continues = part.kind == close ? before == open : part.depth == 0 || before == name;
    if (!continues) out.append(1, '\n').append(part.depth * 2, ' ');
    const std::size_t start = out.size();
    append_json_part(out, part);
    make_json_visible(out, start);
    if (part.kind == name) out += ' ';
    before = part.kind;
  });
  return out;
}

// Returns the format that --decode gives, or the usual format of the profile's client. Returns nullptr if
// values stay undecoded. Throws InvalidInput if --decode names no format.
const ValueFormat* format_of(Session& session, const ItemOptions& options) {
  if (options.decode) {
    if (const ValueFormat* format = value_format_named(*options.decode)) return format;
    std::vector<std::string> names;
    for (const ValueFormat& format : value_formats()) names.emplace_back(format.name);
    throw InvalidInput("--decode: no format '" + *options.decode + "' exists" +
                       did_you_mean(*options.decode, names, "; mcds item formats lists them"));
  }
  if (const ValueFormat* format = value_format_of(session.profile_name())) return format;
  return value_format_of(session.placement()->profile());
}

// Adds "encoding", "decoded" and remarks about them.
void add_decoded(JsonObject& line, const DecodedValue& decoded) {
  line.strings("encoding", decoded.encoding);
  if (!decoded.json.empty()) line.raw("decoded", decoded.json);
  if (decoded.guessed) line.boolean("guessed", true);
  if (!decoded.problem.empty()) line.bytes("problem", decoded.problem);
}

// Returns a heading and the indented value, for -o text.
std::string decoded_text(std::string_view key, std::uint32_t flags, const DecodedValue& decoded) {
  std::string text =
      visible(key) + ": " + joined(decoded.encoding, ", ") + ", flags " + std::to_string(flags);
  if (decoded.guessed) text += ", guessed";
  if (!decoded.problem.empty()) append_all(text, {"\nproblem: ", visible(decoded.problem)});
  if (!decoded.json.empty()) append_all(text, {"\n", indented_json(decoded.json)});
  return text;
}

constexpr std::size_t max_sought = 16;

// Checks whether missing keys are on other servers: then the profile is probably wrong.
void warn_if_elsewhere(Session& session, const std::vector<std::string>& missing) {
  const Placement& placement = *session.placement();
  if (placement.pool().size() == 1) return;
  const std::vector<KeyCopies> found = probe_keys(session.cluster(), missing);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto copy = std::ranges::find_if(found[i], &KeyCopy::found);
    if (copy == found[i].end()) continue;
    return session.output().warning(
        missing[i] + " is on " + session.server_address(copy->server) + ", which is not where " +
        std::string(placement.profile()) +
        " places it; find the client for --as with: " + printed_command(session, "where --guess"));
  }
}

ExitStatus read(Session& session, const ItemOptions& options, bool values) {
  Output& output = session.output();
  const bool alone = options.keys.size() == 1 && options.keys.front() != "-";
  const ValueFormat* const format = values ? format_of(session, options) : nullptr;
  const std::size_t max_bytes =
      options.max_bytes ? parse_size(*options.max_bytes, "--max-bytes") : max_item_value_size;
  const auto print = [&](const Item& item, const Reply& reply) {
    JsonObject line = JsonObject("key", item.key).boolean("found", true);
    if (values) line.stored_bytes("value", reply.value);
    line.number("flags", reply.flags).number("size_bytes", reply.value.size());
    if (format != nullptr && output.mode() != OutputMode::value) {
      const DecodedValue decoded = decode_value(*format, reply.flags, reply.value, max_bytes);
      if (output.mode() == OutputMode::text)
        return output.answer_pieces({decoded_text(item.key, reply.flags, decoded)});
      add_decoded(line, decoded);
    }
    add_age(line, reply.age);
    line.bytes("cas", std::to_string(reply.cas.value)).bytes("server", session.server_address(reply.server));
    if (!values) return output.answer(line, std::to_string(reply.value.size()));
    alone ? output.answer_bytes(line, reply.value) : output.answer_value(line, item.key, reply.value);
  };
  bool sought = false;  // the first missing keys were looked for on other servers
  return for_items(session, options, [&](const Window<std::string>& names) {
    const std::vector<Item> items = items_of(session, options, names.items);
    std::vector<std::string> missing;
    probe_items(session, items, [&](std::size_t i, ItemReplies replies) {
      if (const Reply* reply = first_with(Outcome::hit, replies)) {
        print(items[i], *reply);
        return names.done(i, ExitStatus::ok);
      }
      if (const Reply* reply = first_failed(replies))
        return names.fail(i, failure_of(session.cluster(), *reply));
      const ItemPlace& place = items[i].places.front();
      names.done(i, answer_missing(session, JsonObject("key", items[i].key), {place.server}));
      if (missing.size() < max_sought) missing.push_back(place.wire_key);
    });
    if (!missing.empty() && !std::exchange(sought, true)) warn_if_elsewhere(session, missing);
  });
}

}  // namespace

ExitStatus item_get(Session& session, const ItemOptions& options) {
  return read(session, options, true);
}

ExitStatus item_show(Session& session, const ItemOptions& options) {
  return read(session, options, false);
}

ExitStatus item_formats(Session& session, const ItemOptions&) {
  for (const ValueFormat& format : value_formats()) {
    JsonObject line("format", format.name);
    line.bytes("clients", format.clients);
    if (!format.compressions.empty()) line.bytes("compressions", format.compressions);
    line.bytes("forms", format.forms);
    session.output().answer(line, format.name);
  }
  return ExitStatus::ok;
}

}  // namespace mcds
