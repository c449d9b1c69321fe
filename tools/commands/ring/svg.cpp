#include "tools/commands/ring/svg.hpp"

#include <cmath>
#include <numeric>

#include "common/placement/ring/continuum.hpp"

namespace mcds {

namespace {

constexpr double pi = 3.14159265358979323846;

// Sizes in pixels of the drawing.
constexpr double centre_x = 390, centre_y = 475;
constexpr double ring_radius = 262, ring_width = 62;          // the circle as it is
constexpr double gathered_radius = 190, gathered_width = 46;  // each server's arcs joined
constexpr double dots_from = 302, dot_size = 2.3, dot_step = 5.6;
constexpr std::size_t max_layers = 11;
constexpr double legend_x = 770, legend_width = 400, keys_width = 84;
constexpr std::size_t label_length = 22;
constexpr double rows_height = 700;
constexpr double picture_height = 880, problem_height = 22;

using Colour = std::array<int, 3>;  // red, green and blue, 0…255

// Evenly spaced hues of similar strength, from blue over red, orange and green back to blue.
constexpr std::array<std::uint32_t, 24> wheel{0x3277c9, 0x546dc9, 0x6e65c5, 0x8560bf, 0x9b5db6, 0xb05daa,
                                              0xc3609c, 0xd4658c, 0xe26e7a, 0xeb7967, 0xef8553, 0xed933f,
                                              0xe4a02e, 0xd5ac28, 0xbfb532, 0xa3bb46, 0x81be5c, 0x56bd71,
                                              0x07b886, 0x00b198, 0x00a7a8, 0x009bb5, 0x008fbf, 0x0082c6};

Colour channels(std::uint32_t rgb) {
  return {static_cast<int>(rgb >> 16), static_cast<int>(rgb >> 8 & 0xff), static_cast<int>(rgb & 0xff)};
}

Colour mixed(const Colour& a, const Colour& b, double part) {
  Colour result{};
  for (std::size_t i = 0; i < 3; ++i) result[i] = static_cast<int>(a[i] + (b[i] - a[i]) * part + 0.5);
  return result;
}

// Returns the server's colour. With many servers, neighbours differ in brightness as well.
Colour colour_of(std::size_t server, std::size_t servers) {
  const double place = static_cast<double>(server * wheel.size()) / static_cast<double>(servers);
  const auto below = static_cast<std::size_t>(place);
  const Colour pure = mixed(channels(wheel[below % wheel.size()]),
                            channels(wheel[(below + 1) % wheel.size()]), place - static_cast<double>(below));
  if (servers <= 8) return pure;
  constexpr std::array shades{0.0, 0.34, -0.30};
  const double shade = shades[server % shades.size()];
  return shade < 0 ? mixed(pure, {0x14, 0x1c, 0x30}, -shade) : mixed(pure, {255, 255, 255}, shade);
}

// Returns true if text on this colour must be dark.
bool is_light(const Colour& colour) {
  return colour[0] * 3 + colour[1] * 6 + colour[2] > 1750;
}

std::string hex(const Colour& colour) {
  const int rgb = colour[0] << 16 | colour[1] << 8 | colour[2];
  return '#' + hex64(static_cast<std::uint64_t>(rgb)).substr(10);
}

std::string escaped(std::string_view text) {
  constexpr std::string_view special = "&<>\"";
  constexpr std::array names{"&amp;", "&lt;", "&gt;", "&quot;"};
  std::string result;
  for (const char c : text) {
    const std::size_t at = special.find(c);
    result += at == std::string_view::npos ? std::string(1, c) : names[at];
  }
  return is_utf8(result) ? result : percent_encode(text);
}

std::string px(double value) {
  std::string text = format_fixed(value, 2);
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string point(double turn, double radius) {
  const UnitVector at = unit_vector(turn);
  return px(centre_x + at.x * radius) + ' ' + px(centre_y + at.y * radius);
}

// Adds an arc to `to`, in pieces: SVG cannot draw more than half a circle unambiguously.
void add_curve(std::string& path, double from, double to, double radius) {
  const std::string size = px(radius);
  const int pieces = std::abs(to - from) > 0.45 ? 3 : 1;
  for (int i = 1; i <= pieces; ++i) {
    path += 'A' + size + ' ' + size + (to > from ? " 0 0 1 " : " 0 0 0 ") +
            point(from + (to - from) * i / pieces, radius);
  }
}

// Returns a section of a ring, filled because the ends of a very short stroke have no defined direction.
std::string band(double from, double to, double radius, double width) {
  const double outer = radius + width / 2, inner = radius - width / 2;
  std::string path = 'M' + point(from, outer);
  if (to - from < 0.002)
    return path + 'L' + point(to, outer) + 'L' + point(to, inner) + 'L' + point(from, inner) + 'Z';
  add_curve(path, from, to, outer);
  path += 'L' + point(to, inner);
  add_curve(path, to, from, inner);
  return path + 'Z';
}

std::string text_at(double x, double y, std::string_view style, std::string_view text,
                    const std::string& attributes = {}) {
  return "<text x=\"" + px(x) + "\" y=\"" + px(y) + "\" class=\"" + std::string(style) + '"' + attributes +
         '>' + escaped(text) + "</text>\n";
}

// Returns the text without its middle, if all of it is ASCII.
std::string without_the_middle(const std::string& text, std::size_t most) {
  if (text.size() <= most || !std::ranges::all_of(text, [](char c) { return c > 0; })) return text;
  return text.substr(0, most / 2 - 1) + "…" + text.substr(text.size() - most / 2);
}

// The number of characters that all labels have in common at either end, up to where a part of a name begins.
struct CommonEnds {
  std::size_t head = 0, tail = 0;

  explicit CommonEnds(const std::vector<const std::string*>& labels) {
    const std::string& first = *labels.front();
    head = tail = first.size();
    for (const std::string* label : labels) {
      const auto [a, b] = std::mismatch(first.begin(), first.end(), label->begin(), label->end());
      head = std::min(head, static_cast<std::size_t>(a - first.begin()));
      const auto [c, d] = std::mismatch(first.rbegin(), first.rend(), label->rbegin(), label->rend());
      tail = std::min(tail, static_cast<std::size_t>(c - first.rbegin()));
    }
    const auto divides = [](char c) { return std::string_view(".:-_/").find(c) != std::string_view::npos; };
    while (head > 0 && !divides(first[head - 1])) --head;
    while (tail > 0 && !divides(first[first.size() - tail])) --tail;
  }
};

std::string short_label(const std::string& label, const CommonEnds& common, std::size_t most) {
  if (label.size() <= most) return label;
  const std::string front = label.substr(0, label.size() - common.tail);
  if (common.tail > 0 && front.size() < most) return front + "…";
  if (common.head >= front.size()) return without_the_middle(label, most);
  const std::string telling = front.substr(common.head);
  return (common.head > 0 ? "…" : "") + without_the_middle(telling, most - 2) + (common.tail > 0 ? "…" : "");
}

class SvgWriter {
 public:
  explicit SvgWriter(const RingDrawing& drawing) : drawing_(drawing), servers_(drawing.labels.size()) {
    const auto rows = static_cast<std::size_t>(rows_height / 19);
    columns_ = (servers_ + rows - 1) / rows;
    rows_ = (servers_ + columns_ - 1) / columns_;
    row_height_ = std::min(34.0, rows_height / static_cast<double>(rows_));
    names_ = short_labels(drawing.labels, label_length);
    keys_.resize(servers_);
    for (const DrawnKey& key : drawing.keys) ++keys_[key.server];
    if (!drawing.keys.empty()) legend_width_ += keys_width;
    legend_top_ = centre_y + 6 - row_height_ * static_cast<double>(rows_) / 2;
    for (const std::string& problem : drawing.problems) {
      const std::string lines = wrapped(problem, 0, 0, 130 + 50 * (columns_ - 1));
      for (const std::string_view line : split(lines, '\n')) problems_.emplace_back(line);
    }
  }

  std::string write() {
    start();
    if (drawing_.shares.points.empty()) {
      gathered(ring_radius, ring_width);
    } else {
      ring();
      gathered(gathered_radius, gathered_width);
    }
    middle();
    dots();
    legend();
    problems();
    return svg_ + "</svg>\n";
  }

 private:
  void start() {
    const double width = legend_x + static_cast<double>(columns_) * (legend_width_ + 30) + 10;
    const double below = problems_.empty() ? 0 : 16 + problem_height * static_cast<double>(problems_.size());
    const std::string height = px(picture_height + below);
    const std::string size = "width=\"" + px(width) + "\" height=\"" + height + '"';
    svg_ =
        "<svg xmlns=\"http://www.w3.org/2000/svg\" " + size + " viewBox=\"0 0 " + px(width) + ' ' + height +
        "\" role=\"img\">\n<title>" + escaped(drawing_.title + ": " + drawing_.subtitle) +
        "</title>\n<style>\n" +
        "text { font-family: Inter, system-ui, 'Segoe UI', 'Helvetica Neue', 'DejaVu Sans', sans-serif; "
        "fill: #1d2536 }\n"
        ".title { font-size: 30px; font-weight: 700 }\n.sub { font-size: 15px; fill: #667085 }\n"
        ".problem { font-size: 14px; fill: #b42318 }\n"
        ".head { font-size: 12px; fill: #667085 }\n.end { text-anchor: end }\n.mid { text-anchor: middle }\n"
        ".label { font-size: " +
        px(label_size()) +
        "px }\n.share { font-weight: 600 }\n.big { font-size: 44px; font-weight: 700 }\n"
        ".number { font-size: 13px; font-weight: 600; fill: #fff }\n.dark { fill: #1d2536 }\n"
        "@media (prefers-color-scheme: dark) { text, .mark { fill: #e6edf3 } .sub, .head { fill: #9da7b5 } "
        ".back { fill: #0d1117 } .rest { fill: #30363d } .problem { fill: #ff8f85 } }\n</style>\n<rect " +
        size + " class=\"back\" fill=\"#fbfcfe\"/>\n";
    svg_ += text_at(48, 62, "title", drawing_.title) + text_at(48, 90, "sub", drawing_.subtitle);
    if (!drawing_.pool.empty()) svg_ += text_at(width - 40, 62, "sub end", drawing_.pool);
    if (!drawing_.date.empty()) svg_ += text_at(width - 40, 90, "sub end", drawing_.date);
  }

  double label_size() const { return std::min(15.0, row_height_ * 0.66); }

  std::string tip(std::size_t server) const {
    return "<title>" + escaped(drawing_.labels[server]) + ": " +
           format_percent(drawing_.shares.shares[server]) +
           (drawing_.keys.empty() ? "" : ", " + std::to_string(keys_[server]) + " keys") + "</title>";
  }

  std::string path(std::size_t server, const std::string& shape) const {
    return "<path fill=\"" + hex(colour_of(server, servers_)) + "\" d=\"" + shape + "\">" + tip(server) +
           "</path>\n";
  }

  void ring() {
    svg_ += "<g id=\"ring\">\n";
    std::vector<std::string> shapes(servers_);
    for (const DrawnArc& arc : drawing_.arcs)
      shapes[arc.server] += band(arc.from, arc.to, ring_radius, ring_width);
    for (std::size_t i = 0; i < servers_; ++i) {
      if (!shapes[i].empty()) svg_ += path(i, shapes[i]);
    }
    svg_ += "</g>\n";
  }

  void gathered(double radius, double width) {
    svg_ += "<g id=\"shares\">\n";
    double from = 0;
    for (std::size_t i = 0; i < servers_; ++i) {
      const double share = drawing_.shares.shares[i], to = from + share;
      // Gaps have the same width everywhere, but take at most half of a small share.
      const double gap = share > 0.999 ? 0 : std::min(1.5 / (2 * pi * radius), share / 4);
      if (share > 0) svg_ += path(i, band(from + gap, to - gap, radius, width));
      if (servers_ <= 40 && share * 2 * pi * radius > 18) number((from + to) / 2, radius, i);
      from = to;
    }
    svg_ += "</g>\n";
  }

  void number(double turn, double radius, std::size_t server) {
    const UnitVector at = unit_vector(turn);
    svg_ += text_at(centre_x + at.x * radius, centre_y + at.y * radius + 4.6, number_class(server),
                    std::to_string(server));
  }

  std::string number_class(std::size_t server) const {
    return is_light(colour_of(server, servers_)) ? "number mid dark" : "number mid";
  }

  void middle() {
    svg_ += text_at(centre_x, centre_y + 2, "big mid", std::to_string(servers_));
    svg_ += text_at(centre_x, centre_y + 28, "sub mid", servers_ == 1 ? "server" : "servers");
    if (servers_ == 1) return;
    double most = 0;
    for (std::size_t i = 0; i < servers_; ++i) {
      if (drawing_.shares.fair[i] > 0)
        most = std::max(most, drawing_.shares.shares[i] / drawing_.shares.fair[i]);
    }
    svg_ += text_at(centre_x, centre_y + 56, "head mid", "fullest: " + format_fixed(most, 2) + " × fair");
  }

  // Draws keys in stacks outside the ring. If they would grow too high, a dot stands for several keys.
  void dots() {
    if (drawing_.keys.empty()) return;
    const auto bins = static_cast<std::size_t>(2 * pi * dots_from / dot_step);
    std::vector<std::vector<std::size_t>> stacks(bins);
    for (const DrawnKey& key : drawing_.keys) {
      stacks[static_cast<std::size_t>(key.at * static_cast<double>(bins)) % bins].push_back(key.server);
    }
    const std::size_t per_dot = keys_per_dot(stacks);
    std::vector<std::string> circles(servers_);
    for (std::size_t bin = 0; bin < bins; ++bin) {
      for (std::size_t i = 0; i < stacks[bin].size(); i += per_dot)
        add_dot(circles[stacks[bin][i]], bin, i / per_dot, bins);
    }
    svg_ += "<g id=\"keys\">\n";
    for (std::size_t i = 0; i < servers_; ++i) {
      if (!circles[i].empty())
        svg_ += "<g fill=\"" + hex(colour_of(i, servers_)) + "\">" + circles[i] + "</g>\n";
    }
    svg_ += "</g>\n" + text_at(48, 846, "head",
                               std::to_string(drawing_.keys.size()) + " keys; a dot is " +
                                   (per_dot == 1 ? "one key" : "up to " + std::to_string(per_dot) + " keys"));
  }

  static std::size_t keys_per_dot(const std::vector<std::vector<std::size_t>>& stacks) {
    std::size_t highest = 0;
    for (const auto& stack : stacks) highest = std::max(highest, stack.size());
    std::size_t per_dot = 1;
    for (const std::size_t factor : {1U, 2U, 5U}) {
      for (std::size_t size = factor; size < highest * 10; size *= 10) {
        if ((highest + size - 1) / size <= max_layers && (per_dot == 1 || size < per_dot)) per_dot = size;
      }
    }
    return highest <= max_layers ? 1 : per_dot;
  }

  static void add_dot(std::string& circles, std::size_t bin, std::size_t layer, std::size_t bins) {
    const UnitVector at = unit_vector((static_cast<double>(bin) + 0.5) / static_cast<double>(bins));
    const double radius = dots_from + static_cast<double>(layer) * dot_step;
    circles += "<circle cx=\"" + px(centre_x + at.x * radius) + "\" cy=\"" + px(centre_y + at.y * radius) +
               "\" r=\"" + px(dot_size) + "\"/>";
  }

  void legend() {
    svg_ += "<g id=\"legend\">\n";
    for (std::size_t column = 0; column < columns_; ++column) {
      const double x = legend_x + static_cast<double>(column) * (legend_width_ + 30);
      svg_ += text_at(x, legend_top_ - 8, "head", "server") +
              text_at(x + 290, legend_top_ - 8, "head end", "share");
      if (!drawing_.keys.empty()) svg_ += text_at(x + bar_x() - 12, legend_top_ - 8, "head end", "keys");
      svg_ += text_at(x + bar_x(), legend_top_ - 8, "head", "against fair");
    }
    for (std::size_t i = 0; i < servers_; ++i) legend_row(i);
    svg_ += "</g>\n";
  }

  // Returns the position after the key counts.
  double bar_x() const { return legend_width_ - 98; }

  void problems() {
    for (std::size_t i = 0; i < problems_.size(); ++i)
      svg_ += text_at(48, picture_height + problem_height * static_cast<double>(i), "problem", problems_[i]);
  }

  void legend_row(std::size_t server) {
    const double x = legend_x + static_cast<double>(server / rows_) * (legend_width_ + 30);
    const double y = legend_top_ + (static_cast<double>(server % rows_) + 0.5) * row_height_;
    const double swatch = std::min(22.0, row_height_ * 0.72), base = y + label_size() * 0.36;
    const Colour colour = colour_of(server, servers_);
    svg_ += rectangle(x, y - swatch / 2, 26, swatch, 4, hex(colour));
    const double size = std::min(12.0, swatch * 0.78);
    svg_ += text_at(x + 13, y + size * 0.36, number_class(server), std::to_string(server),
                    " style=\"font-size:" + px(size) + "px\"");
    svg_ += text_at(x + 36, base, "label", names_[server]);
    svg_ += text_at(x + 290, base, "label share end", format_percent(drawing_.shares.shares[server]));
    if (!drawing_.keys.empty())
      svg_ += text_at(x + bar_x() - 12, base, "label end", std::to_string(keys_[server]));
    bar(x + bar_x(), y, server, colour);
  }

  // Draws the share, and a line where the fair share would end.
  void bar(double x, double y, std::size_t server, const Colour& colour) {
    const double width = 98, height = std::min(10.0, row_height_ * 0.4);
    const double most = std::max(*std::ranges::max_element(drawing_.shares.shares),
                                 *std::ranges::max_element(drawing_.shares.fair));
    svg_ += rectangle(x, y - height / 2, width, height, height / 2, "#e9edf4", "rest");
    const double length = drawing_.shares.shares[server] / most * width;
    if (length > 0)
      svg_ += rectangle(x, y - height / 2, std::max(length, height), height, height / 2, hex(colour));
    svg_ += rectangle(x + drawing_.shares.fair[server] / most * width - 0.75, y - height / 2 - 3, 1.5,
                      height + 6, 0, "#1d2536", "mark");
  }

  static std::string rectangle(double x, double y, double width, double height, double round,
                               std::string_view fill, std::string_view style = "swatch") {
    return "<rect class=\"" + std::string(style) + "\" x=\"" + px(x) + "\" y=\"" + px(y) + "\" width=\"" +
           px(width) + "\" height=\"" + px(height) + "\" rx=\"" + px(round) + "\" fill=\"" +
           std::string(fill) + "\"/>\n";
  }

  const RingDrawing& drawing_;
  std::size_t servers_, columns_ = 1, rows_ = 1;
  double row_height_ = 0, legend_top_ = 0;
  double legend_width_ = legend_width;
  std::vector<std::string> names_;     // the shortened labels
  std::vector<std::size_t> keys_;      // keys of each server
  std::vector<std::string> problems_;  // split into lines
  std::string svg_;
};

std::string subtitle_of(const RingShares& shares) {
  if (shares.points.empty()) return "no circle: shares of " + std::to_string(sample_size) + " counted keys";
  const std::size_t points = std::accumulate(shares.points.begin(), shares.points.end(), std::size_t{0});
  return std::to_string(points) + (points == 1 ? " point" : " points") + " on the circle; " +
         (shares.exact ? "shares are arc lengths" : "keys reach only a part of it: shares are counted");
}

}  // namespace

// Computes sine and cosine by their series: libm is not linked, and every machine must draw the same.
UnitVector unit_vector(double turn) {
  turn -= static_cast<double>(static_cast<long long>(turn));
  const int quarter = static_cast<int>(turn * 4 + 0.5);  // the nearest axis
  const double angle = (turn - quarter / 4.0) * 2 * pi, square = angle * angle;
  double sine = 0, cosine = 0, term = 1;
  for (int i = 0; i < 16; i += 2) {
    cosine += term;
    sine += term * angle / (i + 1);
    term *= -square / ((i + 1) * (i + 2));
  }
  const std::array<UnitVector, 4> turns{{{sine, -cosine}, {cosine, sine}, {-sine, cosine}, {-cosine, -sine}}};
  return turns[static_cast<std::size_t>(quarter % 4)];
}

RingDrawing draw_ring(const Placement& placement, const RingShares& shares) {
  const Pool& pool = placement.pool();
  RingDrawing drawing{std::string(placement.profile()), subtitle_of(shares), {}, shares, {}, {}, {}, {}, {}};
  for (const Server& server : pool) drawing.labels.push_back(server.label());
  double from = 0;
  if (const Continuum* ring = placement.continuum()) {
    for (const Arc& arc : arcs_of(*ring)) {
      const double to = from + length_of(arc, *ring);
      drawing.arcs.push_back({from, to, arc.server});
      from = to;
    }
    return drawing;
  }
  for (std::size_t i = 0; i < pool.size(); ++i) {
    drawing.arcs.push_back({from, from + shares.shares[i], i});
    from += shares.shares[i];
  }
  return drawing;
}

DrawnKey draw_key(const Placement& placement, const RingDrawing& drawing, std::string_view key) {
  const std::size_t server = placement.server_of(key);
  if (const Continuum* ring = placement.continuum()) {
    return {length_of({0, placement.hash_of(key), 0}, *ring), server};
  }
  const DrawnArc& arc = drawing.arcs[server];
  return {arc.from + (arc.to - arc.from) * (crc32(key) / 4294967296.0), server};
}

// Parts that all labels share are removed first. Labels that still look the same are then shortened again
// without the parts that these share.
std::vector<std::string> short_labels(const std::vector<std::string>& labels, std::size_t most) {
  std::vector<const std::string*> all;
  for (const std::string& label : labels) all.push_back(&label);
  std::map<std::string, std::vector<std::size_t>> alike;
  std::vector<std::string> names;
  if (all.empty()) return names;
  const CommonEnds common(all);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    names.push_back(short_label(labels[i], common, most));
    alike[names.back()].push_back(i);
  }
  for (const auto& [name, group] : alike) {
    if (group.size() == 1) continue;
    std::vector<const std::string*> these;
    for (const std::size_t i : group) these.push_back(&labels[i]);
    const CommonEnds of_these(these);
    for (const std::size_t i : group) names[i] = short_label(labels[i], of_these, most);
  }
  return names;
}

std::string svg_of(const RingDrawing& drawing) {
  return SvgWriter(drawing).write();
}

}  // namespace mcds
