#include <unistd.h>

#include <optional>

#include "tools/cli/input.hpp"
#include "tools/cli/progress.hpp"
#include "tools/commands/elements_command.hpp"

namespace mcds {

namespace {

constexpr std::size_t window_elements = 4096;
constexpr std::size_t window_bytes = 4 << 20;

// Windows of standard input's lines.
class Lines {
 public:
  Lines(Session& session, const ElementsOptions& options, const ElementBatch& batch)
      : session_(session), options_(options), batch_(batch) {
    if (isatty(STDOUT_FILENO) == 0) progress_.emplace(session.clock(), "lines", standard_input_size());
  }

  ExitStatus run() {
    session_.output().buffered(true);
    try {
      while (auto line = stop() ? std::nullopt : lines_.next()) take(std::move(*line));
    } catch (const Failure&) {
      send();
      throw;
    }
    if (!stop()) send();
    return status_;
  }

 private:
  bool stop() const { return options_.fail_fast && status_ > ExitStatus::no; }

  void take(std::string line) {
    read_ += line.size() + 1;
    if (progress_) progress_->advance(1, read_);
    try {
      Element element = batch_.parse(std::move(line));
      bytes_ += element.name.size() + element.value.size();
      elements_.push_back(std::move(element));
      numbers_.push_back(lines_.number());
    } catch (const Failure& failure) {
      fail(failure, lines_.number());
    }
    if (elements_.size() >= window_elements || bytes_ >= window_bytes || !lines_.ready()) send();
  }

  void send() {
    if (elements_.empty()) return;
    if (progress_) progress_->hide();
    const auto results = batch_.run(elements_);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i].failure) {
        fail(*results[i].failure, numbers_[i]);
      } else {
        status_ = worse(status_, batch_.answer(elements_[i], results[i]));
      }
    }
    session_.output().flush();
    elements_.clear();
    numbers_.clear();
    bytes_ = 0;
  }

  void fail(const Failure& failure, std::size_t number) {
    if (progress_) progress_->hide();
    session_.output().error(failure, number);
    status_ = worse(status_, status_of(failure.code()));
  }

  Session& session_;
  const ElementsOptions& options_;
  const ElementBatch& batch_;
  LineReader lines_;
  std::optional<Progress> progress_;
  std::vector<Element> elements_;
  std::vector<std::size_t> numbers_;
  std::size_t bytes_ = 0;
  std::uint64_t read_ = 0;
  ExitStatus status_ = ExitStatus::ok;
};

}  // namespace

std::vector<std::string> names_of(std::span<const Element> elements) {
  std::vector<std::string> names;
  for (const Element& element : elements) names.push_back(element.name);
  return names;
}

Element bare_element(std::string name) {
  Element element{std::move(name), {}};
  Elements::check(element);
  return element;
}

ExitStatus ElementBatch::of_lines(Session& session, const ElementsOptions& options) const {
  return Lines(session, options, *this).run();
}

ExitStatus ElementBatch::of(Session& session, std::vector<Element> elements) const {
  const auto results = run(elements);
  ExitStatus status = ExitStatus::ok;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].failure) {
      session.output().error(*results[i].failure);
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
    if (word == "-") throw InvalidInput("- reads all elements from standard input: give it alone");
    elements.push_back(bare_element(value_of(word)));
  }
  return of(session, std::move(elements));
}

}  // namespace mcds
