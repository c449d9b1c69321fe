// What mcds table and mcds hash have in common: elements from arguments or standard input, and the verbs that
// do not care about values.
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
  std::vector<std::string> command = {};  // that is run for each change
};

using ElementsOptionsPtr = std::shared_ptr<ElementsOptions>;

// {"table":"blocked","member":"10.1.2.3", …: the beginnings of answers, one after the other.
class ElementLine {
 public:
  explicit ElementLine(const ElementsOptions& options)
      : element_(options.element), line_(options.structure, options.name), beginning_(line_.size()) {}
  // Until the next.
  JsonObject& of(const std::string& element) {
    line_.cut(beginning_);
    return line_.bytes(element_, element);
  }

 private:
  const char* element_;
  JsonObject line_;
  std::size_t beginning_;
};
// With a ttl, one copy, whatever is configured. Throws InvalidInput if several were asked for.
Context context_for_setting(Session& session, const ElementsOptions& options);
// Ends the answer to add and set with "server", "ttl_s" and the copies, and prints it.
void answer_setting(Session& session, JsonObject& answer, const ElementsOptions& options,
                    const ElementResult& result);

// A verb over many elements: what asks for a window of them, and what prints one answer. The answers to one
// window are waited for when the next has been asked for.
using AskElements = std::function<Elements::Answers(std::span<const Element>)>;
inline Elements::Answers known(std::vector<ElementResult> results) {
  return [results = std::move(results)] { return results; };
}
using AnswerElement = std::function<ExitStatus(const Element&, const ElementResult&)>;
Batch<Element> element_batch(Session& session, AskElements ask, AnswerElement answer);
// The words of the command line, which are all checked before anything is sent, or for `-` the lines of
// standard input.
ExitStatus run_words(Session& session, const ElementsOptions& options, const Batch<Element>& batch);
ExitStatus run_elements(Session& session, const Batch<Element>& batch, std::vector<Element> elements);

std::vector<std::string> names_of(std::span<const Element> elements);
// Throws InvalidInput for one that cannot be stored.
Element checked(Element element);
// A line or word that is nothing but an element's name.
Element bare_element(std::string name);

void declare_ttl(Verb& verb, const ElementsOptionsPtr& options);
// Prints all elements; with their values, or without.
Verb& declare_fetch(Command& command, const ElementsOptionsPtr& options, const char* verb,
                    const char* summary, bool values);
// remove, count, check, drop, where.
void declare_shared_verbs(Command& command, const ElementsOptionsPtr& options);

}  // namespace mcds
