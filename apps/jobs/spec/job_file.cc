#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string_view>
#include <system_error>

#include "apps/jobs/spec/defaults.h"
#include "apps/jobs/spec/job.h"
#include "apps/jobs/spec/model.h"
#include "apps/jobs/spec/toml_section.h"
#include "apps/jobs/spec/toml_text.h"
#include "base/did_you_mean.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

/// Maximum number of parameters of an optimizer, more than any rule has.
constexpr std::size_t kMostParameters = 64;

constexpr std::int64_t kMostCount = std::int64_t{1} << 40;

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

std::vector<TableSpec> read_tables(TomlSection all, const std::vector<std::string>& ids) {
  std::vector<TableSpec> found;
  for (const std::string& name : all.keys()) {
    TomlSection section = all.section(name);
    TableSpec table;
    table.name = name;
    table.ids = section.choice("ids", ids, name);
    table.dim = static_cast<std::int32_t>(section.integer("dim", 1, TableConfig::kMaxDim));
    const std::string combiner = section.choice("combiner", {"sum", "mean", "sqrtn"}, "mean");
    table.combiner = combiner == "sum"    ? Combiner::kSum
                     : combiner == "mean" ? Combiner::kMean
                                          : Combiner::kSqrtN;
    read_initializer(section.section("initializer"), table);
    table.replicated = section.flag("replicated", false);
    table.row_type = parse_row_type(section.choice("row_type", {"float32", "bfloat16"}, "float32"));
    section.finish();
    found.push_back(std::move(table));
  }
  return found;
}

/// Reads a key that every rule has; returns false for any other.
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

/// Returns why the optimizer is refused, or "".
std::string refusal_of(const OptimizerSpec& spec) {
  try {
    const Optimizer complete(spec.rule, spec.learning_rate, spec.parameters, spec.options);
    return "";
  } catch (const ValueError& error) {
    return error.what();
  }
}

/// Returns the names that `Optimizer` accepts: rules, and their names in other systems.
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
  if (rest.size() > kMostParameters) {
    section.refuse("rule", fmt::format("must have at most {} other keys beside it, got {}",
                                       kMostParameters, rest.size()));
  }
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
  schedule.linear_rate = section.choice("rate", {"constant", "linear"}, "constant") == "linear";
  schedule.patience = static_cast<std::int32_t>(section.integer("patience", 0, 1'000'000, 0));
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

