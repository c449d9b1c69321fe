// A ring as a drawing: the circle with its arcs outside, the same shares gathered inside, a legend, and keys
// as dots. A pure function of its arguments: the same picture on every machine.
#pragma once

#include "common/placement/ring/shares.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

struct DrawnKey {
  double at;  // on the circle: 0…1, clockwise from the top
  std::size_t server;
};

struct DrawnArc {
  double from, to;
  std::size_t server;
};

struct RingDrawing {
  std::string title;
  std::string subtitle;
  std::vector<std::string> labels;  // one per server
  RingShares shares;
  std::vector<DrawnArc> arcs;
  std::vector<DrawnKey> keys;
  std::vector<std::string> problems;  // sentences, below the picture
  std::string pool = {};              // its name, if it has one
  std::string date = {};              // when it was drawn
};

// Where the client has no circle, every server is one arc, in the order of the pool.
RingDrawing draw_ring(const Placement& placement, const RingShares& shares);
// Where a key stands in the drawing.
DrawnKey draw_key(const Placement& placement, const RingDrawing& drawing, std::string_view key);

std::string svg_of(const RingDrawing& drawing);

// Labels of at most `most` characters: what all of them share at an end is left out before what tells them
// apart.
std::vector<std::string> short_labels(const std::vector<std::string>& labels, std::size_t most);

// The point of the unit circle at `turn` (0…1, clockwise from the top; x to the right, y down).
struct UnitVector {
  double x, y;
};
UnitVector unit_vector(double turn);

}  // namespace mcds
