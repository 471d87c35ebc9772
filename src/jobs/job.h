#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "embertable/config.h"
#include "embertable/optimizer.h"
#include "embertable/strategy.h"
#include "jobs/csv_reader.h"
#include "jobs/vocabulary.h"

namespace embertable::jobs {

enum class KeyOrder : std::uint8_t { kFirst, kSorted };

/// A text file, its path relative to the data folder.
struct FileSpec {
  std::string path;
  CsvFormat format;
};

/// [data]: one sample a record.
struct DataSpec {
  FileSpec file;
  std::string label;  ///< column that is predicted
  double lowest = 0;  ///< range of the labels; predictions are clipped to it
  double highest = 0;
};

/// [ids.NAME]: the keys of a column, numbered.
struct IdsSpec {
  std::string name;
  std::string column;
  KeyKind keys = KeyKind::kInteger;
  KeyOrder order = KeyOrder::kFirst;
  std::string separator;  ///< between the keys of a list; "": one key per field

  // From a side table, which has one record for a key of other ids:
  FileSpec file;    ///< path "": the column is in the data file
  std::string key;  ///< column of `file`
  std::string of;   ///< the other ids
  bool joined() const noexcept { return !file.path.empty(); }
};

/// [tables.NAME]
struct TableSpec {
  std::string name;
  std::string ids;
  std::int32_t dim = 0;
  Combiner combiner = Combiner::kMean;
  enum class First : std::uint8_t { kZeros, kConstant, kUniform, kNormal, kTruncatedNormal };
  First first = First::kNormal;
  double first_a = 0;     ///< value, low or mean
  double first_b = 0.05;  ///< high or stddev
};

/// [features.NAME]: ids that are looked up in a table. Without this section every table is a
/// feature of its name.
struct FeatureSpec {
  std::string name;
  std::string table;
};

/// [model]: biased matrix factorisation of labels with two ids each,
///   mean + user_bias + item_bias + <user, item + sides...>.
struct ModelSpec {
  std::string kind = "mf";
  std::string user, item;            ///< features
  std::string user_bias, item_bias;  ///< of tables of dim 1, or ""
  std::vector<std::string> sides;
  double regularization = 0;  ///< times the looked up row is added to its gradient
};

/// [optimizer]
struct OptimizerSpec {
  std::string rule = "sgd";
  double learning_rate = 0;
  double decay = 1;  ///< the rate's factor after each epoch
  Optimizer::Settings parameters;
  OptimizerOptions options;
};

/// [schedule]
struct ScheduleSpec {
  std::int64_t batch = 0;  ///< samples of a step, all replicas
  std::int32_t epochs = 0;
  std::int32_t look_ahead = 1;  ///< batches enqueued before the one that is worked on is done

  /// A batch is looked up before the update of the one before it, in the same epoch.
  bool pipelined = false;
};

/// [strategy]
struct StrategySpec {
  std::int32_t hosts = 1;
  std::int32_t replicas = 1;  ///< of all hosts
  Sharding sharding = Sharding::kDiv;
};

/// [split]
struct SplitSpec {
  /// One or two ids with integer keys; empty: the number of the record decides.
  std::vector<std::string> by;

  std::uint64_t salt = 0;
  bool train_on_validation = false;  ///< the validation part trains too, and is not measured
};

/// [names.IDS]: what people call the keys.
struct NamesSpec {
  std::string ids;
  FileSpec file;
  std::string key;
  std::string name;
};

/// [checkpoint]: when a run that has a directory saves, besides at its end; never shows in a
/// result.
struct CheckpointSpec {
  bool every_epoch = true;
  std::int64_t every_steps = 0;  ///< 0: not by steps
  std::int64_t keep = 2;         ///< newest saved steps that stay, 0: all
};

/// [engine]: how work is cut; never shows in a result.
struct EngineSpec {
  std::int64_t bucket_bytes = 0;
  std::int64_t inline_floats = 1 << 13;
};

/// What `embertable train` does: a job file with the changes of the command line, checked.
struct Job {
  std::string name;  ///< file name without its folder and ending
  std::string text;  ///< the file, or with changes what it says with them
  std::uint64_t seed = 1;
  std::vector<std::string> metrics;  ///< "rmse", "mae"
  DataSpec data;
  std::vector<IdsSpec> ids;  ///< joined ones after the ids they belong to
  std::vector<TableSpec> tables;
  std::vector<FeatureSpec> features;
  ModelSpec model;
  OptimizerSpec optimizer;
  ScheduleSpec schedule;
  StrategySpec strategy;
  SplitSpec split;
  std::vector<NamesSpec> names;
  CheckpointSpec checkpoint;
  EngineSpec engine;

  /// Every key with its value, defaults included: "schedule.batch" to "24".
  std::map<std::string, std::string> settings;
};

/// "schedule.epochs=3": the dotted key, and a TOML value or plain text.
using Change = std::string;

/// Throws IoError if the file cannot be read, ValueError naming file, line, key, rule and received
/// value, with the nearest valid name where a name is unknown.
Job read_job(const std::string& path, const std::vector<Change>& changes = {});
Job parse_job(const std::string& text, const std::string& path,
              const std::vector<Change>& changes = {});

/// The element of that name, which `parse_job` has checked to exist.
template <class Spec>
const Spec& named(const std::vector<Spec>& specs, std::string_view name) {
  for (const Spec& spec : specs) {
    if (spec.name == name) return spec;
  }
  return specs.front();
}

}  // namespace embertable::jobs
