// Runs one verb for many items: the words of its command line, or the lines of standard input or of a file.
//
//   const Batch<Element> batch{.parse = bare_element, .run = [&](Window<Element>& window) {
//     answer_each(window, table.get(names_of(window.items)), print);
//   }};
//   return batch.of_lines(session, {}).worst;
//
// A verb defines how a line is parsed and how a window of items is run. Reading, windows, line numbers,
// failures, progress and the exit status are the same for all verbs.
#pragma once

#include <deque>

#include "tools/cli/progress.hpp"
#include "tools/cli/session.hpp"

namespace mcds {

// Prints the answers to a window that is in flight.
using Answers = std::function<void()>;

// Items that are sent together. A window lives until its answers are printed.
template <typename Item>
class Window {
 public:
  using Fail = std::function<void(std::size_t i, const Failure& failure)>;
  using Done = std::function<void(std::size_t i, std::optional<std::uint64_t> end)>;
  using Note = std::function<void(ExitStatus status)>;
  Window(Fail fail, Done done, Note note)
      : fail_(std::move(fail)), done_(std::move(done)), note_(std::move(note)) {}

  std::vector<Item> items;

  // Reports the failure of the i-th item.
  void fail(std::size_t i, const Failure& failure) const { fail_(i, failure); }
  // Reports the same failure for the i-th item and all later items.
  void fail_from(std::size_t i, const Failure& failure) const {
    for (; i < items.size(); ++i) fail_(i, failure);
  }
  // Notes that the i-th item was answered up to this Output::end(); default: the present one.
  void done(std::size_t i, ExitStatus status, std::optional<std::uint64_t> end = {}) const {
    done_(i, end);
    note(status);
  }
  // Notes that the items that neither failed nor are done were answered.
  void done_with_rest() const {
    for (std::size_t i = 0; i < items.size(); ++i) done_(i, {});
  }
  void note(ExitStatus status) const {
    if (status != ExitStatus::ok) note_(status);
  }

 private:
  Fail fail_;
  Done done_;
  Note note_;
};

// Answers results that have a `failure`, one per item: reports it, or notes the status of `answer`.
template <typename Item, typename Results, typename Answer>
void answer_each(const Window<Item>& window, const Results& results, const Answer& answer) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].failure)
      window.fail(i, *results[i].failure);
    else
      window.done(i, answer(window.items[i], results[i]));
  }
}

// Answers the items one after the other. A failure that `answer` throws is reported for its item.
template <typename Item, typename Answer>
void answer_one_by_one(const Window<Item>& window, const Answer& answer) {
  for (std::size_t i = 0; i < window.items.size(); ++i) {
    try {
      window.done(i, answer(window.items[i]));
    } catch (const Failure& failure) {
      window.fail(i, failure);
    }
  }
}

struct LineOptions {
  bool all_or_none = false;  // stop at the first line that fails
  bool answers_each = true;  // every line is answered, so a terminal needs no progress line
  std::string file = "-";
};

struct LinesDone {
  ExitStatus worst = ExitStatus::ok;
  std::uint64_t lines = 0, failed = 0;
};

// Reads the lines of a batch and collects their outcomes. A line that fails is reported by its number,
// together with other lines of the same cause; the other lines are still processed.
class BatchLines {
 public:
  BatchLines(Session& session, LineOptions options);

  // Calls `take` with each line, and `send` before it waits for more input and at the end, even if the input
  // cannot be read to its end. A Failure that `take` throws is reported for that line, except failures of
  // usage and output, which end the batch. If the deadline passes while input is read, that is reported and
  // becomes part of the result's worst status.
  LinesDone each(const std::function<void(std::string&& line)>& take, const std::function<void()>& send);

