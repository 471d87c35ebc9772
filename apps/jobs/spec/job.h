#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/jobs/spec/change.h"
#include "apps/jobs/spec/file_spec.h"
#include "apps/jobs/spec/model.h"
#include "apps/jobs/spec/named.h"
#include "embertable/config.h"
#include "embertable/optimizer.h"
#include "embertable/strategy.h"

namespace embertable::jobs {

/// Section [tables.NAME].
struct TableSpec {
  std::string name;
  std::string ids;
  std::int32_t dim = 0;
  Combiner combiner = Combiner::kMean;
  enum class First : std::uint8_t { kZeros, kConstant, kUniform, kNormal, kTruncatedNormal };
  First first = First::kNormal;
  double first_a = 0;     ///< value, low or mean
  double first_b = 0.05;  ///< high or stddev
  bool replicated = false;
  RowType row_type = RowType::kFloat32;
};

/// Section [optimizer].
struct OptimizerSpec {
  std::string rule = "sgd";
  double learning_rate = 0;
  double decay = 1;  ///< factor of the rate after each epoch
  Optimizer::Settings parameters;
  OptimizerOptions options;
};

/// Section [schedule].
struct ScheduleSpec {
  std::int64_t batch = 0;  ///< samples of a step, in all replicas
  std::int32_t epochs = 0;
  std::int32_t look_ahead = 1;  ///< batches enqueued before the current one is done

  /// If true, a batch is looked up before the update of the one before it, in the same epoch.
  bool pipelined = false;

  /// If true, the rate also falls linearly to zero over the run, in proportion to the samples that
  /// are left.
  bool linear_rate = false;

  /// Epochs without a better validation measure after which a run ends, with the tables of its best
  /// epoch; 0: never.
  std::int32_t patience = 0;
};

/// Section [strategy].
struct StrategySpec {
  std::int32_t hosts = 1;
  std::int32_t replicas = 1;  ///< replicas of all hosts together
  Sharding sharding = Sharding::kDiv;
};

/// Section [names.IDS]: display names of the keys.
struct NamesSpec {
  std::string ids;
  FileSpec file;
  std::string key;
  std::string name;
};

/// Section [checkpoint]: when a run with a directory saves, besides at its end. Does not affect
/// results.
struct CheckpointSpec {
  bool every_epoch = true;
  std::int64_t every_steps = 0;  ///< 0: not by steps
  std::int64_t keep = 2;         ///< number of newest saved steps to keep, 0: all
};

/// Section [engine]: how work is cut. Does not affect results.
struct EngineSpec {
  std::int64_t bucket_bytes = 0;
  std::int64_t inline_floats = 1 << 13;
};

/// What `embertable train` does: a checked job file with the changes of the command line.
struct Job {
  std::string name;                ///< file name without its folder and ending
  std::string folder;              ///< folder of the job file
  std::string first_file;          ///< the first that it reads, "" if it names none
  std::vector<std::string> notes;  ///< sentences on what the job says, for its user
  std::vector<std::string> files;  ///< all that it names, in no particular order
  std::string text;                ///< the file's text, or an equal text with the changes
  std::uint64_t seed = 1;
  std::vector<std::string>
      metrics;                   ///< metrics of the model that are reported; the first is watched
  std::vector<std::string> ids;  ///< their names
  std::vector<TableSpec> tables;
  std::string model_kind;
  std::shared_ptr<const ModelSpec> model;
  OptimizerSpec optimizer;
  ScheduleSpec schedule;
  StrategySpec strategy;
  std::vector<NamesSpec> names;
  CheckpointSpec checkpoint;
  EngineSpec engine;

  /// Every key with its value, defaults included, as in "schedule.batch" to "24".
  std::map<std::string, std::string> settings;
};

/// Throws IoError if the file cannot be read, ValueError naming file, line, key, rule and received
/// value, and the nearest valid name for an unknown one.
Job read_job(const std::string& path, const std::vector<Change>& changes = {});
Job parse_job(const std::string& text, const std::string& path,
              const std::vector<Change>& changes = {});

/// Reads the job of a saved run, which may have ids that nothing uses: older versions took them.
Job parse_saved_job(const std::string& text, const std::string& path);

/// Returns a job of the same digest as TOML in which every key with a default has its value.
/// Throws what `read_job` throws.
std::string job_with_defaults(const std::string& path, const std::vector<Change>& changes = {});

/// Returns the folder of a job's files where the user names none: the job file's, or ../data beside
/// that one if the first of the files is only there.
std::string data_folder(const Job& job);

}  // namespace embertable::jobs
