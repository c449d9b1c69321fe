// The elements of a table or hash whose keys have copies.
//
// Each copy is a set of elements of its own, with its own index (elements.hpp), and is written by itself, side by side
// with the others. An element is present when any copy has it.
//   set, remove   on every copy that answers; listed are those that did not
//   get           any copy's value, the first one's before the others'. A copy that answered and has none is re-filled:
//                 its name is listed there and the value added, never written over what may have come meanwhile; then the
//                 source is asked again, and what was removed in between is removed again. Copies with different values
//                 (two writers at once) are made equal to the first, by compare-and-set.
//   fetch         the union of all indexes, then get; names that one copy's index lacks are listed there again, and an index
//                 that had lost something counts as whole again once another whole one was put into it
// Round trips: as elements.hpp; two more and what a set costs when something has to be re-filled. Memory: fetch keeps all
// names. What cannot be had without an order among servers: a remove that a server did not get because it could not be
// reached, though it kept its data, is undone by the next read.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/primitives/copies.hpp"
#include "common/primitives/elements.hpp"

namespace mcds {

class CopiedElements {
 public:
  // As Elements; with one copy it is that.
  CopiedElements(const Context& context, std::string_view structure, std::string_view name);

  std::vector<ElementResult> set(std::span<const Element> elements, bool relist = false);
  std::vector<ElementResult> get(std::span<const std::string> names) const;
  std::vector<ElementResult> remove(std::span<const std::string> names) const;
  Elements::Listing fetch(const Elements::Visit& visit) const;
  std::size_t clear();
  bool compact();
  void accept();

  std::vector<std::string> index_keys() const { return each_.front()->index_keys(); }
  std::string key_of(std::string_view name) const { return each_.front()->key_of(name); }

 private:
  using Results = std::vector<std::vector<ElementResult>>;  // of each copy
  bool single() const { return each_.size() == 1; }
  void set_again(std::size_t copy, std::span<const Element> elements, std::vector<ElementResult>& results);
  ElementResult merge(const Results& results, std::size_t index) const;
  void refill(std::span<const std::string> names, Results& results) const;
  void level(std::span<const std::string> names, const Results& results) const;
  void list_again(std::span<const Elements::Found> found, const std::vector<std::vector<std::string>>& listed) const;

  Context context_;
  Copies copies_;
  std::vector<std::unique_ptr<Elements>> each_;  // per copy
};

}  // namespace mcds
