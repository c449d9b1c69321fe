#include "tools/commands/item/decode.hpp"

#include "common/base/json_reader.hpp"

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

}  // namespace

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

void add_decoded(JsonObject& line, const DecodedValue& decoded) {
  line.strings("encoding", decoded.encoding);
  if (!decoded.json.empty()) line.raw("decoded", decoded.json);
  if (decoded.guessed) line.boolean("guessed", true);
  if (!decoded.problem.empty()) line.bytes("problem", decoded.problem);
}

std::string decoded_text(std::string_view key, std::uint32_t flags, const DecodedValue& decoded) {
  std::string text =
      visible(key) + ": " + joined(decoded.encoding, ", ") + ", flags " + std::to_string(flags);
  if (decoded.guessed) text += ", guessed";
  if (!decoded.problem.empty()) append_all(text, {"\nproblem: ", visible(decoded.problem)});
  if (!decoded.json.empty()) append_all(text, {"\n", indented_json(decoded.json)});
  return text;
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
