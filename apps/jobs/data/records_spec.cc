#include "apps/jobs/data/records_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "apps/jobs/text/column_range.h"
#include "embertable/errors.h"

namespace embertable::jobs {

namespace {

void read_range(TomlSection& section, DataSpec& data) {
  const std::vector<double> range = section.numbers("range");
  if (range.size() != 2 || !(range[0] < range[1]))
    section.refuse_value("range", "[lowest, highest] of the labels");
  data.lowest = range[0];
  data.highest = range[1];
}

void read_label_texts(TomlSection& section, DataSpec& data) {
  data.positive = section.texts("positive", {});
  data.negative = section.texts("negative", {});
  if (!data.has_texts()) section.refuse_value("positive", "a list of texts that are the label 1");
  for (const std::string& text : data.positive) {
    if (std::find(data.negative.begin(), data.negative.end(), text) != data.negative.end())
      section.refuse("negative", fmt::format("must not name what is positive, got \"{}\"", text));
  }
  data.highest = 1;
}

DataSpec read_data(TomlSection section) {
  DataSpec data;
  data.file = read_file_spec(section);
  data.label = section.column("label");
  if (section.has("positive") || section.has("negative")) {
    section.refuse_given("range", "where 'positive' and 'negative' say what texts are labels");
    read_label_texts(section, data);
  } else {
    read_range(section, data);
  }
  data.where = read_where(section.section("where", true));
  if (section.has("numbers")) {
    data.written_numbers = section.columns("numbers");
    data.numbers = expand_ranges(data.written_numbers);
    if (data.numbers.empty()) section.refuse_value("numbers", "a list of one column or more");
    if (std::find(data.numbers.begin(), data.numbers.end(), data.label) != data.numbers.end())
      section.refuse("numbers",
                     fmt::format("must not have the label's column, got \"{}\"", data.label));
    if (section.has("missing")) data.missing = section.text("missing");
  } else {
    section.refuse_given("missing", "where there are no 'numbers'");
  }
  section.finish();
  return data;
}

bool names_column(const std::vector<std::string>& columns, const std::string& column) {
  return std::find(columns.begin(), columns.end(), column) != columns.end();
}

/// Returns what is wrong with a column that is none of its ids, or "".
std::string broken_column(const IdsSpec& ids, const std::string& column) {
  if (names_column(ids.columns, column)) return "";
  return fmt::format("must be some of the columns of these ids ({}), got \"{}\"",
                     fmt::join(ids.columns, ", "), column);
}

/// Returns what is wrong with buckets that are not columns of their ids, or "".
std::string broken_buckets(const IdsSpec& ids) {
  for (const std::string& column : ids.buckets) {
    if (const std::string rule = broken_column(ids, column); !rule.empty()) return rule;
  }
  return "";
}

/// Returns the same for limits.
std::string broken_limits(const IdsSpec& ids) {
  for (const IdsSpec::Limits& limits : ids.limits) {
    if (const std::string rule = broken_column(ids, limits.column); !rule.empty()) return rule;
    if (names_column(ids.buckets, limits.column))
      return fmt::format("must name no column that buckets names, got \"{}\"", limits.column);
  }
  return "";
}

void read_limits(TomlSection section, IdsSpec& ids) {
  for (const std::string& column : section.keys()) {
    const std::vector<double> values = section.numbers(column);
    if (values.empty() ||
        !std::all_of(values.begin(), values.end(),
                     [](double value) { return std::isfinite(value); }) ||
        std::adjacent_find(values.begin(), values.end(), std::greater_equal<>()) != values.end())
      section.refuse_value(column, "a list of one rising number or more");
    ids.limits.push_back({column, values});
  }
  section.finish();
}

void read_columns(TomlSection& section, IdsSpec& ids) {
  ids.rules.by_column = section.has("columns");
  if (ids.rules.by_column) {
    ids.written = section.columns("columns");
    if (ids.written.empty()) section.refuse_value("columns", "a list of one column or more");
  } else {
    ids.columns = {section.column("column")};
  }
  ids.written_buckets = section.columns("buckets", {});
  if (section.has("limits")) read_limits(section.section("limits"), ids);
  if (ids.rules.by_column) ids.columns = expand_ranges(ids.written);
  ids.buckets = expand_ranges(ids.written_buckets);
  if (const std::string rule = broken_buckets(ids); !rule.empty()) section.refuse("buckets", rule);
  if (const std::string rule = broken_limits(ids); !rule.empty()) section.refuse("limits", rule);
}

void read_rules(TomlSection& section, IdsSpec& ids) {
  KeyRules& rules = ids.rules;
  const bool numbers = !ids.buckets.empty() || !ids.limits.empty();
  const bool texts = rules.by_column || numbers;
  rules.kind =
      section.choice("keys", {"integer", "string"}, texts ? "string" : "integer") == "integer"
          ? KeyKind::kInteger
          : KeyKind::kString;
  if (numbers && rules.kind == KeyKind::kInteger)
    section.refuse_value("keys", "\"string\" where numbers become buckets");
  rules.order = section.choice("order", {"first", "sorted"}, "first") == "first"
                    ? KeyOrder::kFirst
                    : KeyOrder::kSorted;
  rules.separator = section.text("separator", "");
  if (!rules.separator.empty() && texts)
    section.refuse_value("separator", "absent where there are columns or buckets");
  rules.missing = section.text("missing", "");
  if (section.has("missing") && rules.missing.empty())
    section.refuse_value("missing",
                         "a text that counts as empty, as \"?\": an empty field does so itself");
  rules.hash_rows = section.has("hash") ? section.integer("hash", 1, INT32_MAX) : 0;
  const bool counts = rules.by_column && rules.hash_rows == 0;
  rules.min_count = section.integer("min_count", counts ? 1 : 0, UINT32_MAX, counts ? 1 : 0);
  if (rules.min_count > 0 && rules.hash_rows > 0)
    section.refuse_value("min_count", "absent where keys are hashed");
}

IdsSpec read_one_ids(TomlSection section, const std::string& name,
                     const std::vector<std::string>& names) {
  IdsSpec ids;
  ids.name = name;
  read_columns(section, ids);
  read_rules(section, ids);
  if (section.has("file")) {
    if (ids.rules.by_column) section.refuse_value("columns", "`column` in a side table");
    ids.file = read_file_spec(section);
    ids.key = section.column("key");
    ids.of = section.choice("of", names);
  }
  section.finish();
  return ids;
}

std::vector<IdsSpec> read_ids(TomlSection all) {
  std::vector<IdsSpec> found;
  const std::vector<std::string> names = all.keys();
  if (names.empty()) all.refuse_section("must name ids, got none");
  for (const std::string& name : names)
    found.push_back(read_one_ids(all.section(name), name, names));
  for (const IdsSpec& ids : found) {
    if (!ids.joined()) continue;
    const IdsSpec& of = named(found, ids.of);
    if (!of.one_a_sample() || of.rules.by_column || of.rules.hash_rows > 0 || !of.buckets.empty() ||
        !of.limits.empty()) {
      all.section(ids.name).refuse_value("of",
                                         "ids of a column of the data file with one key per field");
    }
  }
  std::stable_partition(found.begin(), found.end(),
                        [](const IdsSpec& ids) { return !ids.joined(); });
  return found;
}

/// Reads names of ids, or of columns that are not ids.
void read_split_by(TomlSection& section, const std::vector<IdsSpec>& ids, SplitSpec& split) {
  split.by = section.columns("by", {});
  if (split.by.size() > 2) section.refuse_value("by", "at most two ids or columns");
  const std::vector<std::string> names = names_of(ids);
  for (const std::string& name : split.by) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      split.columns.push_back(name);
      continue;
    }
    const IdsSpec& spec = ids[found - names.begin()];
    if (!spec.one_a_sample())
      section.refuse_value("by", "ids with one key per record of the data file, or columns");
    split.columns.push_back(spec.columns[0]);
  }
}

