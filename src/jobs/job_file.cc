#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "embertable/errors.h"
#include "jobs/job.h"
#include "jobs/toml_section.h"

namespace embertable::jobs {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 40;

template <class Spec>
std::vector<std::string> names_of(const std::vector<Spec>& specs) {
  std::vector<std::string> names;
  for (const Spec& spec : specs) names.push_back(spec.name);
  return names;
}

FileSpec read_file_spec(TomlSection& section) {
  FileSpec file;
  file.path = section.text("file");
  const std::string separator = section.text("field_separator", ",");
  if (separator.size() != 1 || separator == "\"" || separator == "\n") {
    section.refuse_value("field_separator", "one character, no quote or line break");
  }
  file.format.separator = separator[0];
  file.format.header = section.flag("header", true);
  return file;
}

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

void read_initializer(TomlSection section, TableSpec& table) {
  const std::string kind =
      section.choice("kind", {"zeros", "constant", "uniform", "normal", "truncated_normal"});
  if (kind == "zeros") {
    table.first = TableSpec::First::kZeros;
  } else if (kind == "constant") {
    table.first = TableSpec::First::kConstant;
    table.first_a = section.number("value");
  } else if (kind == "uniform") {
    table.first = TableSpec::First::kUniform;
    table.first_a = section.number("low");
    table.first_b = section.number("high");
    if (!(table.first_a < table.first_b)) section.refuse_value("high", "above low");
  } else {
    table.first = kind == "normal" ? TableSpec::First::kNormal : TableSpec::First::kTruncatedNormal;
    table.first_a = section.number("mean", 0);
    table.first_b = section.number("stddev");
    if (!(table.first_b >= 0)) section.refuse_value("stddev", "at least 0");
  }
  section.finish();
}

std::vector<TableSpec> read_tables(TomlSection all, const std::vector<IdsSpec>& ids) {
  std::vector<TableSpec> found;
  for (const std::string& name : all.keys()) {
    TomlSection section = all.section(name);
    TableSpec table;
    table.name = name;
    table.ids = section.choice("ids", names_of(ids), name);
    table.dim = static_cast<std::int32_t>(section.integer("dim", 1, TableConfig::kMaxDim));
    const std::string combiner = section.choice("combiner", {"sum", "mean", "sqrtn"}, "mean");
    table.combiner = combiner == "sum"    ? Combiner::kSum
                     : combiner == "mean" ? Combiner::kMean
                                          : Combiner::kSqrtN;
    read_initializer(section.section("initializer"), table);
    section.finish();
    found.push_back(std::move(table));
  }
  return found;
}

std::vector<FeatureSpec> read_features(TomlSection all, const std::vector<TableSpec>& tables) {
  std::vector<FeatureSpec> found;
  for (const std::string& name : all.keys()) {
    TomlSection section = all.section(name);
    found.push_back({name, section.choice("table", names_of(tables), name)});
    section.finish();
  }
  if (found.empty()) {
    for (const TableSpec& table : tables) found.push_back({table.name, table.name});
  }
  return found;
}

/// Refuses a feature that does not fit where the model names it.
void check_feature(const TomlSection& section, std::string_view key, const Job& job,
                   const std::string& feature, std::int32_t dim, bool one_id) {
  const TableSpec& table = named(job.tables, named(job.features, feature).table);
  const IdsSpec& ids = named(job.ids, table.ids);
  if (table.dim != dim) {
    section.refuse(key, fmt::format("must name a feature of dim {}, got \"{}\" of dim {}", dim,
                                    feature, table.dim));
  }
  if (one_id && (ids.joined() || !ids.separator.empty())) {
    section.refuse(
        key,
        fmt::format("must name a feature with one id a sample, got \"{}\" with a list", feature));
  }
}

ModelSpec read_model(TomlSection section, const Job& job) {
  const std::vector<std::string> features = names_of(job.features);
  ModelSpec model;
  model.kind = section.choice("kind", {"mf"});
  model.user = section.choice("user", features);
  model.item = section.choice("item", features);
  const std::int32_t dim = named(job.tables, named(job.features, model.user).table).dim;
  check_feature(section, "user", job, model.user, dim, true);
  check_feature(section, "item", job, model.item, dim, true);
  if (section.has("user_bias")) {
    model.user_bias = section.choice("user_bias", features);
    check_feature(section, "user_bias", job, model.user_bias, 1, true);
  }
  if (section.has("item_bias")) {
    model.item_bias = section.choice("item_bias", features);
    check_feature(section, "item_bias", job, model.item_bias, 1, true);
  }
  model.sides = section.texts("sides", {});
  for (const std::string& side : model.sides) {
    if (std::find(features.begin(), features.end(), side) == features.end()) {
      section.refuse_value("sides",
                           fmt::format("a list of features ({})", fmt::join(features, ", ")));
    }
    check_feature(section, "sides", job, side, dim, false);
  }
  std::vector<std::string> roles = model.sides;
  for (const std::string& role : {model.user, model.item, model.user_bias, model.item_bias}) {
    if (!role.empty()) roles.push_back(role);
  }
  std::sort(roles.begin(), roles.end());
  const auto twice = std::adjacent_find(roles.begin(), roles.end());
  if (twice != roles.end())
    section.refuse("kind", fmt::format("must use each feature once, got \"{}\" twice", *twice));
  for (const std::string& feature : features) {
    if (std::find(roles.begin(), roles.end(), feature) == roles.end()) {
      section.refuse("kind", fmt::format("must use every feature, got none for \"{}\"", feature));
    }
  }
  model.regularization = section.number("regularization", 0);
  if (!(model.regularization >= 0)) section.refuse_value("regularization", "at least 0");
  section.finish();
  return model;
}

/// Takes a key that every rule has; false for any other.
bool take_option(TomlSection& section, const std::string& key, OptimizerOptions& options) {
  const std::pair<std::string_view, std::optional<double> OptimizerOptions::*> limits[] = {
      {"clip_gradient_min", &OptimizerOptions::clip_gradient_min},
      {"clip_gradient_max", &OptimizerOptions::clip_gradient_max},
      {"clip_weight_min", &OptimizerOptions::clip_weight_min},
      {"clip_weight_max", &OptimizerOptions::clip_weight_max}};
  const std::pair<std::string_view, bool OptimizerOptions::*> flags[] = {
      {"multiply_weight_decay_factor_by_learning_rate",
       &OptimizerOptions::multiply_weight_decay_factor_by_learning_rate},
      {"use_gradient_accumulation", &OptimizerOptions::use_gradient_accumulation},
      {"low_dimensional_packing_status", &OptimizerOptions::low_dimensional_packing_status}};
  for (const auto& [name, limit] : limits) {
    if (key != name) continue;
    options.*limit = section.number(key);
    return true;
  }
  for (const auto& [name, flag] : flags) {
    if (key != name) continue;
    options.*flag = section.flag(key);
    return true;
  }
  if (key == "weight_decay_factor") {
    options.weight_decay_factor = section.number(key);
  } else if (key == "step_counter") {
    options.step_counter = section.number(key);
  } else {
    return false;
  }
  return true;
}

Setting setting_of(TomlSection& section, const std::string& key) {
  return std::visit([](const auto& value) { return Setting(value); }, section.value(key));
}

/// Why the optimizer cannot be, or "".
std::string refusal_of(const OptimizerSpec& spec) {
  try {
    const Optimizer complete(spec.rule, spec.learning_rate, spec.parameters, spec.options);
    return "";
  } catch (const ValueError& error) {
    return error.what();
  }
}

/// What `Optimizer` takes: rules, and their names in other systems.
std::vector<std::string> optimizer_names() {
  std::vector<std::string> names = optimizer_rules();
  for (OptimizerVariant& variant : optimizer_variants()) names.push_back(std::move(variant.name));
  return names;
}

OptimizerSpec read_optimizer(TomlSection section) {
  OptimizerSpec optimizer;
  optimizer.rule = section.choice("rule", optimizer_names());
  optimizer.learning_rate = section.number("learning_rate");
  optimizer.decay = section.number("decay", 1);
  if (!(optimizer.decay > 0)) section.refuse_value("decay", "above 0");
  const OptimizerSpec start = optimizer;
  const std::vector<std::string> rest = section.take_rest();
  const auto take = [&](const std::string& key, OptimizerSpec& spec) {
    if (!take_option(section, key, spec.options))
      spec.parameters.emplace_back(key, setting_of(section, key));
  };
  for (const std::string& key : rest) take(key, optimizer);
  if (const std::string refusal = refusal_of(optimizer); !refusal.empty()) {
    OptimizerSpec so_far = start;
    for (const std::string& key : rest) {
      take(key, so_far);
      const std::string reason = refusal_of(so_far);
      if (!reason.empty() && refusal_of(start).empty())
        section.refuse(key, fmt::format("is refused: {}", reason));
    }
    section.refuse("learning_rate", fmt::format("is refused: {}", refusal));
  }
  return optimizer;
}

ScheduleSpec read_schedule(TomlSection section) {
  ScheduleSpec schedule;
  schedule.batch = section.integer("batch", 1, 1 << 24);
  schedule.epochs = static_cast<std::int32_t>(section.integer("epochs", 0, 1'000'000));
  schedule.look_ahead =
      static_cast<std::int32_t>(section.integer("look_ahead", 0, 63, schedule.look_ahead));
  schedule.pipelined = section.flag("pipelined", false);
  section.finish();
  return schedule;
}

StrategySpec read_strategy(TomlSection section, const ScheduleSpec& schedule) {
  StrategySpec strategy;
  strategy.hosts = static_cast<std::int32_t>(section.integer("hosts", 1, 1024, 1));
  strategy.replicas = static_cast<std::int32_t>(section.integer("replicas", 1, 1024, 1));
  strategy.sharding =
      section.choice("sharding", {"div", "mod"}, "div") == "div" ? Sharding::kDiv : Sharding::kMod;
  if (strategy.replicas % strategy.hosts != 0) {
    section.refuse("replicas", fmt::format("must be a multiple of the {} hosts, got {}",
                                           strategy.hosts, strategy.replicas));
  }
  if (schedule.batch % strategy.replicas != 0) {
    section.refuse("replicas", fmt::format("must divide schedule.batch ({}), got {}",
                                           schedule.batch, strategy.replicas));
  }
  section.finish();
  return strategy;
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

std::vector<NamesSpec> read_names(TomlSection all, const std::vector<IdsSpec>& ids) {
  std::vector<NamesSpec> found;
  const std::vector<std::string> known = names_of(ids);
  for (const std::string& name : all.keys()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      all.refuse(name, fmt::format("must be named after ids ({})", fmt::join(known, ", ")));
    }
    TomlSection section = all.section(name);
    NamesSpec names;
    names.ids = name;
    names.file = read_file_spec(section);
    names.key = section.column("key");
    names.name = section.column("name");
    section.finish();
    found.push_back(std::move(names));
  }
  return found;
}

CheckpointSpec read_checkpoint(TomlSection section) {
  CheckpointSpec checkpoint;
  const std::string every = section.text_or_integer("every", "epoch");
  checkpoint.every_epoch = every == "epoch";
  if (every != "epoch" && every != "end") {
    const auto parsed =
        std::from_chars(every.data(), every.data() + every.size(), checkpoint.every_steps);
    if (parsed.ec != std::errc() || *parsed.ptr != '\0' || checkpoint.every_steps < 1)
      section.refuse_value("every", "a number of steps from 1, \"epoch\" or \"end\"");
  }
  checkpoint.keep = section.integer("keep", 0, kMost, checkpoint.keep);
  section.finish();
  return checkpoint;
}

EngineSpec read_engine(TomlSection section) {
  EngineSpec engine;
  engine.bucket_bytes = section.integer("bucket_bytes", 0, kMost, engine.bucket_bytes);
  engine.inline_floats = section.integer("inline_floats", 0, kMost, engine.inline_floats);
  section.finish();
  return engine;
}

std::vector<std::string> read_metrics(TomlSection& root) {
  const std::vector<std::string> metrics = root.texts("metrics", {"rmse", "mae"});
  for (const std::string& metric : metrics) {
    if (metric != "rmse" && metric != "mae") root.refuse_value("metrics", "a list of rmse, mae");
  }
  return metrics;
}

}  // namespace

