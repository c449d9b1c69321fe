// The fields of answers: each verb declares which fields it prints, and one dictionary says what they mean.
// --help, --schema and the checks of printed answers read this.
//
// A line of an answer is declared as words: `counter value value_str? delta created server @copies`.
//   NAME        a field of the dictionary       NAME:KIND   a field of another kind in this answer
//   …?          the field may be absent         @NAME       a group of fields, printed by shared code
//   *           more fields, of any name
// Kinds: string integer number boolean time object any null; bytes (NAME_b64 if they are not UTF-8); counts
// (an object of integers); {WORDS} (an object); KIND[]; KIND|KIND.
#pragma once

#include "common/base/json.hpp"
#include "tools/cli/program.hpp"

namespace mcds {

struct Field {
  std::string name, kind, meaning;
  bool optional = false;
  bool shared = false;  // part of a group
};

// Returns the fields of the verb's answers, each once. Throws std::logic_error for an undefined word.
std::vector<Field> fields_of(const Verb& verb);

// Returns a JSON Schema for one line of the answer.
JsonObject schema_of(const Command& command, const Verb& verb);

// Returns true if the verb declares an answer with the fields of this JSON object.
bool is_declared(const Verb& verb, const std::string& answer);

// The dictionary: one line `NAME KIND MEANING` per field, and `@NAME WORDS` per group.
extern const std::string_view field_dictionary;

}  // namespace mcds
