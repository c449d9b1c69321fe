// The same code several times, side by side: a structure's copies, or many names of a batch.
//
// Every run has a Context of its own. One that asks the servers, or sleeps, waits for the others; what all of
// them ask for leaves as one batch, so that many runs cost as many round trips as the longest of them.
//
// The runs are fibers because structures stay plain code that way: whoever waits for a reply simply calls
// execute(), and would otherwise have to be written as a state machine to wait beside others. Everything
// happens on one thread, in the order of the runs. A single run is no fiber, and has the whole context.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "common/primitives/context.hpp"

namespace mcds {

class SideBySide {
 public:
  // Where the keys of a run lie, in one copy each; without one they lie as in `whole`.
  using PlacementOf = std::function<std::unique_ptr<Placement>(std::size_t run)>;
  SideBySide(const Context& whole, std::size_t runs, const PlacementOf& placement_of = {});
  ~SideBySide();
  SideBySide(SideBySide&&) noexcept;
  SideBySide& operator=(SideBySide&&) noexcept;

  std::size_t size() const;
  Context& at(std::size_t run) const;

  // Does `work` in every run. It may use nothing but at(run) of the outside world. What one throws leaves
  // here, after all have ended.
  void each(const std::function<void(std::size_t run)>& work) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace mcds
