#include "tools/cli/batch.hpp"

#include "tools/cli/input.hpp"
#include "tools/commands/elements/command.hpp"

namespace mcds {

std::vector<std::string> names_of(std::span<const Element> elements) {
  std::vector<std::string> names;
  for (const Element& element : elements) names.push_back(element.name);
  return names;
}

Element bare_element(std::string name) {
  Element element{std::move(name), {}};
  check_element(element);
  return element;
}

Batch<Element> element_batch(AskElements ask, AnswerElement answer) {
  Batch<Element> batch;
  batch.parse = bare_element;
  batch.run = [ask = std::move(ask), answer = std::move(answer)](const Window<Element>& window) -> Answers {
    return [&window, &answer, results = ask(window.items)] { answer_each(window, results(), answer); };
  };
  batch.bytes_of = [](const Element& element) { return element.name.size() + element.value.size(); };
  return batch;
}

ExitStatus run_elements(Session& session, const Batch<Element>& batch, std::vector<Element> elements) {
  const std::vector<std::string> names = names_of(elements);
  return batch.of_words(session, std::move(elements), names);
}

ExitStatus run_words(Session& session, const ElementsOptions& options, const Batch<Element>& batch) {
  if (options.words == std::vector<std::string>{"-"})
    return batch.of_lines(session, {.fail_fast = options.fail_fast}).worst;
  std::vector<Element> elements;
  for (const std::string& word : options.words) {
    if (word == "-") throw InvalidInput("- reads all elements from standard input; give no other elements");
    elements.push_back(bare_element(value_of(word)));
  }
  return run_elements(session, batch, std::move(elements));
}

}  // namespace mcds
