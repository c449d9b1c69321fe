// Parts that mcds table and mcds hash share: reading elements, and the verbs that do not depend on values.
#pragma once

#include "common/structures/elements/elements.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

struct ElementsOptions {
  const char* structure;  // also the first field of each answer: `table`
  const char* element;    // the second: `member`
  std::string name = {};
  std::vector<std::string> words = {};  // elements, or `-`
  std::optional<Duration> ttl = {};
  Duration every = std::chrono::seconds(2);
  bool json = false, accept = false, partial = false, must_exist = false, as_object = false;
  std::vector<std::string> command = {};  // command to run for each change
};

using ElementsOptionsPtr = std::shared_ptr<ElementsOptions>;

// Builds lines of answers that share a beginning: {"table":"blocked","member":"10.1.2.3", …
class ElementLine {
 public:
  explicit ElementLine(const ElementsOptions& options)
      : element_(options.element), line_(options.structure, options.name), beginning_(line_.size()) {}
  // Returns the line for an element. It is valid until the next call.
  JsonObject& of(const std::string& element) {
    line_.cut(beginning_);
    return line_.bytes(element_, element);
  }

 private:
  const char* element_;
  JsonObject line_;
  std::size_t beginning_;
};
// Returns the context of a change, with one copy if there is a ttl: InvalidInput if --copies asks for
// several.
Context context_for_setting(Session& session, const ElementsOptions& options);
// Ends the answer to add and set with "server", "ttl_s" and the copies, and prints it.
void answer_setting(Session& session, JsonObject& answer, const ElementsOptions& options,
                    const ElementResult& result);

// Returns a batch over many elements. `ask` sends the requests for a window, and `answer` prints one answer.
// The answers to a window are read after the next window has been sent.
using AskElements = std::function<Elements::Answers(std::span<const Element>)>;
inline Elements::Answers known(std::vector<ElementResult> results) {
  return [results = std::move(results)] { return results; };
}
using AnswerElement = std::function<ExitStatus(const Element&, const ElementResult&)>;
Batch<Element> element_batch(Session& session, AskElements ask, AnswerElement answer);
// Runs a batch over the words of the command line, which are all checked before anything is sent, or for `-`
// over the lines of standard input.
ExitStatus run_words(Session& session, const ElementsOptions& options, const Batch<Element>& batch);
ExitStatus run_elements(Session& session, const Batch<Element>& batch, std::vector<Element> elements);

std::vector<std::string> names_of(std::span<const Element> elements);
// Returns the element. Throws InvalidInput if it cannot be stored.
Element checked(Element element);
// Returns the element for a line or word that contains only its name.
Element bare_element(std::string name);

using ElementsAction = ExitStatus (*)(Session&, const ElementsOptions&);
// Declares a verb whose first argument is the name of the structure.
Verb& declare_verb(Command& command, const ElementsOptionsPtr& options, const char* verb,
                   const std::string& summary, ElementsAction run);
void declare_ttl(Verb& verb, const ElementsOptionsPtr& options);
// Declares a verb that prints all elements, with or without their values.
Verb& declare_fetch(Command& command, const ElementsOptionsPtr& options, const char* verb,
                    const char* summary, bool values);
// Declares remove, count, check, drop and where.
void declare_shared_verbs(Command& command, const ElementsOptionsPtr& options);

}  // namespace mcds
