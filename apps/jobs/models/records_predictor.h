#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/jobs/data/data_set.h"
#include "apps/jobs/data/new_records.h"
#include "apps/jobs/models/records_model.h"
#include "apps/jobs/spec/predictor.h"
#include "embertable/batch.h"
#include "embertable/serving.h"

namespace embertable::jobs {

/// Scores new records: a line for each with its place in the file, the model's scores, and how many
/// of its keys have no row of their own.
class RecordsPredictor final : public Predictor {
 public:
  /// Requires: the model has no data and is as it was saved. Spec and parts are borrowed. Throws
  /// ValueError if items are asked for, as NewRecords, DataLoss for lists that are not saved.
  RecordsPredictor(const SavedParts& saved, const RecordsModelSpec& spec,
                   std::unique_ptr<RecordsModel> model, const NewRows& rows);

  std::vector<ScoreColumn> columns() const override;
  bool next(Executor& executor, ScoreSink& sink) override;
  const RowCounts& counts() const override { return reader_.counts(); }

 private:
  /// Inputs of the lookups of one work item. Memory is reused.
  struct BlockInput {
    std::vector<StepIds> ids;  ///< by feature, all of them lists
    Batch batch = {.features = FeatureIds()};
    LookupOutput found;
    std::vector<std::vector<float>> rows;  ///< by feature
    std::vector<float*> row_starts;
    std::exception_ptr error;
  };

  void restore_side_lists(const SavedParts& saved, const RecordsSpec& records);
  void look_up(std::int64_t first, std::int64_t count, BlockInput& input);
  void fill(const IdColumn& column, std::int64_t first, std::int64_t count, StepIds& out) const;
  void predict(std::int64_t block, std::int64_t count);
  void give(ScoreSink& sink);

  std::unique_ptr<RecordsModel> model_;
  std::vector<std::string> names_;  ///< names of the scores
  std::vector<ModelFeature> features_;
  std::int64_t batch_;
  NewRecords reader_;
  SkipBad skip_bad_;
  DataSet data_;                          ///< the data that were read last
  std::vector<const IdColumn*> columns_;  ///< by feature
  ServingEmbedding tables_;
  std::vector<BlockInput> inputs_;  ///< by block
  std::vector<float> predictions_;  ///< [batch]
  std::vector<float> scores_;       ///< [batch, names]
};

}  // namespace embertable::jobs
