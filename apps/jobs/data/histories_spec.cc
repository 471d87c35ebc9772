#include "apps/jobs/data/histories_spec.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/jobs/data/records_spec.h"
#include "apps/jobs/spec/file_spec.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

/// Reads one file or a list of them.
std::vector<std::string> read_files(TomlSection& section) {
  std::vector<std::string> files = section.texts("files", {});
  if (files.empty()) files.push_back(section.text("file"));
  return files;
}

KeysSpec read_keys(TomlSection& section, const std::string& name) {
  return {.name = name,
          .kind = section.choice("keys", {"integer", "string"}, "integer") == "integer"
                      ? KeyKind::kInteger
                      : KeyKind::kString,
          .sorted = section.choice("order", {"first", "sorted"}, "first") == "sorted"};
}

bool read_is_lists(TomlSection& section) {
  return section.choice("format", {"lists", "records"}, "records") == "lists";
}

HistoriesSpec read_data(TomlSection section, const std::vector<std::string>& ids) {
  HistoriesSpec data;
  data.lists = read_is_lists(section);
  data.files = read_files(section);
  data.users.name = section.choice("user", ids, "user");
  data.items.name = section.choice("item", ids, "item");
  if (data.users.name == data.items.name) section.refuse_value("item", "other ids than data.user");
  data.min_events = section.integer("min_events", 1, 1 << 30, 1);
  if (data.lists) {
    if (section.has("test_file")) data.test_files = {section.text("test_file")};
  } else {
    data.format = read_csv_format(section);
    data.time = section.has("time") ? section.column("time") : "";
    data.once_per = section.has("once_per") ? section.column("once_per") : "";
    data.where = read_where(section.section("where", true));
  }
  section.finish();
  return data;
}

/// Reads the keys of users or items.
KeysSpec read_role(TomlSection section, const std::string& name, bool lists, std::string& column) {
  const KeysSpec keys = read_keys(section, name);
  if (!lists) column = section.column("column");
  section.finish();
  return keys;
}

ItemListsSpec read_attributes(TomlSection section, const std::string& name,
                              const std::string& items) {
  ItemListsSpec spec;
  spec.keys = read_keys(section, name);
  section.choice("of", {items});
  spec.lists = read_is_lists(section);
  spec.file = section.text("file");
  if (!spec.lists) {
    spec.format = read_csv_format(section);
    spec.key = section.column("key");
    spec.column = section.column("column");
    spec.separator = section.text("separator");
    if (spec.separator.empty()) section.refuse_value("separator", "at least one character");
  }
  section.finish();
  return spec;
}

HistoriesSplit read_split(TomlSection section, const std::vector<std::string>& rules,
                          const HistoriesSpec& data) {
  HistoriesSplit split;
  const bool integers =
      data.users.kind == KeyKind::kInteger && data.items.kind == KeyKind::kInteger;
  const bool pairs = integers || !data.test_files.empty();
  split.last = section.choice("rule", rules, pairs ? rules.front() : "last") == "last";
  if (split.last && !data.test_files.empty())
    section.refuse("rule", "must be \"pairs\" where data.test_file is given, got \"last\"");
  if (!integers && !data.test_files.empty())
    section.refuse(
        "rule",
        "must be \"pairs\" where data.test_file is given, for which the keys of users and "
        "items must be integers, got strings");
  if (!split.last && !integers)
    section.refuse("rule",
                   "must be \"last\" where the keys of users or items are strings, got \"pairs\"");
  split.salt = static_cast<std::uint64_t>(section.integer("salt", 0, INT64_MAX, 0));
  split.train_on_validation = section.flag("train_on_validation", false);
  section.finish();
  return split;
}

}  // namespace

std::vector<std::string> HistoriesJob::ids() const {
  std::vector<std::string> names = {data.users.name, data.items.name};
  for (const ItemListsSpec& spec : attributes) names.push_back(spec.keys.name);
  return names;
}

HistoriesJob read_histories_job(TomlSection& root, const std::vector<std::string>& rules) {
  TomlSection ids = root.section("ids");
  const std::vector<std::string> names = ids.keys();
  if (names.size() < 2) ids.refuse_section("must name ids of users and of items");
  HistoriesJob job;
  job.data = read_data(root.section("data"), names);
  for (const std::string& name : names) {
    if (name == job.data.users.name) {
      job.data.users = read_role(ids.section(name), name, job.data.lists, job.data.user);
    } else if (name == job.data.items.name) {
      job.data.items = read_role(ids.section(name), name, job.data.lists, job.data.item);
    } else {
      job.attributes.push_back(read_attributes(ids.section(name), name, job.data.items.name));
    }
  }
  job.split = read_split(root.section("split", true), rules, job.data);
  return job;
}

}  // namespace embertable::jobs