Job parse_job(const std::string& text, const std::string& path,
              const std::vector<Change>& changes) {
  TomlDocument document(text, path, changes);
  TomlSection root(document);
  Job job;
  job.name = std::filesystem::path(path).stem().string();
  job.text = text;
  if (document.changed()) {
    std::ostringstream merged;
    merged << toml::toml_formatter(document.root()) << '\n';
    job.text = merged.str();
  }
  job.seed = static_cast<std::uint64_t>(root.integer("seed", 0, INT64_MAX, 1));
  job.metrics = read_metrics(root);
  job.data = read_data(root.section("data"));
  job.ids = read_ids(root.section("ids"));
  job.tables = read_tables(root.section("tables"), job.ids);
  job.features = read_features(root.section("features", true), job.tables);
  job.model = read_model(root.section("model"), job);
  job.optimizer = read_optimizer(root.section("optimizer"));
  job.schedule = read_schedule(root.section("schedule"));
  job.strategy = read_strategy(root.section("strategy", true), job.schedule);
  job.split = read_split(root.section("split", true), job.ids);
  job.names = read_names(root.section("names", true), job.ids);
  job.checkpoint = read_checkpoint(root.section("checkpoint", true));
  job.engine = read_engine(root.section("engine", true));
  root.finish();
  job.settings = document.settings();
  return job;
}

Job read_job(const std::string& path, const std::vector<Change>& changes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw IoError(fmt::format("'{}': cannot open: {}", path, std::strerror(errno)));
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) throw IoError(fmt::format("'{}': cannot read the job", path));
  return parse_job(text, path, changes);
}

}  // namespace embertable::jobs
