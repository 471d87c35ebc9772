#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/cli/best_epoch.h"
#include "apps/cli/checks.h"
#include "apps/cli/commands.h"
#include "apps/convert/printable.h"
#include "apps/convert/row_keys.h"
#include "embertable/serving.h"

namespace embertable::tools {
namespace {

struct LookupArguments {
  std::string path;
  std::string table;
  std::vector<std::int64_t> rows;
  std::vector<std::string> keys;
  std::string name;
  bool json = false;
};

std::vector<std::int64_t> wanted_rows(const LookupArguments& arguments, const jobs::RowKeys& keys) {
  std::vector<std::int64_t> rows = arguments.rows;
  for (const std::string& key : arguments.keys) rows.push_back(keys.row_of_key(key));
  if (!arguments.name.empty() || rows.empty()) rows.push_back(keys.row_of_name(arguments.name));
  return rows;
}

/// Returns the shortest decimal that gives the float back, as text if it is not finite: JSON
/// numbers are finite.
nlohmann::ordered_json number(float value) {
  if (value == 0 && std::signbit(value)) return -0.0;  // "-0" would be read as a whole number
  const std::string text = fmt::format("{}", value);
  return std::isfinite(value) ? nlohmann::ordered_json::parse(text) : nlohmann::ordered_json(text);
}

void print_json(const std::string& table, const jobs::RowKeys& keys, std::int64_t row,
                std::span<const float> values) {
  nlohmann::ordered_json json = {{"table", table}, {"row", row}};
  if (keys.has_key(row)) json["key"] = keys.key(row);
  if (!keys.display_name(row).empty()) json["name"] = keys.display_name(row);
  json["values"] = nlohmann::json::array();
  for (const float value : values) json["values"].push_back(number(value));
  fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_text(const jobs::RowKeys& keys, std::int64_t row, std::span<const float> values) {
  constexpr std::size_t kPerLine = 8;
  fmt::print("row {}", row);
  if (!keys.key(row).empty()) fmt::print("  key {}", jobs::printable(keys.key(row)));
  fmt::print("  {}\n", jobs::printable(keys.display_name(row)));
  for (std::size_t i = 0; i < values.size(); ++i)
    fmt::print("{:>14.6g}{}", values[i], i + 1 == values.size() || i % kPerLine == 7 ? "\n" : "");
}

void run(const LookupArguments& arguments) {
  const std::filesystem::path directory = best_epoch_of(arguments.path);
  ServingEmbedding serving = ServingEmbedding::open(directory, {.tables = OpenTables::kMap});
  const TableInfo table = serving.table(arguments.table);
  const auto dim = static_cast<std::size_t>(table.dim);
  const jobs::RowKeys keys({.table = arguments.table,
                            .rows = table.vocabulary_size,
                            .dim = table.dim,
                            .directory = directory},
                           serving.caller_state(), serving.id_maps());
  const std::vector<std::int64_t> rows = wanted_rows(arguments, keys);
  std::vector<float> values(rows.size() * dim);
  serving.read_rows(arguments.table, rows, values);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::span<const float> row(values.data() + i * dim, dim);
    arguments.json ? print_json(arguments.table, keys, rows[i], row)
                   : print_text(keys, rows[i], row);
  }
}

}  // namespace

void add_lookup(CLI::App& app) {
  auto arguments = std::make_shared<LookupArguments>();
  CLI::App* command =
      app.add_subcommand("lookup", "Print rows of a saved table, read directly from its files");
  command->add_option("DIR", arguments->path, kBestEpochIsRead)->required();
  command->add_option("--table", arguments->table, "the table's name")->required();
  CLI::Option_group* which = command->add_option_group("rows");
  which->add_option("--row", arguments->rows, "row numbers")->check(at_least(0));
  which->add_option("--key", arguments->keys, "keys of rows, spelled as in the data");
  which->add_option("--name", arguments->name,
                    "a row's name, or a part of it that no other name contains");
  which->require_option(1, 3);
  command->add_flag("--json", arguments->json, "print one JSON object per line for each row");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace embertable::tools