  // Returns the number of the current line, from 1.
  std::size_t number() const { return lines_.number(); }
  void fail(const Failure& failure, std::size_t line);
  // Records that the line was answered up to this Output::end(). It fails if that is not written in time.
  void done(std::size_t line, std::optional<std::uint64_t> end) {
    answered_.emplace_back(line, end.value_or(session_.output().end()));
  }
  void forget_written() {
    std::erase_if(answered_, [&](const auto& one) { return session_.output().has_written(one.second); });
  }
  void note(ExitStatus status) { worst_ = worse(worst_, status); }

 private:
  void read(const std::function<void(std::string&& line)>& take, const std::function<void()>& send);
  void pause();
  void finish(const std::function<void()>& send);
  std::string summary() const;

  Session& session_;
  LineOptions options_;
  LineReader lines_;
  SteadyTime started_;
  std::optional<Progress> progress_;
  ExitStatus worst_ = ExitStatus::ok;
  std::uint64_t failed_ = 0;
  std::vector<std::pair<std::size_t, std::uint64_t>> answered_;  // lines, each with the end of its answer
};

// Calls `check` for a line of input. Turns InvalidInput into Failure(bad_data), the error for bad input.
template <typename Check>
auto of_line(const Check& check) {
  try {
    return check();
  } catch (const InvalidInput& failure) {
    throw Failure(ErrorCode::bad_data, failure.what());
  }
}

template <typename Item>
struct Batch {
  // Returns nullopt for a line to skip. Throws Failure or InvalidInput for a bad line.
  std::function<std::optional<Item>(std::string&& line)> parse;
  // Sends the window's items and prints the answers. A Failure that it throws applies to all items.
  std::function<void(Window<Item>& window)> run = {};
  // Alternative to `run`: sends the items and returns a function that prints the answers. It is called when
  // `ahead` later windows are in flight.
  std::function<Answers(Window<Item>& window)> begin = {};
  std::size_t ahead = 1;
  // Limits of a window, which is sent before it exceeds one. Later windows of a long list grow up to
  // max_items_later. The first may be limited by max_items_first if its answers tell about the others.
  std::size_t max_items = 1024;
  std::size_t max_items_first = 0;
  std::size_t max_items_later = 0;
  std::function<std::size_t(const Item&)> bytes_of = {};
  std::size_t max_bytes = std::size_t{4} << 20;

  // Runs the batch over lines, one window after the other.
  LinesDone of_lines(Session& session, LineOptions options) const;
  // Runs all items as one window; `words` name the items. A failure that `run` throws ends the batch.
  ExitStatus of_words(Session& session, std::vector<Item> items, const std::vector<std::string>& words) const;
};

// Runs one pass over the lines of a batch.
template <typename Item>
class BatchRun {
 public:
  BatchRun(const Batch<Item>& batch, Session& session, LineOptions options)
      : batch_(batch), lines_(session, std::move(options)) {}

  LinesDone run() {
    return lines_.each([this](std::string&& line) { take(std::move(line)); },
                       [this] {
                         send();
                         print(0);
                       });
  }

 private:
  void take(std::string&& line) {
    auto item = of_line([&] { return batch_.parse(std::move(line)); });
    if (!item) return;
    const std::size_t bytes = batch_.bytes_of ? batch_.bytes_of(*item) : 0;
    if (bytes_ + bytes > batch_.max_bytes) send();
    if (!filling_) begin();
    filling_->items.push_back(std::move(*item));
    numbers_->push_back(lines_.number());
    bytes_ += bytes;
    if (filling_->items.size() >= max_items()) send();
  }

  std::size_t max_items() const {
    constexpr std::size_t share = 16;  // of all lines so far
    if (last_size_ == 0 && batch_.max_items_first != 0) return batch_.max_items_first;
    return std::max(batch_.max_items, std::min(batch_.max_items_later, lines_.number() / share));
  }

