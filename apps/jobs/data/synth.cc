#include "apps/jobs/data/synth.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/convert/result_file.h"
#include "apps/jobs/data/zipf.h"
#include "base/float_environment.h"
#include "base/math.h"
#include "base/random.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

constexpr std::size_t kFlushBytes = 1 << 18;

/// A text file that is written once, compressed or not.
class TextFile {
 public:
  TextFile(const std::filesystem::path& path, bool compressed)
      : name_(path), file_(gzopen(name_.temporary().c_str(), compressed ? "wb6" : "wbT")) {
    if (!file_) fail();
  }

  void add(std::string_view text) {
    text_ += text;
    if (text_.size() >= kFlushBytes) flush();
  }

  void close() {
    flush();
    if (gzclose(file_.release()) != Z_OK) fail();
    name_.commit();
  }

 private:
  struct Close {
    void operator()(gzFile file) const noexcept { gzclose(file); }
  };

  void flush() {
    const auto size = static_cast<unsigned>(text_.size());
    if (size > 0 && gzwrite(file_.get(), text_.data(), size) != static_cast<int>(size)) fail();
    text_.clear();
  }

  [[noreturn]] void fail() const {
    throw IoError(
        fmt::format("'{}': cannot write: {}", name_.path().string(), std::strerror(errno)));
  }

  LateName name_;
  std::unique_ptr<std::remove_pointer_t<gzFile>, Close> file_;
  std::string text_;
};

/// One column: the keys of each record, and their weights.
class Column {
 public:
  Column(const SynthTable& table, const SynthSpec& spec)
      : table_(table),
        zipf_(table.rows, spec.skew),
        places_(table.rows, stream_of(spec.seed, table.name + " places")),
        length_(stream_of(spec.seed, table.name + " lengths")),
        keys_(stream_of(spec.seed, table.name + " keys")),
        weights_(stream_of(spec.seed, table.name + " weights")),
        deviation_(spec.spread / std::sqrt(static_cast<double>(spec.tables.size()))) {}

  /// Adds the field of a record to a line. Returns the mean weight of its keys.
  double add(std::int64_t record, std::string& line) const {
    const auto number = static_cast<std::uint64_t>(record);
    const auto choices = static_cast<std::uint64_t>(table_.most - table_.least + 1);
    const std::int64_t length = table_.least + static_cast<std::int64_t>(uniform_below(
                                                   mix_seeds(length_, number), choices));
    const RandomRow random(keys_, number);
    double sum = 0;
    for (std::int64_t i = 0; i < length; ++i) {
      const std::int64_t key = places_[zipf_(random, static_cast<std::uint64_t>(i))];
      if (i > 0) line += '|';
      line += fmt::format("{}", key);
      sum += weight(key);
    }
    return length > 0 ? sum / static_cast<double>(length) : 0;
  }

 private:
  double weight(std::int64_t key) const {
    const double uniform = uniform_double(mix_seeds(weights_, static_cast<std::uint64_t>(key)));
    return deviation_ * math::normal_quantile(std::max(uniform, 0x1p-54));
  }

  const SynthTable& table_;
  Zipf zipf_;
  Permutation places_;  ///< places frequent keys anywhere
  std::uint64_t length_, keys_, weights_;
  double deviation_;
};

/// Adds up the losses of labels.
struct Cost {
  std::int64_t records = 0, positives = 0;
  double sum = 0;
  void add(bool label, double cost) {
    ++records;
    positives += label ? 1 : 0;
    sum += cost;
  }
  SynthLoss loss() const {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    return {records, positives, records > 0 ? sum / static_cast<double>(records) : kNone};
  }
};

/// Returns log(1 + exp(x)).
double softplus(double x) { return std::max(x, 0.0) + math::log1p(math::exp(-std::abs(x))); }

std::string header(const SynthSpec& spec, char separator) {
  std::string line = "label";
  for (const SynthTable& table : spec.tables) line += separator + table.name;
  return line + '\n';
}

void write_records(const SynthSpec& spec, TextFile& file, Cost& all, std::array<Cost, 3>& parts) {
  const char separator = spec.commas ? ',' : '\t';
  file.add(header(spec, separator));
  std::vector<Column> columns;
  for (const SynthTable& table : spec.tables) columns.emplace_back(table, spec);
  const double bias = math::log(spec.positives) - math::log1p(-spec.positives);
  const std::uint64_t labels = stream_of(spec.seed, "labels");
  std::string line;
  for (std::int64_t record = 0; record < spec.records; ++record) {
    line = "0";
    double logit = bias;
    for (const Column& column : columns) {
      line += separator;
      logit += column.add(record, line);
    }
    const auto number = static_cast<std::uint64_t>(record);
    const double positive = 1 / (1 + math::exp(-logit));
    const bool label = uniform_double(mix_seeds(labels, number)) < positive;
    if (label) line[0] = '1';
    const double cost = softplus(label ? -logit : logit);
    all.add(label, cost);
    parts[static_cast<std::size_t>(split_part(number))].add(label, cost);
    line += '\n';
    file.add(line);
  }
}

nlohmann::ordered_json json_of(const SynthLoss& loss) {
  return {{"records", loss.records}, {"positives", loss.positives}, {"logloss", loss.logloss}};
}

