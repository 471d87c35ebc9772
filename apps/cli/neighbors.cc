#include "apps/jobs/run/neighbors.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "apps/cli/best_epoch.h"
#include "apps/cli/checks.h"
#include "apps/cli/commands.h"
#include "apps/convert/printable.h"

namespace embertable::tools {
namespace {

struct NeighborsArguments {
  std::string path;
  std::string table;
  std::optional<std::int64_t> row;
  std::optional<std::string> key;
  std::string name;
  std::int64_t count = 10;
  bool json = false;
};

nlohmann::ordered_json describe(const jobs::SavedTableRows& table, std::int64_t row) {
  nlohmann::ordered_json json = {{"row", row}};
  if (table.any()) json["key"] = table.key(row);
  if (!table.display_name(row).empty()) json["name"] = table.display_name(row);
  return json;
}

void print_json(const jobs::SavedTableRows& table, std::int64_t row,
                const std::vector<jobs::Neighbor>& neighbors) {
  const auto print = [](const nlohmann::ordered_json& json) {
    fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  };
  nlohmann::ordered_json of = {{"table", table.name()}};
  of.update(describe(table, row));
  print(of);
  for (const jobs::Neighbor& neighbor : neighbors) {
    nlohmann::ordered_json json = {{"cosine", neighbor.cosine}};
    json.update(describe(table, neighbor.row));
    print(json);
  }
}

/// True for keys that stand in a column of numbers, whose last digits are below each other.
bool is_number(const std::string& key) {
  return !key.empty() && key.find_first_not_of("-0123456789") == std::string::npos;
}

void print_text(const jobs::SavedTableRows& table, std::int64_t row,
                const std::vector<jobs::Neighbor>& neighbors) {
  const auto key = [&](std::int64_t of) {
    if (!table.any()) return std::to_string(of);
    const std::string text = jobs::printable(table.key(of));
    // Hashed and rare keys have no row alone.
    return table.has_key(of) ? text : fmt::format("row {}", of);
  };
  const auto name = [&](std::int64_t of) { return jobs::printable(table.display_name(of)); };
  std::size_t width = key(row).size();
  bool numbers = is_number(key(row));
  for (const jobs::Neighbor& neighbor : neighbors) {
    width = std::max(width, key(neighbor.row).size());
    numbers = numbers && is_number(key(neighbor.row));
  }
  const auto line = [&](std::int64_t of) {
    std::string text =
        numbers ? fmt::format("{:>{}}", key(of), width) : fmt::format("{:<{}}", key(of), width);
    text += "  " + name(of);
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  fmt::print("        {}\n", line(row));
  for (const jobs::Neighbor& neighbor : neighbors)
    fmt::print("{:6.3f}  {}\n", neighbor.cosine, line(neighbor.row));
}

std::int64_t wanted_row(const NeighborsArguments& arguments, const jobs::SavedTableRows& table) {
  if (arguments.key) return table.row_of_key(*arguments.key);
  if (!arguments.row) return table.row_of_name(arguments.name);
  table.check_row(*arguments.row);
  return *arguments.row;
}

void run(const NeighborsArguments& arguments) {
  const jobs::SavedTableRows table(best_epoch_of(arguments.path), arguments.table);
  const std::int64_t row = wanted_row(arguments, table);
  const std::vector<jobs::Neighbor> neighbors = jobs::nearest_rows(table, row, arguments.count);
  arguments.json ? print_json(table, row, neighbors) : print_text(table, row, neighbors);
}

}  // namespace

void add_neighbors(CLI::App& app) {
  auto arguments = std::make_shared<NeighborsArguments>();
  CLI::App* command = app.add_subcommand(
      "neighbors", "Print the rows of a saved table that are nearest to a given row by cosine");
  command->add_option("DIR", arguments->path, kBestEpochIsRead)->required();
  command->add_option("--table", arguments->table, "name of a table with dim 2 or more")
      ->required();
  CLI::Option_group* which = command->add_option_group("row");
  which->add_option("--row", arguments->row, "the row's number")->check(at_least(0));
  // An option of type std::optional would be without a value for a key of no characters.
  which->add_option_function<std::string>(
      "--key", [arguments](const std::string& key) { arguments->key = key; },
      "the row's key, spelled as in the data");
  which->add_option("--name", arguments->name,
                    "the row's name, or a part of it that no other name contains");
  which->require_option(1);
  command->add_option("--k", arguments->count, "number of neighbours")
      ->check(at_least(1))
      ->capture_default_str();
  command->add_flag("--json", arguments->json,
                    "print one JSON object per line: the row, then its neighbours");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace embertable::tools
