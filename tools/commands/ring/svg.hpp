// Draws a ring: the circle with its arcs outside, the shares gathered by server inside, a legend, and keys as
// dots. The drawing depends only on the arguments: it is the same on every machine.
#pragma once

#include "common/placement/ring/shares.hpp"
#include "tools/commands/commands.hpp"

namespace mcds {

struct DrawnKey {
  double at;  // position on the circle: 0…1, clockwise from the top
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
  std::vector<std::string> problems;  // sentences below the picture
  std::string pool = {};              // its name, or empty
  std::string date = {};              // date of the drawing
};

// Returns the drawing. If the client has no circle, every server is one arc, in the order of the pool.
RingDrawing draw_ring(const Placement& placement, const RingShares& shares);
// Returns the key's position in the drawing.
DrawnKey draw_key(const Placement& placement, const RingDrawing& drawing, std::string_view key);

std::string svg_of(const RingDrawing& drawing);

// Returns labels of at most `most` characters. The parts at either end that all labels share are removed
// first, then parts that distinguish them.
std::vector<std::string> short_labels(const std::vector<std::string>& labels, std::size_t most);

// Returns the point of the unit circle at `turn` (0…1, clockwise from the top; x to the right, y down).
struct UnitVector {
  double x, y;
};
UnitVector unit_vector(double turn);

}  // namespace mcds
