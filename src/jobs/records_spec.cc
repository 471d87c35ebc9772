#include "jobs/records_spec.h"

#include <fmt/format.h>

#include <algorithm>

namespace embertable::jobs {

namespace {

DataSpec read_data(TomlSection section) {
  DataSpec data;
  data.file = read_file_spec(section);
  data.label = section.column("label");
  const std::vector<double> range = section.numbers("range");
  if (range.size() != 2 || !(range[0] < range[1]))
    section.refuse_value("range", "[lowest, highest] of the labels");
  data.lowest = range[0];
  data.highest = range[1];
  section.finish();
  return data;
}

std::vector<IdsSpec> read_ids(TomlSection all) {
  std::vector<IdsSpec> found;
  const std::vector<std::string> names = all.keys();
  if (names.empty()) all.refuse_section("must name ids, got none");
  for (const std::string& name : names) {
    TomlSection section = all.section(name);
    IdsSpec ids;
    ids.name = name;
    ids.column = section.column("column");
    ids.keys = section.choice("keys", {"integer", "string"}, "integer") == "integer"
                   ? KeyKind::kInteger
                   : KeyKind::kString;
    ids.order = section.choice("order", {"first", "sorted"}, "first") == "first"
                    ? KeyOrder::kFirst
                    : KeyOrder::kSorted;
    ids.separator = section.text("separator", "");
    if (section.has("file")) {
      ids.file = read_file_spec(section);
      ids.key = section.column("key");
      ids.of = section.choice("of", names);
    }
    section.finish();
    found.push_back(std::move(ids));
  }
  for (const IdsSpec& ids : found) {
    if (!ids.joined()) continue;
    const IdsSpec& of = named(found, ids.of);
    if (of.joined() || !of.separator.empty()) {
      all.section(ids.name).refuse_value("of",
                                         "ids of a column of the data file with one key per field");
    }
  }
  std::stable_partition(found.begin(), found.end(),
                        [](const IdsSpec& ids) { return !ids.joined(); });
  return found;
}

SplitSpec read_split(TomlSection section, const std::vector<IdsSpec>& ids) {
  SplitSpec split;
  split.by = section.texts("by", {});
  if (split.by.size() > 2) section.refuse_value("by", "at most two ids");
  const std::vector<std::string> names = names_of(ids);
  for (const std::string& name : split.by) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      section.refuse_value("by", fmt::format("names of ids ({})", fmt::join(names, ", ")));
    const IdsSpec& spec = ids[static_cast<std::size_t>(found - names.begin())];
    if (spec.keys != KeyKind::kInteger || spec.joined() || !spec.separator.empty()) {
      section.refuse_value("by", "ids with one integer key per record of the data file");
    }
  }
  split.salt = static_cast<std::uint64_t>(section.integer("salt", 0, INT64_MAX, 0));
  split.train_on_validation = section.flag("train_on_validation", false);
  section.finish();
  return split;
}

}  // namespace

RecordsSpec read_records_spec(TomlSection& root) {
  RecordsSpec records;
  records.data = read_data(root.section("data"));
  records.ids = read_ids(root.section("ids"));
  records.split = read_split(root.section("split", true), records.ids);
  return records;
}

}  // namespace embertable::jobs
