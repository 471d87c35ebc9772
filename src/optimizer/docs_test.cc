// What docs/optimizers.md says of each rule and each variant holds.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "optimizer/rule.h"
#include "optimizer/variants.h"
#include "testing/source_path.h"

namespace embertable {
namespace {

using Cells = std::vector<std::string>;

std::string stripped(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? ""
                                    : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// The rows of the table below a heading, by their first cell.
std::map<std::string, Cells> table_below(const std::string& heading) {
  std::ifstream file(source_path("docs/optimizers.md"));
  std::map<std::string, Cells> rows;
  bool below = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) below = line == heading;
    if (!below || !line.starts_with("| `")) continue;
    Cells cells;
    for (std::size_t at = 1; at < line.size();) {
      const std::size_t end = line.find(" |", at);
      cells.push_back(stripped(line.substr(at, end - at)));
      at = end + 2;
    }
    EXPECT_TRUE(rows.try_emplace(cells[0], cells).second) << cells[0] << " has two rows";
  }
  return rows;
}

std::string value_text(const RuleParameter& parameter, double value) {
  return parameter.is_choice() ? std::string(parameter.choices[static_cast<std::size_t>(value)])
                               : fmt::format("{}", value);
}

std::string or_none(const Cells& cells) {
  return cells.empty() ? "none" : fmt::format("{}", fmt::join(cells, ", "));
}

std::string slots_text(const std::vector<RuleSlot>& slots) {
  Cells cells;
  for (const RuleSlot& slot : slots)
    cells.push_back(
        fmt::format("`{}` {}{}", slot.name, slot.initial_value, slot.row_wise ? " a row" : ""));
  return or_none(cells);
}

std::string bytes_text(const std::vector<RuleSlot>& slots) {
  int full = 1, row_wise = 0;
  for (const RuleSlot& slot : slots) ++(slot.row_wise ? row_wise : full);
  return row_wise == 0 ? fmt::format("{} dim", 4 * full)
                       : fmt::format("{} dim + {}", 4 * full, 4 * row_wise);
}

std::string parameters_text(const Rule& rule) {
  Cells cells;
  for (const RuleParameter& parameter : rule.parameters())
    cells.push_back(
        fmt::format("`{}` {}", parameter.name, value_text(parameter, parameter.default_value)));
  return or_none(cells);
}

std::string variants_text(std::string_view rule) {
  Cells cells;
  for (const OptimizerVariant& variant : all_variants())
    if (variant.rule == rule) cells.push_back(fmt::format("`{}`", variant.name));
  return or_none(cells);
}

/// The row of a rule; its formula is free text.
Cells row_of(const Rule& rule, const std::string& formula) {
  const std::vector<RuleSlot> slots =
      rule.slots(Optimizer(rule.name(), rule.default_learning_rate()));
  return {fmt::format("`{}`", rule.name()),
          formula,
          slots_text(slots),
          bytes_text(slots),
          fmt::format("{}", rule.default_learning_rate()),
          parameters_text(rule),
          variants_text(rule.name())};
}

std::string as_line(const Cells& cells) { return fmt::format("| {} |", fmt::join(cells, " | ")); }

TEST(OptimizersDocument, HasOneRowForEachRuleWithWhatTheCodeHas) {
  const std::map<std::string, Cells> rows = table_below("## Rules");
  for (const Rule& rule : all_rules()) {
    const auto row = rows.find(fmt::format("`{}`", rule.name()));
    if (row == rows.end() || row->second.size() < 2) {
      ADD_FAILURE() << "there is no row " << as_line(row_of(rule, "..."));
      continue;
    }
    EXPECT_NE(row->second[1], "");
    EXPECT_EQ(as_line(row->second), as_line(row_of(rule, row->second[1])));
  }
  EXPECT_EQ(rows.size(), all_rules().size());
}

TEST(OptimizersDocument, HasOneRowForEachVariantWithWhatTheCodeHas) {
  const std::map<std::string, Cells> rows = table_below("## Variants");
  for (const OptimizerVariant& variant : all_variants()) {
    const Rule& rule = find_rule(variant.rule);
    const Optimizer optimizer(variant.name, 1);
    Cells settings;
    for (const auto& [name, setting] : variant.settings) {
      const auto parameter = std::ranges::find(rule.parameters(), name, &RuleParameter::name);
      settings.push_back(
          fmt::format("`{}` {}", name, value_text(*parameter, optimizer.parameter(name))));
    }
    const std::string expected =
        as_line({fmt::format("`{}`", variant.name), fmt::format("`{}`", variant.rule),
                 or_none(settings), variant.note});
    const auto row = rows.find(fmt::format("`{}`", variant.name));
    if (row == rows.end())
      ADD_FAILURE() << "there is no row " << expected;
    else
      EXPECT_EQ(as_line(row->second), expected);
  }
  EXPECT_EQ(rows.size(), all_variants().size());
}

}  // namespace
}  // namespace embertable
