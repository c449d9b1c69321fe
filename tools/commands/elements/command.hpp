// What mcds table and mcds hash have in common: elements from arguments or standard input, and the verbs that
// do not care about values.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/structures/elements/elements.hpp"
#include "tools/cli/batch.hpp"
#include "tools/cli/program.hpp"
#include "tools/cli/session.hpp"

namespace mcds {

struct ElementsKind {
  const char* structure;  // also the first field of each answer: `table`
  const char* element;    // the second: `member`
  bool values;            // elements have values
};

struct ElementsOptions {
  std::string name;
  std::vector<std::string> words;  // elements, or `-`
  bool json = false;
  bool fail_fast = false;
  bool relist = false;
  std::optional<Duration> ttl;
  Duration every = std::chrono::seconds(2);
  bool accept = false;
  bool partial = false;
  bool must_exist = false;
};

using ElementsOptionsPtr = std::shared_ptr<ElementsOptions>;

// {"table":"blocked","member":"10.1.2.3", …
JsonObject element_answer(const ElementsKind& kind, const ElementsOptions& options,
                          const std::string& element);

// For add and set: with a ttl, one copy, whatever is configured. Throws InvalidInput if several were asked
// for.
Context context_for_setting(Session& session, const ElementsKind& kind, const ElementsOptions& options);
// ,"ttl_s":60 and the copies of what was set.
void add_setting(JsonObject& answer, Session& session, const ElementsOptions& options,
                 const ElementResult& result);
void declare_ttl(Verb& verb, const ElementsOptionsPtr& options);

// A verb over many elements: what asks for a window of them, and what prints one answer. The answers to one
// window are waited for when the next has been asked for.
using AskElements = std::function<Elements::Answers(std::span<const Element>)>;
inline Elements::Answers known(std::vector<ElementResult> results) {
  return [results = std::move(results)] { return results; };
}
using AnswerElement = std::function<ExitStatus(const Element&, const ElementResult&)>;
Batch<Element> element_batch(AskElements ask, AnswerElement answer);
// The words of the command line, which are all checked before anything is sent, or for `-` the lines of
// standard input.
ExitStatus run_words(Session& session, const ElementsOptions& options, const Batch<Element>& batch);
ExitStatus run_elements(Session& session, const Batch<Element>& batch, std::vector<Element> elements);

std::vector<std::string> names_of(std::span<const Element> elements);
// A line or word that is nothing but an element's name.
Element bare_element(std::string name);

// fetch; without values when `fields_only`.
ExitStatus fetch_elements(Session& session, const ElementsKind& kind, const ElementsOptions& options,
                          bool fields_only);

// Until it is ended: what is there, then one line for each change.
ExitStatus watch_elements(Session& session, const ElementsKind& kind, const ElementsOptions& options);

// remove, count, check, compact, clear, where.
void declare_shared_verbs(Command& command, const ElementsKind& kind, const ElementsOptionsPtr& options);

}  // namespace mcds
