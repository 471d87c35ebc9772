#include "bench/sweep_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace embertable::bench {
namespace {

constexpr double kPanelWidth = 330, kPanelHeight = 230, kLeft = 52, kTop = 34, kRight = 16,
                 kBottom = 34;
constexpr int kPanelsAcross = 3;
constexpr const char* kColors[] = {"#2b6cb0", "#c05621", "#2f855a", "#6b46c1"};

/// Where numbers of a range stand on an axis.
struct Axis {
  bool even = false;
  double low = 0, high = 1;  ///< of what is drawn: the number, or its logarithm
  double from = 0, to = 1;

  double scaled(double x) const { return even ? x : std::log10(x); }
  double at(double x) const { return from + (scaled(x) - low) / (high - low) * (to - from); }
};

std::string short_number(double x) {
  if (x >= 1e6) return fmt::format("{:g}M", x * 1e-6);
  return x >= 1e3 ? fmt::format("{:g}k", x * 1e-3) : fmt::format("{:g}", x);
}

std::string text(double x, double y, const char* anchor, const std::string& words, int size = 10) {
  return fmt::format("<text x='{:.1f}' y='{:.1f}' text-anchor='{}' font-size='{}'>{}</text>\n", x,
                     y, anchor, size, words);
}

struct Panel {
  std::string factor;
  std::vector<SweepPoint> points;  ///< by rising value

  Axis x_axis(double left) const {
    Axis axis;
    axis.even = factor == "zipf";
    axis.low = axis.scaled(points.front().value);
    axis.high = axis.scaled(points.back().value);
    if (axis.high <= axis.low) axis.high = axis.low + 1;
    axis.from = left + kLeft;
    axis.to = left + kPanelWidth - kRight;
    return axis;
  }
  Axis y_axis(double top) const {
    Axis axis;
    double low = points.front().rate, high = low;
    for (const SweepPoint& point : points) {
      low = std::min({low, point.rate, point.limit});
      high = std::max({high, point.rate, point.limit});
    }
    axis.low = std::floor(std::log10(low) * 2) / 2;
    axis.high = std::ceil(std::log10(high) * 2) / 2;
    if (axis.high <= axis.low) axis.high = axis.low + 1;
    axis.from = top + kPanelHeight - kBottom;
    axis.to = top + kTop;
    return axis;
  }
};

/// The line of one number of threads.
std::string line(const Panel& panel, int threads, double SweepPoint::*rate, const Axis& x,
                 const Axis& y, const char* color, bool dashed) {
  std::string path, dots;
  for (const SweepPoint& point : panel.points) {
    if (point.threads != threads) continue;
    const double px = x.at(point.value), py = y.at(point.*rate);
    path += fmt::format("{:.1f},{:.1f} ", px, py);
    if (!dashed)
      dots += fmt::format("<circle cx='{:.1f}' cy='{:.1f}' r='2.5' fill='{}'/>\n", px, py, color);
  }
  return fmt::format("<polyline points='{}' fill='none' stroke='{}' stroke-width='1.3'{}/>\n", path,
                     color, dashed ? " stroke-dasharray='4 3' opacity='0.6'" : "") +
         dots;
}

std::string axes(const Panel& panel, const Axis& x, const Axis& y) {
  std::string svg = text((x.from + x.to) / 2, y.to - 12, "middle", panel.factor, 12);
  svg += fmt::format("<path d='M{:.1f} {:.1f}V{:.1f}H{:.1f}' fill='none' stroke='#444'/>\n", x.from,
                     y.to, y.from, x.to);
  std::vector<double> values;
  for (const SweepPoint& point : panel.points)
    if (values.empty() || values.back() != point.value) values.push_back(point.value);
  for (const double value : values)
    svg += text(x.at(value), y.from + 14, "middle", short_number(value), 9);
  for (double power = std::ceil(y.low * 2) / 2; power <= y.high + 1e-9; power += 0.5) {
    const double rate = std::pow(10.0, power);
    svg +=
        fmt::format("<path d='M{:.1f} {:.1f}H{:.1f}' stroke='#ddd'/>\n", x.from, y.at(rate), x.to);
    svg += text(x.from - 4, y.at(rate) + 3, "end", fmt::format("{:.3g}", rate * 1e-6), 9);
  }
  return svg;
}

std::string draw(const Panel& panel, const std::vector<int>& threads, double left, double top) {
  const Axis x = panel.x_axis(left), y = panel.y_axis(top);
  std::string svg = axes(panel, x, y);
  for (std::size_t i = 0; i < threads.size(); ++i) {
    const char* color = kColors[i % std::size(kColors)];
    svg += line(panel, threads[i], &SweepPoint::limit, x, y, color, true);
    svg += line(panel, threads[i], &SweepPoint::rate, x, y, color, false);
  }
  return svg;
}

}  // namespace

std::string plot_sweep(std::span<const SweepPoint> points) {
  std::vector<Panel> panels;
  std::vector<int> threads;
  for (const SweepPoint& point : points) {
    const auto same = [&](const Panel& panel) { return panel.factor == point.factor; };
    auto panel = std::find_if(panels.begin(), panels.end(), same);
    if (panel == panels.end()) panel = panels.insert(panels.end(), Panel{point.factor, {}});
    panel->points.push_back(point);
    if (std::find(threads.begin(), threads.end(), point.threads) == threads.end())
      threads.push_back(point.threads);
  }
  const int rows = (static_cast<int>(panels.size()) + kPanelsAcross - 1) / kPanelsAcross;
  const double width = kPanelsAcross * kPanelWidth, height = rows * kPanelHeight + 26;
  std::string svg = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{0:.0f}' height='{1:.0f}' viewBox='0 0 "
      "{0:.0f} "
      "{1:.0f}' font-family='sans-serif'>\n<rect width='100%' height='100%' fill='white'/>\n",
      width, height);
  for (std::size_t i = 0; i < panels.size(); ++i) {
    std::stable_sort(panels[i].points.begin(), panels[i].points.end(),
                     [](const SweepPoint& a, const SweepPoint& b) { return a.value < b.value; });
    const std::size_t row = i / kPanelsAcross, column = i % kPanelsAcross;
    svg += draw(panels[i], threads, static_cast<double>(column) * kPanelWidth,
                static_cast<double>(row) * kPanelHeight);
  }
  double at = kLeft;
  for (std::size_t i = 0; i < threads.size(); ++i, at += 190) {
    svg += fmt::format("<path d='M{:.0f} {:.0f}h22' stroke='{}' stroke-width='2'/>\n", at,
                       height - 14, kColors[i % std::size(kColors)]);
    svg +=
        text(at + 28, height - 10, "start",
             fmt::format("{} thread{}; dashed: all bytes", threads[i], threads[i] > 1 ? "s" : ""));
  }
  svg += text(width - kRight, height - 10, "end", "million lookups a second");
  return svg + "</svg>\n";
}

}  // namespace embertable::bench
