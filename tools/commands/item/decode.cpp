#include "tools/commands/item/decode.hpp"

#include "common/base/json_reader.hpp"

namespace mcds {

namespace {

// Returns the JSON with one member or element a line, indented by two spaces for each container.
std::string indented_json(std::string_view json) {
  std::string out;
  JsonReader reader(json);
  const auto new_line = [&](std::size_t depth) { out.append(1, '\n').append(depth * 2, ' '); };
  char before = '\0';
  while (const auto token = reader.next()) {
    const char mark = token->text.front();
    const bool closes = mark == '}' || mark == ']';
    const bool opened = before == '{' || before == '[';
    if (closes ? !opened : opened || before == ',') new_line(token->depth);
    append_visible_json(out, token->text);
    if (mark == ':') out += ' ';
    before = mark;
  }
  return out;
}

}  // namespace

const ValueFormat* format_of(Session& session, const ItemOptions& options) {
  if (options.decode) {
    if (const ValueFormat* format = value_format_named(*options.decode)) return format;
    std::vector<std::string> names;
    for (const ValueFormat& format : value_formats()) names.emplace_back(format.name);
    throw InvalidInput("--decode: there is no format \"" + *options.decode + '"' +
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
