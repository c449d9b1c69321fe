#include "tools/cli/input.hpp"
#include "tools/cli/line_batch.hpp"
#include "tools/commands/elements/command.hpp"

namespace mcds {

namespace {

constexpr std::size_t window_elements = 1024;
constexpr std::size_t window_bytes = 4 << 20;

class ElementLines final : public LineBatch {
 public:
  ElementLines(Session& session, const ElementsOptions& options, const ElementBatch& batch)
      : LineBatch(session, options.fail_fast, Answers::each_line), batch_(batch) {}

 private:
  void take(std::string line) override {
    Element element = batch_.parse(std::move(line));
    bytes_ += element.name.size() + element.value.size();
    elements_.push_back(std::move(element));
    numbers_.push_back(line_number());
    if (elements_.size() >= window_elements || bytes_ >= window_bytes) send();
  }

  void send() override {
    if (elements_.empty()) return;
    const auto results = batch_.run(elements_);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i].failure) {
        fail(*results[i].failure, numbers_[i]);
      } else {
        note(batch_.answer(elements_[i], results[i]));
      }
    }
    elements_.clear();
    numbers_.clear();
    bytes_ = 0;
  }

  const ElementBatch& batch_;
  std::vector<Element> elements_;
  std::vector<std::size_t> numbers_;
  std::size_t bytes_ = 0;
};

}  // namespace

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

ExitStatus ElementBatch::of_lines(Session& session, const ElementsOptions& options) const {
  return ElementLines(session, options, *this).run();
}

ExitStatus ElementBatch::of(Session& session, std::vector<Element> elements) const {
  const auto results = run(elements);
  const auto names = names_of(elements);
  ExitStatus status = ExitStatus::ok;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].failure) {
      session.output().error_of(names[i], names, *results[i].failure);
      status = worse(status, status_of(results[i].failure->code()));
    } else {
      status = worse(status, answer(elements[i], results[i]));
    }
  }
  return status;
}

ExitStatus ElementBatch::of_words(Session& session, const ElementsOptions& options) const {
  if (options.words.size() == 1 && options.words.front() == "-") return of_lines(session, options);
  std::vector<Element> elements;
  for (const std::string& word : options.words) {
    if (word == "-") throw InvalidInput("- reads all elements from standard input; give no other elements");
    elements.push_back(bare_element(value_of(word)));
  }
  return of(session, std::move(elements));
}

}  // namespace mcds
