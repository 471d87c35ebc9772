#include "bench/commands/report.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

namespace embertable::bench {
namespace {

std::string cell(const Column& column, const std::string& text) {
  const int width = std::abs(column.width);
  return " " + (column.width < 0 ? fmt::format("{:<{}}", text, width)
                                 : fmt::format("{:>{}}", text, width));
}

std::string shown(const Column& column, const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_number_float()) return value.dump();
  return fmt::format("{:.{}f}", value.get<double>() * column.scale, column.digits);
}

}  // namespace

void print(bool json, const Json& figures, const std::string& text) {
  std::fputs((json ? figures.dump() + "\n" : text).c_str(), stdout);
  std::fflush(stdout);
}

void print_text(bool json, const std::string& text) {
  if (!json) print(json, {}, text);
}

void Table::print(bool json, const Json& figures, const Json& more) const {
  Json all = figures;
  all.update(more);
  bench::print(json, figures, line(all));
}

std::string Table::heading() const {
  std::string text = " ";
  for (const Column& column : columns_) text += cell(column, column.heading);
  return text + "\n";
}

std::string Table::line(const Json& figures) const {
  std::string text = " ";
  for (const Column& column : columns_) text += cell(column, shown(column, figures.at(column.key)));
  return text + "\n";
}

}  // namespace embertable::bench
