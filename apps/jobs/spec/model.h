#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/jobs/spec/measures.h"
#include "apps/jobs/spec/predictor.h"
#include "apps/jobs/spec/split.h"
#include "apps/jobs/text/broken_record.h"
#include "embertable/checkpoint.h"
#include "embertable/embedding.h"
#include "embertable/executor.h"
#include "embertable/id_map.h"

namespace embertable::jobs {

class TomlSection;
struct Job;

/// Keys whose numbers are the rows of tables: [ids.NAME] of a job file.
struct KeySpace {
  std::string name;
  IdMap keys;
  std::int64_t without_record = 0;  ///< owners that a side table lacks
  std::int64_t empty = 0;           ///< records whose key is empty, where that is a key
};

/// A lookup of a model: `width` output rows for each sample, each of one id, or of a list of ids
/// that the table's combiner makes one.
struct ModelFeature {
  std::string name;
  std::string table;
  std::int64_t width = 1;
  bool lists = false;
};

/// The ids of one feature for neighbouring samples. Vectors keep their memory between steps.
struct StepIds {
  std::vector<std::int32_t> ids;     ///< [samples * width], or the lists back to back
  std::vector<std::int64_t> splits;  ///< lists only: [samples * width + 1], from 0
  std::vector<float> weights;        ///< lists only: one for each id, or empty: all 1
};

/// Up to Model::block_samples neighbouring samples of a step with the rows looked up for them: the
/// work of one item, so that the number of threads does not affect sums.
struct Block {
  std::int64_t index = 0;  ///< position of the block in its step
  std::int64_t first = 0;  ///< first sample, counted in the epoch or in the measured part
  std::int64_t samples = 0;
  std::int64_t of_step = 0;      ///< samples of the step, all blocks
  std::span<float* const> rows;  ///< by feature: [samples, width, dim]; gradients replace them
};
inline constexpr std::int64_t kBlockSamples = 256;

/// Looks up with the tables as they are, for measuring. For one thread at a time. Where several
/// processes train together, all of them make the same calls.
class Lookups {
 public:
  virtual ~Lookups() = default;
  virtual const Embedding& engine() const = 0;
  virtual Executor& executor() const = 0;

  /// Works in steps of the job's batch, rising: fill(first, count, ids of each feature), then
  /// use(block) for each block of the step, on any threads at once, then after(first, count). Of
  /// several processes each fills in samples and uses blocks of its own.
  using Fill = std::function<void(std::int64_t first, std::int64_t count, std::span<StepIds> ids)>;
  using Use = std::function<void(const Block&)>;
  using After = std::function<void(std::int64_t first, std::int64_t count)>;
  virtual void for_each(std::int64_t samples, const Fill& fill, const Use& use,
                        const After& after) = 0;

  /// Completes values that `use` wrote for each of the samples of the last `for_each`: [samples]
  /// elements of one size, of which a process has those of its blocks.
  virtual void complete(std::int64_t samples, std::span<std::byte> values) = 0;

  /// Computes `count` values of one size: compute(first, count) writes those of a range. Of several
  /// processes each computes a range of its own, and all get all values.
  using Compute = std::function<void(std::int64_t first, std::int64_t count)>;
  virtual void divide(std::int64_t count, std::span<std::byte> values, const Compute& compute) = 0;
};

/// A model with its data: it says what to look up for a sample, and computes with the rows. The run
/// owns the tables, steps, schedules, saves and reports. Called from one thread unless stated
/// otherwise. The same job and seed give the same samples, ids and gradients, whatever the threads.
class Model {
 public:
  virtual ~Model() = default;

  virtual std::vector<ModelFeature> features() const = 0;

  /// Every [ids] of the job.
  virtual const std::vector<KeySpace>& key_spaces() const = 0;

  /// Returns the samples of a part as it is measured; kTraining excludes other parts that train
  /// too.
  virtual std::int64_t samples(Part part) const = 0;

  /// True if the part has something to measure. If not, its measures are NaN.
  virtual bool can_measure(Part part) const { return samples(part) > 0; }

  /// Returns the broken records in its data that were left out, as DataOptions allows.
  virtual LeftOut left_out() const { return {}; }

  /// Returns how many samples of a part have a user and an item that are also together in what
  /// trains: the model need only remember them.
  virtual std::int64_t repeated_pairs(Part /*part*/) const { return 0; }

  /// Returns hashes of the data that the model trains on, by kind: equal for equal data.
  virtual std::map<std::string, std::string> data_digests() const = 0;

  /// Prepares the samples of epoch 1, 2, ...; returns their number, which depends on data, seed and
  /// epoch.
  virtual std::int64_t begin_epoch(std::int32_t epoch) = 0;

  /// Fills in the ids of samples [first, first + count) of the epoch.
  virtual void fill(std::int64_t first, std::int64_t count, std::span<StepIds> ids) = 0;

  /// True if ids may be -1, which means no row: the activation is zeros and nothing is trained.
  virtual bool leaves_rows_out() const { return false; }

