#include <doctest/doctest.h>

#include <cmath>

#include "tools/commands/ring/svg.hpp"

using namespace mcds;

namespace {

RingDrawing drawing_of(std::string_view profile, std::string_view servers) {
  const auto placement = make_placement(profile, parse_pool(servers));
  return draw_ring(*placement, ring_shares(*placement, ""));
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the drawing's own sine and cosine are exact to a millionth of a pixel") {
  for (int i = 0; i <= 1000; ++i) {
    const double turn = i / 1000.0, angle = turn * 2 * std::acos(-1.0);
    CAPTURE(turn);
    CHECK(unit_vector(turn).x == doctest::Approx(std::sin(angle)).epsilon(1e-9));
    CHECK(unit_vector(turn).y == doctest::Approx(-std::cos(angle)).epsilon(1e-9));
  }
}

TEST_CASE("the arcs drawn are the whole circle, without gap or overlap") {
  for (const char* profile : {"ketama", "gomemcache"}) {
    const RingDrawing drawing = drawing_of(profile, "a,b,c/?5,d");
    double from = 0;
    for (const DrawnArc& arc : drawing.arcs) {
      CHECK(arc.from == doctest::Approx(from).epsilon(1e-12));
      from = arc.to;
    }
    CHECK(from == doctest::Approx(1).epsilon(1e-12));
  }
}

TEST_CASE("a key stands in an arc of its own server") {
  for (const char* profile : {"ketama", "gomemcache"}) {
    const auto placement = make_placement(profile, parse_pool("a,b,c"));
    const RingDrawing drawing = draw_ring(*placement, ring_shares(*placement, ""));
    SampleKeys keys("");
    for (int i = 0; i < 1000; ++i) {
      const DrawnKey key = draw_key(*placement, drawing, keys.next());
      const auto holds = [&](const DrawnArc& arc) {
        return arc.server == key.server && arc.from <= key.at + 1e-9 && key.at <= arc.to + 1e-9;
      };
      CHECK(std::any_of(drawing.arcs.begin(), drawing.arcs.end(), holds));
    }
  }
}

TEST_CASE("names that are markup stay text") {
  const std::string svg = svg_of(drawing_of("gomemcache", "<b>&=10.0.0.1,b"));
  CHECK(contains(svg, "&lt;b&gt;&amp;"));
  CHECK_FALSE(contains(svg, "<b>"));
}

TEST_CASE("one server is a whole ring; a hundred fit beside it") {
  CHECK(contains(svg_of(drawing_of("ketama", "a")), ">server</text>"));
  std::string servers = "s0";
  for (int i = 1; i < 100; ++i) servers += ",s" + std::to_string(i);
  CHECK(contains(svg_of(drawing_of("ketama", servers)), ">s99:11211</text>"));
}

TEST_CASE("the problems found stand below the picture, in lines, escaped") {
  RingDrawing drawing = drawing_of("ketama", "a,b");
  const std::string without = svg_of(drawing);
  drawing.problems = {"a & b: one",
                      std::string(60, 'x') + ' ' + std::string(60, 'y') + ' ' + std::string(60, 'z')};
  const std::string with = svg_of(drawing);
  CHECK(contains(without, "height=\"880\""));
  CHECK_FALSE(contains(without, "class=\"problem\""));
  CHECK(contains(with, "height=\"962\""));  // three lines
  CHECK(contains(with, "class=\"problem\">a &amp; b: one</text>"));
  CHECK(contains(with, ">" + std::string(60, 'z') + "</text>"));
}