std::string truth_text(const SynthSpec& spec, const SynthReport& report) {
  nlohmann::ordered_json json = {{"seed", spec.seed},
                                 {"records", spec.records},
                                 {"skew", spec.skew},
                                 {"positives", spec.positives},
                                 {"spread", spec.spread}};
  for (const SynthTable& table : spec.tables)
    json["tables"][table.name] = {
        {"rows", table.rows}, {"least", table.least}, {"most", table.most}};
  json["best"] = {{"all", json_of(report.all)}};
  for (const Part part : {Part::kTraining, Part::kValidation, Part::kTest}) {
    const char* name = part == Part::kTest         ? "test"
                       : part == Part::kValidation ? "validation"
                                                   : "training";
    json["best"][name] = json_of(report.parts[static_cast<std::size_t>(part)]);
  }
  return json.dump(2) + "\n";
}

std::string ids_text(const SynthTable& table) {
  std::string text = fmt::format("[ids.{0}]\ncolumn = \"{0}\"\n", table.name);
  if (table.lists()) text += "separator = \"|\"\n";
  return text + "\n";
}

/// Returns a job that can represent the weights of the model that drew the labels, and little else.
std::string job_text(const SynthSpec& spec, const std::string& data) {
  std::string text = fmt::format(
      "# Made-up data: `best` in the .json file beside it is what no model can do better than.\n\n"
      "seed = 1\nmetrics = [\"auc\", \"logloss\"]\n\n"
      "[data]\nfile = {}\nlabel = \"label\"\nrange = [0, 1]\n",
      nlohmann::json(data).dump());
  if (!spec.commas) text += "field_separator = \"\\t\"\n";
  text += "\n";
  for (const SynthTable& table : spec.tables) text += ids_text(table);
  std::string features;
  for (const SynthTable& table : spec.tables) {
    text += fmt::format(
        "[tables.{}]\ndim = 1\ncombiner = \"mean\"\ninitializer = {{ kind = \"zeros\" }}\n\n",
        table.name);
    features += fmt::format("{}\"{}\"", features.empty() ? "" : ", ", table.name);
  }
  return text + fmt::format(
                    "[model]\nkind = \"ctr\"\nlinear = [{}]\nregularization = 0\n\n"
                    "[optimizer]\nrule = \"adagrad\"\nlearning_rate = 0.3\n"
                    "initial_accumulator_value = 0.1\n\n"
                    "[schedule]\nbatch = 1024\nepochs = 3\n\n"
                    "[split]\ntrain_on_validation = true\n",
                    features);
}

bool is_name(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

void check_table(const SynthTable& table, const SynthSpec& spec) {
  const auto refuse = [&](const std::string& rule) {
    throw ValueError(fmt::format("table '{}' {}", table.name, rule));
  };
  if (!is_name(table.name) || table.name == "label")
    refuse("must have a name of letters, digits and _ that is not 'label'");
  const auto same = std::count_if(spec.tables.begin(), spec.tables.end(),
                                  [&](const SynthTable& one) { return one.name == table.name; });
  if (same > 1) refuse("must be named once");
  if (table.rows < 1 || table.rows >= std::int64_t{1} << 31)
    refuse(fmt::format("must have 1 to 2147483647 rows, got {}", table.rows));
  if (table.least < 0 || table.most < std::max<std::int64_t>(1, table.least) ||
      table.most > SynthSpec::kMostKeys) {
    refuse(fmt::format("must have from 0 to {} keys in a field, the least first, got {} to {}",
                       SynthSpec::kMostKeys, table.least, table.most));
  }
}

}  // namespace

void validate(const SynthSpec& spec) {
  if (spec.tables.empty()) throw ValueError("tables must be at least one, got none");
  for (const SynthTable& table : spec.tables) check_table(table, spec);
  const auto check = [](bool holds, std::string_view name, std::string_view rule, double got) {
    if (!holds) throw ValueError(fmt::format("{} must be {}, got {}", name, rule, got));
  };
  check(spec.records >= 1, "records", "at least 1", static_cast<double>(spec.records));
  check(spec.skew >= 0 && spec.skew <= 10, "skew", "from 0 to 10", spec.skew);
  check(spec.positives > 0 && spec.positives < 1, "positives", "between 0 and 1", spec.positives);
  check(spec.spread >= 0 && spec.spread <= 100, "spread", "from 0 to 100", spec.spread);
}

SynthFiles synth_files(const SynthSpec& spec, const std::filesystem::path& stem) {
  const std::string name = stem.string();
  return {.data = name + (spec.commas ? ".csv" : ".tsv") + (spec.compressed ? ".gz" : ""),
          .job = name + ".toml",
          .truth = name + ".json"};
}

SynthReport write_synth(const SynthSpec& spec, const std::filesystem::path& stem) {
  const FloatEnvironment ours;
  validate(spec);
  SynthReport report{.files = synth_files(spec, stem)};
  Cost all;
  std::array<Cost, 3> parts;
  TextFile data(report.files.data, spec.compressed);
  write_records(spec, data, all, parts);
  data.close();
  report.all = all.loss();
  for (std::size_t part = 0; part < parts.size(); ++part)
    report.parts[static_cast<std::size_t>(part)] = parts[static_cast<std::size_t>(part)].loss();
  write_result(report.files.job.string(), job_text(spec, report.files.data.filename().string()));
  write_result(report.files.truth.string(), truth_text(spec, report));
  return report;
}

}  // namespace embertable::jobs
