// One copy of a table's or hash's elements: the steps that elements.hpp argues about, on the one server of each key.
//
// With `tombstones`, that is beside other copies, remove leaves an empty value under the element's key for the grace of the
// index, with flags that say what it is: absent, and not to be filled again from another copy. Otherwise somebody who found
// the element in one copy and not in the other could bring it back behind the removal. Setting it again replaces the
// tombstone and lists the name after that: who dies in between leaves an element that is not acknowledged and not listed.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/errors.hpp"
#include "common/primitives/context.hpp"
#include "common/primitives/copies.hpp"
#include "common/structures/elements/index.hpp"

namespace mcds {

constexpr std::size_t max_element_size = 10 * 1024;

struct Element {
  std::string name;  // any bytes, at most max_element_size
  std::string value;
};

// What became of one element of a batch.
struct ElementResult {
  bool yes = false;      // set: it was missing; get: it is present; remove: it was present
  bool removed = false;  // get, beside other copies: a tombstone says so
  std::string value;     // get
  std::size_t server = 0;
  std::optional<Failure> failure;   // then `yes` says nothing
  bool flood = false;               // get, with `failure`: too much was asked for at once
  std::optional<Failure> unlisted;  // set, of one copy: its index does not list the name, another's does
  std::vector<CopyOutcome> copies;  // with several: what became of each
};

// One element on its way into one copy.
struct ElementSetting {
  const Element* element = nullptr;
  ElementResult result;
  bool done = false;
  bool to_list = false;  // it is set, and nobody need have listed it
  std::optional<SteadyTime> added_at;

  void fail(Failure failure) {
    result.failure = std::move(failure);
    done = true;
  }
};

class ElementsCopy {
 public:
  // `whole` is the context of all copies, of which `context` has one.
  ElementsCopy(const Context& context, const Context& whole, std::string base);
  ElementsCopy(const ElementsCopy&) = delete;
  ElementsCopy& operator=(const ElementsCopy&) = delete;

  // The steps of setting; the names are listed between them. Done are those that existed, or failed.
  void replace(std::span<ElementSetting* const> open);
  // Done are all but those that exist by now.
  void add(std::span<ElementSetting* const> missing);
  std::vector<ElementResult> get(std::span<const std::string> names) const;
  // get in two steps.
  std::unique_ptr<Pending> begin_get(std::span<const std::string> names) const;
  std::vector<ElementResult> finish_get(Pending& pending) const;
  std::vector<ElementResult> remove(std::span<const std::string> names) const;

  // Gives this copy what another has: lists the names, and adds the elements that are not there. Throws Failure.
  void refill(std::span<const std::string* const> names, std::span<const Element> elements);

  ElementIndex& index() { return index_; }
  const ElementIndex& index() const { return index_; }
  std::string key_of(std::string_view name) const;

 private:
  std::vector<bool> present(std::span<const std::string> names) const;
  std::vector<Request> gets(std::span<const std::string> names) const;
  std::vector<ElementResult> found(std::vector<Reply> replies) const;
  void list(std::span<const std::string* const> names);

  Context context_;
  Context whole_;
  std::string base_;
  std::string values_base_;
  bool tombstones_;  // there are other copies
  ElementIndex index_;
};

// Of a copy whose run failed.
std::vector<ElementResult> failed_results(std::size_t count, const Failure& failure);

// Throws Failure(bad_data) for a name or value that is too long.
void check_element(const Element& element);

}  // namespace mcds
