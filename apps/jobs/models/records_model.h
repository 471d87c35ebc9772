#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/jobs/data/data_set.h"
#include "apps/jobs/data/records_spec.h"
#include "apps/jobs/spec/job.h"
#include "apps/jobs/spec/model.h"

namespace embertable::jobs {

/// Section [features.NAME]: ids that are looked up in a table. Without this section every table is
/// a feature of its name.
struct FeatureSpec {
  std::string name;
  std::string table;
};

class RecordsModel;

/// Sections of a job file for a model of records: [data], [ids], [split] and [features].
class RecordsModelSpec : public ModelSpec {
 public:
  std::vector<std::string> read_data(TomlSection& root) override;
  std::vector<std::string> ids_without_tables() const override;
  bool trains_on_validation() const override { return records_.split.train_on_validation; }
  std::unique_ptr<Model> make(const Job& job, const DataOptions& options) const override;
  PartsById parts_by_id() const override;
  std::unique_ptr<Predictor> make_predictor(const SavedParts& saved,
                                            const NewRows& rows) const override;
  const RecordsSpec& records() const noexcept { return records_; }
  const std::vector<FeatureSpec>& features() const noexcept { return features_; }

 protected:
  /// Makes the model for these data. Data without samples mean that it is about to be restored.
  virtual std::unique_ptr<RecordsModel> make_of(const Job& job, DataSet data) const = 0;

  /// Checks the model's own parameters, before memory is taken for a model of their size. Throws
  /// DataLoss as saved_parameter.
  virtual void check_parameters(const SavedParts& /*saved*/) const {}

  void read_features(TomlSection& root, const Job& job);

  /// Requires every label to be 0 or 1.
  void want_binary_labels() noexcept { records_.data.binary = true; }

  /// Returns the dim of a feature's table.
  std::int32_t dim_of(const Job& job, const std::string& feature) const;

  /// True if each sample has one id of the feature, and no list.
  bool is_one_id(const Job& job, const std::string& feature) const;

  /// Refuses `key` of a section if one of these features is named twice or does not exist.
  void check_roles(const TomlSection& section, std::string_view key,
                   std::vector<std::string> roles) const;

 private:
  RecordsSpec records_;
  std::vector<FeatureSpec> features_;
};

/// Lists of ids from a side table, as checkpoints have them.
PartsById::Lists side_lists(const IdsSpec& ids);

/// A model that predicts the label of a record. Derived classes provide the prediction, its
/// gradients, its metrics and its scores.
class RecordsModel : public Model {
 public:
  /// Maximum number of records that are scored at once, whatever the batch of the job: a saved job
  /// may name any. Data without samples are for scoring alone.
  static constexpr std::int64_t kMostScored = 64 * kBlockSamples;

  RecordsModel(const Job& job, const RecordsModelSpec& spec, DataSet data);

  std::vector<ModelFeature> features() const override { return features_; }
  const std::vector<KeySpace>& key_spaces() const override { return key_spaces_; }
  std::int64_t samples(Part part) const override;
  LeftOut left_out() const override { return data_.left_out; }
  std::map<std::string, std::string> data_digests() const override;
  std::int64_t begin_epoch(std::int32_t epoch) override;
  void fill(std::int64_t first, std::int64_t count, std::span<StepIds> ids) override;
  Measures measure(Part part, Lookups& lookups) override;

  /// Saves the lists of ids from side tables. Models that save more call it.
  void save(const Embedding& engine, CallerState& state) const override;

  /// Sets out[s] to the prediction for sample s of the block, which is sample block.first + s of
  /// `samples`. Thread-safe.
  virtual void predict(const Block& block, const Samples& samples, float* out) const = 0;

  /// Returns the names of the values that a user gets for a prediction: {"probability", ...}.
  virtual std::vector<std::string> score_names() const = 0;

  /// Writes the values of each prediction to out [predictions, names].
  virtual void scores(std::span<const float> predictions, std::span<float> out) const = 0;

 protected:
  /// Measures all predictions for a part, in the order of its samples.
  virtual Measures judge(std::span<const float> predictions,
                         std::span<const float> labels) const = 0;

  const DataSet& data() const noexcept { return data_; }

  /// Returns the samples of a part; for kTraining those that train, which may be two parts.
  const Samples& samples_of(Part part) const noexcept {
    return parts_[static_cast<std::size_t>(part)];
  }

  /// The samples of the epoch, in its order, and their labels.
  const Samples& epoch_samples() const noexcept { return order_; }
  std::span<const float> labels() const noexcept { return labels_; }

 private:
  void fill(const Samples& samples, std::int64_t first, std::int64_t count,
            std::span<StepIds> ids) const;
  std::uint64_t seed_;
  DataSet data_;
  std::vector<ModelFeature> features_;
  std::vector<const IdColumn*> columns_;  ///< by feature
  std::vector<KeySpace> key_spaces_;
  std::vector<PartsById::Lists> joined_;  ///< lists of the ids from side tables
  Samples parts_[3];                      ///< samples by Part; kTraining: what trains
  Samples order_;                         ///< samples in the order of the running epoch
  std::vector<float> labels_;             ///< labels of order_
};

}  // namespace embertable::jobs