std::vector<NamesSpec> read_names(TomlSection all, const std::vector<std::string>& ids) {
  std::vector<NamesSpec> found;
  for (const std::string& name : all.keys()) {
    if (std::find(ids.begin(), ids.end(), name) == ids.end()) {
      all.refuse(name, fmt::format("must be named after ids ({})", fmt::join(ids, ", ")));
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
  checkpoint.keep = section.integer("keep", 0, kMostCount, checkpoint.keep);
  section.finish();
  return checkpoint;
}

EngineSpec read_engine(TomlSection section) {
  EngineSpec engine;
  engine.bucket_bytes = section.integer("bucket_bytes", 0, kMostCount, engine.bucket_bytes);
  engine.inline_floats = section.integer("inline_floats", 0, kMostCount, engine.inline_floats);
  section.finish();
  return engine;
}

std::vector<std::string> read_metrics(TomlSection& root, const ModelSpec& model) {
  const std::vector<std::string> known = model.metrics();
  const std::vector<std::string> metrics = root.texts("metrics", known);
  for (const std::string& metric : metrics) {
    if (std::find(known.begin(), known.end(), metric) == known.end())
      root.refuse_value("metrics", fmt::format("a list of {}", fmt::join(known, ", ")));
    if (std::count(metrics.begin(), metrics.end(), metric) > 1)
      root.refuse("metrics", fmt::format("must name each measure once, got \"{}\" again", metric));
  }
  if (metrics.empty())
    root.refuse_value("metrics", fmt::format("one or more of {}", fmt::join(known, ", ")));
  return metrics;
}

/// Returns the kind that [model] names, whose section is not read yet.
std::unique_ptr<ModelSpec> choose_model(TomlSection section, std::string& kind) {
  kind = section.choice("kind", names_of(model_kinds()));
  for (const ModelKind& known : model_kinds()) {
    if (known.name == kind) return known.make();
  }
  return nullptr;
}

/// Checks that a schedule with patience has a measure to wait for.
void check_schedule(const TomlSection& section, const Job& job) {
  if (job.schedule.patience > 0 && job.model->trains_on_validation())
    section.refuse("patience", "must be 0 where the validation part trains, got " +
                                   std::to_string(job.schedule.patience));
}

/// Refuses ids that nothing uses, which may be misspelt.
void check_ids(const TomlSection& section, const Job& job) {
  std::vector<std::string> used = job.model->ids_without_tables();
  for (const TableSpec& table : job.tables) used.push_back(table.ids);
  for (const std::string& ids : job.ids) {
    if (std::find(used.begin(), used.end(), ids) == used.end())
      section.refuse(ids, "is used by no table" + did_you_mean(ids, used));
  }
}

/// The keys of a job, in the order in which the documents describe them: values, then sections.
constexpr std::string_view kValues[] = {"seed", "metrics"};
constexpr std::string_view kSections[] = {"data",     "ids",   "names",      "tables",
                                          "features", "model", "optimizer",  "schedule",
                                          "strategy", "split", "checkpoint", "engine"};

/// Refuses keys that no job has, and sections that are no tables, before anything is filled in.
void check_keys(TomlDocument& document) {
  TomlSection root(document);
  for (const std::string_view key : kValues) root.has(key);
  for (const std::string_view key : kSections) root.section(key, true);
  root.finish();
}

/// Adds the defaults of the job's kind of model. They take its dim to the tables, so that an error
/// there could not name its line.
void complete(TomlDocument& document) {
  TomlSection model = TomlSection(document).section("model", true);
  if (model.has("dim")) model.integer("dim", 1, TableConfig::kMaxDim);
  document.complete(fill_defaults, {"model.dim"});
}

/// Returns the first file that [data] names, or "".
std::string first_file(const toml::table& job) {
  for (const char* const key : {"file", "files"}) {
    const toml::node_view<const toml::node> files = job["data"][key];
    if (const auto name = files.value<std::string>()) return *name;
    if (const auto name = files[0].value<std::string>()) return *name;
  }
  return "";
}

/// Adds the files that the sections of a job name.
void add_files(const toml::table& section, std::vector<std::string>& files) {
  for (const auto& [key, node] : section) {
    const std::string_view name = key.str();
    if (node.is_table()) add_files(*node.as_table(), files);
    if (name != "file" && name != "files" && name != "test_file" && name != "similarity") continue;
    if (const auto file = node.value<std::string>()) files.push_back(*file);
    if (const toml::array* all = node.as_array()) {
      for (const toml::node& one : *all)
        if (const auto file = one.value<std::string>()) files.push_back(*file);
    }
  }
}

/// Reads a job from a document with nothing read yet, without check_ids.
Job parse_any(TomlDocument& document, const std::string& text, const std::string& path) {
  check_keys(document);
  const auto given = document.root()["optimizer"]["rule"].value<std::string>();
  const std::string note = note_of_defaults(document.root());
  complete(document);
  TomlSection root(document);
  Job job;
  const std::filesystem::path file = path;
  job.name = file.stem().string();
  job.folder = file.has_parent_path() ? file.parent_path().string() : ".";
  job.first_file = first_file(document.root());
  add_files(document.root(), job.files);
  job.text = text;
  if (document.changed()) {
    job.text = toml_lines(document.root());
    if (job.text.size() > TomlDocument::kMaxBytes) {
      throw ValueError(
          fmt::format("{}: the job with its changes must have at most {} bytes, got {}", path,
                      TomlDocument::kMaxBytes, job.text.size()));
    }
  }
  job.seed = static_cast<std::uint64_t>(root.integer("seed", 0, INT64_MAX, 1));
  std::shared_ptr<ModelSpec> model = choose_model(root.section("model"), job.model_kind);
  job.ids = model->read_data(root);
  job.metrics = read_metrics(root, *model);
  job.tables = read_tables(root.section("tables"), job.ids);
  job.optimizer = read_optimizer(root.section("optimizer"));
  job.notes.push_back(note);
  if (given && *given != job.optimizer.rule) job.notes.push_back(optimizer_note(*given));
  std::erase(job.notes, "");
  job.schedule = read_schedule(root.section("schedule"));
  job.strategy = read_strategy(root.section("strategy", true), job.schedule);
  job.names = read_names(root.section("names", true), job.ids);
  job.checkpoint = read_checkpoint(root.section("checkpoint", true));
  job.engine = read_engine(root.section("engine", true));
  model->read_model(root, job);
  job.model = std::move(model);
  check_schedule(root.section("schedule"), job);
  root.finish();
  job.settings = document.settings();
  return job;
}

Job parse(TomlDocument& document, const std::string& text, const std::string& path) {
  Job job = parse_any(document, text, path);
  check_ids(TomlSection(document).section("ids"), job);
  return job;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw IoError(fmt::format("'{}': cannot open: {}", path, std::strerror(errno)));
  // One byte more than a job may have shows that there are too many.
  std::string text(TomlDocument::kMaxBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad())
    throw IoError(fmt::format("'{}': cannot read the job: {}", path, std::strerror(errno)));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > TomlDocument::kMaxBytes) {
    throw ValueError(
        fmt::format("{}: the job must have at most {} bytes", path, TomlDocument::kMaxBytes));
  }
  return text;
}

/// Gives a section lines of its own, and each of the tables that it names too: on one line they
/// would count as a part of the section before.
void spread(toml::table& section, const std::string& name) {
  section.is_inline(false);
  if (name != "ids" && name != "names" && name != "tables" && name != "features") return;
  for (auto& [key, node] : section) {
    if (node.is_table()) node.as_table()->is_inline(false);
  }
}

/// Prints a job section by section, in the order in which the documents describe them.
std::string in_order(const toml::table& job) {
  std::vector<std::string> names(std::begin(kValues), std::end(kValues));
  names.insert(names.end(), std::begin(kSections), std::end(kSections));
  std::string text;
  for (const std::string& name : names) {
    const toml::node* node = job.get(name);
    const bool is_empty = node != nullptr && node->is_table() && node->as_table()->empty();
    if (node == nullptr || is_empty) continue;
    toml::table one;
    one.insert(name, *node);
    if (toml::table* section = one[name].as_table()) spread(*section, name);
    text += (node->is_table() && !text.empty() ? "\n" : "") + toml_lines(one);
  }
  return text;
}

}  // namespace

Job parse_job(const std::string& text, const std::string& path,
              const std::vector<Change>& changes) {
  TomlDocument document(text, path, changes);
  return parse(document, text, path);
}

Job parse_saved_job(const std::string& text, const std::string& path) {
  TomlDocument document(text, path, {});
  return parse_any(document, text, path);
}

Job read_job(const std::string& path, const std::vector<Change>& changes) {
  return parse_job(read_text(path), path, changes);
}

std::string job_with_defaults(const std::string& path, const std::vector<Change>& changes) {
  const std::string text = read_text(path);
  TomlDocument document(text, path, changes);
  parse(document, text, path);
  return in_order(document.with_defaults());
}

std::string data_folder(const Job& job) {
  const std::filesystem::path own = job.folder;
  const std::filesystem::path beside = (own / ".." / "data").lexically_normal();
  const auto has_it = [&](const std::filesystem::path& folder) {
    std::error_code ignored;
    return std::filesystem::exists(folder / job.first_file, ignored);
  };
  return (has_it(beside) && !has_it(own) ? beside : own).string();
}

}  // namespace embertable::jobs