/// Reads the keys of a split by time; "by", "salt" and files deal records in other ways.
void read_time_split(TomlSection& section, SplitSpec& split) {
  split.time = section.column("time");
  for (const char* const other : {"by", "salt", "test_file"})
    section.refuse_given(other, "where 'time' deals the records");
  split.test = section.number("test", split.test);
  split.validation = section.number("validation", split.validation);
  for (const auto& [key, share] : {std::pair("test", split.test), {"validation", split.validation}})
    if (!(share >= 0 && share < 1)) section.refuse_value(key, "a share, 0 or more and below 1");
  if (!(split.test + split.validation < 1))
    section.refuse_value("validation", "a share that leaves records for training");
}

SplitSpec read_split(TomlSection section, const std::vector<IdsSpec>& ids) {
  SplitSpec split;
  if (section.has("time")) {
    read_time_split(section, split);
    split.train_on_validation = section.flag("train_on_validation", false);
    section.finish();
    return split;
  }
  read_split_by(section, ids, split);
  split.salt = static_cast<std::uint64_t>(section.integer("salt", 0, INT64_MAX, 0));
  split.train_on_validation = section.flag("train_on_validation", false);
  if (section.has("test_file")) {
    split.test_paths = section.one_or_more("test_file");
    const double share = section.number("validation", 0.1);
    const double tenths = std::round(share * 10);
    if (!(tenths >= 0 && tenths <= 9 && std::abs(share * 10 - tenths) < 1e-9))
      section.refuse_value("validation", "0, 0.1, 0.2, ... or 0.9");
    split.validation_buckets = static_cast<int>(tenths);
  } else {
    section.refuse_given("validation",
                         "where hashes deal the records, a tenth of which is the validation part");
  }
  section.refuse_given("test", "where no 'time' deals the records");
  section.finish();
  return split;
}

}  // namespace

std::vector<FieldRule> read_where(TomlSection section) {
  std::vector<FieldRule> rules;
  for (const std::string& column : section.keys()) {
    try {
      for (const std::string& rule : section.one_or_more(column))
        rules.push_back(field_rule(column, rule));
    } catch (const ValueError& error) {
      const std::string reason = error.what();
      if (reason.starts_with("must be")) section.refuse(column, reason);
      throw;
    }
  }
  section.finish();
  return rules;
}

RecordsSpec read_records_spec(TomlSection& root) {
  RecordsSpec records;
  records.data = read_data(root.section("data"));
  records.ids = read_ids(root.section("ids"));
  records.split = read_split(root.section("split", true), records.ids);
  return records;
}

void check_ranges(const RecordsSpec& records, std::span<const std::string> header,
                  const std::string& path) {
  const auto check = [&](const std::vector<std::string>& written) {
    for (const std::string& text : written) {
      const auto found = std::find(header.begin(), header.end(), text);
      if (found == header.end() || !is_range(text)) continue;
      throw ValueError(
          fmt::format("'{}': \"{}\" must be a range of columns alone, got a header in which column "
                      "{} has this name; its number names the column",
                      path, text, found - header.begin() + 1));
    }
  };
  check(records.data.written_numbers);
  for (const IdsSpec& ids : records.ids) {
    check(ids.written);
    check(ids.written_buckets);
  }
}

KeyField IdsSpec::field(const std::string& column, std::size_t place) const {
  KeyField field{.place = place, .number = names_column(buckets, column)};
  for (const Limits& own : limits) {
    if (own.column != column) continue;
    field.number = true;
    field.limits = own.values;
  }
  return field;
}

}  // namespace embertable::jobs