  /// True if the run may fill parts of a step at once, by `fill_part`. Requires: no feature has
  /// lists.
  virtual bool fills_parts() const { return false; }

  /// Does what `fill` does; ids: by feature, [count * width], overwritten. Thread-safe.
  virtual void fill_part(std::int64_t /*first*/, std::int64_t /*count*/,
                         std::span<std::int32_t* const> /*ids*/) const {}

  /// Returns the samples of a block, 1 to kBlockSamples: fewer if a sample is much work.
  virtual std::int64_t block_samples() const { return kBlockSamples; }

  /// Replaces the rows by the gradients of the loss, and returns the sum of the samples' losses.
  /// Blocks of one step run at once, on any threads.
  virtual double gradients(const Block& block) = 0;

  /// Returns the gradients of the model's own parameters that `gradients` computed for a block.
  /// Where several processes train together, each writes those of the others here, before
  /// `finish_step`. As many for every block; empty without such parameters.
  virtual std::span<float> dense_gradients(std::int64_t /*block*/) { return {}; }

  /// Called after all blocks of a step, to update the model's own parameters. `rate` is that of the
  /// tables' optimizer.
  virtual void finish_step(std::int64_t /*samples*/, double /*rate*/) {}

  /// Returns the measure that the sum of the losses of `samples` samples amounts to: {"rmse", ...},
  /// {"logloss", ...}.
  virtual Measure training_measure(double losses, std::int64_t samples) const = 0;

  /// Measures a part of the data with every metric of its ModelSpec.
  virtual Measures measure(Part part, Lookups& lookups) = 0;

  /// Returns measures of simple predictors on a part, for comparison with the model.
  virtual std::vector<Baseline> baselines(Part /*part*/) const { return {}; }

  /// Adds to `state` what a later run, `eval` or `predict` needs besides the tables. Tensors named
  /// "model.*" are trained parameters, which count in the run's digest. "vectors.T" is what
  /// `neighbors` compares instead of the rows of table T. `engine` is as it is being saved.
  virtual void save(const Embedding& /*engine*/, CallerState& /*state*/) const {}

  /// Takes its own parameters from what `save` saved. Requires: check_saved_parts has checked the
  /// parts. Throws DataLoss as saved_parameter.
  virtual void restore(const SavedParts& /*saved*/) {}
};

/// Where a job's files are, and what to do about their broken lines.
struct DataOptions {
  std::string root = ".";
  std::string cache;  ///< folder for parsed input, or "": none
  SkipBad skip_bad;   ///< broken lines to leave out and count before failing
};

/// The parts of a job file about its data and its model; makes the model. One class for each kind.
class ModelSpec {
 public:
  virtual ~ModelSpec() = default;

  /// Reads [data], [ids] and [split]; returns the names of the ids that tables may have rows for.
  /// Throws ValueError as TomlSection.
  virtual std::vector<std::string> read_data(TomlSection& root) = 0;

  /// Reads [model], and [features] if the kind has them. Requires: all other sections of the job
  /// are read.
  virtual void read_model(TomlSection& root, const Job& job) = 0;

  /// Returns the names of ids that are of use without a table of their own; others may be among
  /// them. Requires: the data are read.
  virtual std::vector<std::string> ids_without_tables() const { return {}; }

  /// Returns the names of what `Model::measure` gives, in its order.
  virtual std::vector<std::string> metrics() const = 0;

  /// True if the validation part trains too; a run then measures the test part, at its end.
  virtual bool trains_on_validation() const = 0;

  /// Reads the data. Job and spec outlive the model. Throws IoError, DataLoss or ValueError naming
  /// file, line and column.
  virtual std::unique_ptr<Model> make(const Job& job, const DataOptions& options) const = 0;

  /// Describes what checkpoints hold by id: the key spaces, and what `Model::save` saves for their
  /// rows.
  virtual PartsById parts_by_id() const = 0;

  /// Returns the table whose rows are compared most usefully: of items, or of words; "": none is.
  virtual std::string compared_table() const { return ""; }

  /// True if `make_predictor` makes one.
  virtual bool scores_rows() const { return true; }

  /// True if it makes one that ranks the rows of `compared_table` where it is given a number of
  /// them, and scores rows where it is not. Requires: they have keys.
  virtual bool ranks_if_asked(const Job& /*job*/) const { return false; }

  /// Makes a predictor that scores new rows with a run of the job, from what `Model::save` saved
  /// and without the run's data. Requires: check_saved_parts has checked the parts. Job, spec and
  /// parts must outlive it. Throws what Predictor::next throws, ValueError if the rows cannot be
  /// read, NotImplemented if the model has no scores for rows.
  virtual std::unique_ptr<Predictor> make_predictor(const SavedParts& saved,
                                                    const NewRows& rows) const = 0;
};

/// A kind that [model] may name, with its own file under apps/jobs/models/.
struct ModelKind {
  std::string name;
  std::unique_ptr<ModelSpec> (*make)();
};
const std::vector<ModelKind>& model_kinds();

}  // namespace embertable::jobs
