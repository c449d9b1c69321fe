#include <doctest/doctest.h>

#include <cmath>
#include <set>

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

TEST_CASE("labels of many servers leave out what they share, not what tells them apart") {
  std::vector<std::string> labels;
  std::vector<std::string> regions;
  for (int i = 10; i < 70; ++i) {
    labels.push_back("cache-prod-" + std::to_string(i) + ".eu-west-1.compute.example.com:11211");
    regions.push_back("memcached-production-" + std::string(i % 2 == 0 ? "eu" : "us") + "-node" +
                      std::to_string(i) + ".example.com:1121" + std::to_string(i % 2));
  }
  CHECK(short_labels(labels, 22).front() == "cache-prod-10…");
  for (const auto& some : {labels, regions}) {
    const auto names = short_labels(some, 22);
    CHECK(std::set<std::string>(names.begin(), names.end()).size() == some.size());
    for (const std::string& name : names) CHECK(name.size() <= 22 + 2 * 2);
  }
  CHECK(short_labels(regions, 22).front() == "…eu-node10….com:11210");
  const std::vector<std::string> few{"10.0.0.1:11211", "10.0.0.2:11211"};
  CHECK(short_labels(few, 22) == few);
  CHECK(short_labels({std::string(40, 'x')}, 22).front() == std::string(9, 'x') + "…" + std::string(10, 'x'));
  CHECK(short_labels({}, 22).empty());
}

TEST_CASE("the legend counts the keys that were drawn; the pool and the date stand beside the title") {
  RingDrawing drawing = drawing_of("gomemcache", "a,b");
  CHECK_FALSE(contains(svg_of(drawing), ">keys</text>"));
  drawing.keys = {{0.1, 0}, {0.2, 0}, {0.9, 1}};
  drawing.pool = "pool <sessions>";
  drawing.date = "2026-11-21 08:30 UTC";
  const std::string svg = svg_of(drawing);
  CHECK(contains(svg, ">keys</text>"));
  CHECK(contains(svg, "class=\"label end\">2</text>"));
  CHECK(contains(svg, "class=\"label end\">1</text>"));
  CHECK(contains(svg, ">pool &lt;sessions&gt;</text>"));
  CHECK(contains(svg, ">2026-11-21 08:30 UTC</text>"));
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