  void begin() {
    numbers_ = std::make_shared<std::vector<std::size_t>>();
    filling_ = std::make_unique<Window<Item>>(
        [this, numbers = numbers_](std::size_t i, const Failure& failure) {
          if (const std::size_t line = std::exchange((*numbers)[i], 0)) lines_.fail(failure, line);
        },
        [this, numbers = numbers_](std::size_t i, std::optional<std::uint64_t> end) {
          if (const std::size_t line = std::exchange((*numbers)[i], 0)) lines_.done(line, end);
        },
        [this](ExitStatus status) { lines_.note(status); });
    filling_->items.reserve(last_size_);
    numbers_->reserve(last_size_);
    bytes_ = 0;
  }

  void send() {
    if (!filling_) return;
    last_size_ = filling_->items.size();
    const auto window = std::shared_ptr<Window<Item>>(std::move(filling_));
    bytes_ = 0;
    Answers answers;
    with_failures_of(*window, [&] {
      batch_.run ? batch_.run(*window) : static_cast<void>(answers = batch_.begin(*window));
    });
    if (answers)
      in_flight_.push_back([window, answers] {
        with_failures_of(*window, answers);
        window->done_with_rest();
      });
    else
      window->done_with_rest();
    print(batch_.ahead);
    lines_.forget_written();
  }

  template <typename Step>
  static void with_failures_of(const Window<Item>& window, const Step& step) {
    try {
      step();
    } catch (const Failure& failure) {
      if (failure.code() == ErrorCode::usage || failure.code() == ErrorCode::output_failed) throw;
      window.fail_from(0, failure);
    }
  }

  // Prints the answers of all windows in flight but the last `kept`.
  void print(std::size_t kept) {
    while (in_flight_.size() > kept) {
      const Answers answers = std::move(in_flight_.front());
      in_flight_.pop_front();
      answers();
    }
  }

  const Batch<Item>& batch_;
  BatchLines lines_;
  std::unique_ptr<Window<Item>> filling_;
  // Line numbers of the items in `filling_`; 0 once an item has failed or is answered.
  std::shared_ptr<std::vector<std::size_t>> numbers_;
  std::size_t bytes_ = 0;      // size of the items in `filling_`
  std::size_t last_size_ = 0;  // number of items in the previous window
  std::deque<Answers> in_flight_;
};

template <typename Item>
LinesDone Batch<Item>::of_lines(Session& session, LineOptions options) const {
  return BatchRun<Item>(*this, session, std::move(options)).run();
}

template <typename Item>
ExitStatus Batch<Item>::of_words(Session& session, std::vector<Item> items,
                                 const std::vector<std::string>& words) const {
  ExitStatus worst = ExitStatus::ok;
  Window<Item> window(
      [&](std::size_t i, const Failure& failure) {
        session.output().error_of(words[i], words, failure);
        worst = worse(worst, status_of(failure.code()));
      },
      [](std::size_t, std::optional<std::uint64_t>) {},
      [&](ExitStatus status) { worst = worse(worst, status); });
  window.items = std::move(items);
  run ? run(window) : begin(window)();
  return worst;
}

// How a verb handles several names: the words of its command line, or for `-` the lines of standard input.

// Throws InvalidInput for an unusable name.
using CheckName = std::function<void(const std::string& name)>;
// Prints the answers for these names, in their order.
using AnswerNames = std::function<void(const Window<std::string>& names)>;

// Returns the worst status of all names, failed ones included. Lines are read one window at a time.
ExitStatus for_names(Session& session, const std::vector<std::string>& names, const CheckName& check,
                     const AnswerNames& answer);

// Runs the verb `where`: prints a line for each key of each name.
using KeysOfName = std::function<std::vector<std::string>(const std::string& name)>;
ExitStatus where_names(Session& session, const std::vector<std::string>& names, const KeysOfName& keys_of);

struct NamedNumber {
  std::string name;
  std::uint64_t number;
};
// Parses `NAME` or `NAME NUMBER`, with a default number. Throws Failure(bad_data) that shows `form`.
NamedNumber name_and_number(std::string line, std::uint64_t otherwise, const char* form);

}  // namespace mcds
