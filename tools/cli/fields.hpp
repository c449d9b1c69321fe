// The fields of answers: each verb says which it prints, one dictionary what they mean. --help, --schema and
// the checks of what is printed read this.
//
// A line of an answer is declared as words: `counter value value_str? delta created server @copies`.
//   NAME        a field of the dictionary       NAME:KIND   of another kind in this answer
//   …?          may be absent                   @NAME       a group of fields, printed by shared code
//   *           more fields, of any name
// Kinds: string integer number boolean time object any null; bytes (NAME_b64 where they are not UTF-8);
// counts (an object of integers); {WORDS} (an object); KIND[]; KIND|KIND.
#pragma once

#include "common/base/json.hpp"
#include "tools/cli/program.hpp"

namespace mcds {

struct Field {
  std::string name, kind, meaning;
  bool optional = false;
  bool shared = false;  // of a group
};

// All fields of the verb's answers, each once. Throws std::logic_error for a word that is not in the
// dictionary.
std::vector<Field> fields_of(const Verb& verb);

// A JSON Schema of one line of the answer.
JsonObject schema_of(const Command& command, const Verb& verb);

// Whether the verb declares an answer of these fields.
bool is_declared(const Verb& verb, const std::string& answer);

// NAME KIND MEANING, a field a line; @NAME WORDS, a group.
extern const std::string_view field_dictionary;

}  // namespace mcds
