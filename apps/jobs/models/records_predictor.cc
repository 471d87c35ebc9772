#include "apps/jobs/models/records_predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "apps/jobs/spec/named.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

/// Returns features for the saved tables; lists give one row each.
Nested<FeatureConfig> feature_configs(const SavedParts& saved,
                                      const std::vector<ModelFeature>& features) {
  std::map<std::string, TablePtr> tables;
  for (const TableSpec& table : saved.job.tables) {
    const std::int64_t rows = saved.ids.at(table.ids).num_rows();
    tables[table.name] = make_table({.vocabulary_size = std::max<std::int64_t>(1, rows),
                                     .dim = table.dim,
                                     .combiner = table.combiner,
                                     .name = table.name});
  }
  std::vector<FeatureConfig> configs;
  for (const ModelFeature& feature : features)
    configs.push_back({.table = tables.at(feature.table), .name = feature.name});
  return {Structure::list(std::vector<Structure>(features.size())), std::move(configs)};
}

}  // namespace

RecordsPredictor::RecordsPredictor(const SavedParts& saved, const RecordsModelSpec& spec,
                                   std::unique_ptr<RecordsModel> model, const NewRows& rows)
    : model_(std::move(model)),
      names_(model_->score_names()),
      features_(model_->features()),
      batch_(std::min(saved.job.schedule.batch, RecordsModel::kMostScored)),
      reader_(spec.records(), saved.ids, rows),
      skip_bad_(rows.skip_bad),
      data_(make_columns(spec.records())),
      tables_(saved.serve(feature_configs(saved, features_))) {
  restore_side_lists(saved, spec.records());
  for (const ModelFeature& feature : features_)
    columns_.push_back(&data_.column(named(saved.job.tables, feature.table).ids));
  const std::int64_t block = model_->block_samples();
  inputs_.resize((batch_ + block - 1) / block);
  const Structure structure = Structure::list(std::vector<Structure>(features_.size()));
  for (BlockInput& input : inputs_) {
    input.ids.resize(features_.size());
    input.batch.features = Nested<FeatureIds>(structure, std::vector<FeatureIds>(features_.size()));
    input.rows.resize(features_.size());
    input.row_starts.resize(features_.size());
  }
}

void RecordsPredictor::restore_side_lists(const SavedParts& saved, const RecordsSpec& records) {
  for (std::size_t i = 0; i < records.ids.size(); ++i) {
    const IdsSpec& spec = records.ids[i];
    if (!spec.joined()) continue;
    IdColumn& column = data_.columns[i];
    column.owner = data_.column(spec.of).cell;
    SavedLists lists = saved_lists(saved, side_lists(spec));
    column.lists.splits = std::move(lists.splits);
    column.lists.ids = std::move(lists.ids);
  }
}

std::vector<ScoreColumn> RecordsPredictor::columns() const {
  std::vector<ScoreColumn> columns = {{"line"}};
  for (const std::string& name : reader_.copied_columns()) columns.push_back({name});
  for (const std::string& name : names_) columns.push_back({.name = name, .score = true});
  columns.push_back({"unseen"});
  return columns;
}

bool RecordsPredictor::next(Executor& executor, ScoreSink& sink) {
  const std::int64_t count = reader_.read(batch_, data_);
  if (count == 0) {
    check_share(skip_bad_, reader_.left_out());
    return false;
  }
  predictions_.resize(count);
  const std::int64_t block = model_->block_samples();
  const std::int64_t blocks = (count + block - 1) / block;
  executor.run(blocks, [&](const WorkItem& item) {
    std::exception_ptr& error = inputs_[item.index].error;
    try {
      predict(item.index, count);
    } catch (...) {
      error = std::current_exception();
    }
  });
  for (const BlockInput& input : inputs_) {
    if (input.error) std::rethrow_exception(input.error);
  }
  give(sink);
  return true;
}

/// Predicts one block of the `count` records that were read.
void RecordsPredictor::predict(std::int64_t block, std::int64_t count) {
  const std::int64_t first = block * model_->block_samples();
  const std::int64_t samples = std::min(model_->block_samples(), count - first);
  BlockInput& input = inputs_[block];
  look_up(first, samples, input);
  model_->predict({.index = block,
                   .first = first,
                   .samples = samples,
                   .of_step = count,
                   .rows = input.row_starts},
                  data_.samples, predictions_.data() + first);
}

void RecordsPredictor::look_up(std::int64_t first, std::int64_t count, BlockInput& input) {
  for (std::size_t f = 0; f < features_.size(); ++f) {
    StepIds& ids = input.ids[f];
    fill(*columns_[f], first, count, ids);
    input.batch.features[static_cast<std::int64_t>(f)] =
        RaggedIds{.row_splits = ids.splits, .values = ids.ids};
  }
  tables_.embedding_lookup(input.batch, input.found);
  for (std::size_t f = 0; f < features_.size(); ++f) {
    const std::span<const float> values = input.found(static_cast<std::int64_t>(f)).values;
    input.rows[f].assign(values.begin(), values.end());
    input.row_starts[f] = input.rows[f].data();
  }
}

/// Makes each key a list of its own, which is empty without a row: its activation is zeros.
void RecordsPredictor::fill(const IdColumn& column, std::int64_t first, std::int64_t count,
                            StepIds& out) const {
  out.ids.clear();
  out.splits.assign(1, 0);
  for (std::int64_t s = first; s < first + count; ++s) {
    const std::int32_t* const sample = data_.samples.row(s);
    if (column.cell >= 0) {
      for (std::int32_t i = 0; i < column.width; ++i) {
        if (sample[column.cell + i] >= 0) out.ids.push_back(sample[column.cell + i]);
        out.splits.push_back(std::ssize(out.ids));
      }
      continue;
    }
    if (const std::int32_t list = sample[column.owner]; list >= 0) {
      out.ids.insert(out.ids.end(), column.lists.ids.begin() + column.lists.splits[list],
                     column.lists.ids.begin() + column.lists.splits[list + 1]);
    }
    out.splits.push_back(std::ssize(out.ids));
  }
}

void RecordsPredictor::give(ScoreSink& sink) {
  scores_.resize(predictions_.size() * names_.size());
  model_->scores(predictions_, scores_);
  const std::size_t copied = reader_.copied_columns().size();
  std::vector<ScoreCell> cells(names_.size() + copied + 2);
  for (std::size_t s = 0; s < predictions_.size(); ++s) {
    cells.front() = reader_.lines()[s];
    for (std::size_t i = 0; i < copied; ++i)
      cells[i + 1] = reader_.copied(static_cast<std::int64_t>(s), i);
    for (std::size_t i = 0; i < names_.size(); ++i)
      cells[copied + i + 1] = scores_[s * names_.size() + i];
    cells.back() = reader_.unseen()[s];
    sink.line(cells);
  }
}

}  // namespace embertable::jobs
