#include "apps/jobs/models/records_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "apps/jobs/models/records_predictor.h"
#include "apps/jobs/spec/state_tensors.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

/// Throws ValueError if nothing can be learned, because all labels are equal.
void check_labels_differ(const std::string& column, const Samples& samples) {
  if (samples.size() == 0) return;
  for (std::int64_t s = 1; s < samples.size(); ++s)
    if (samples.label(s) != samples.label(0)) return;
  throw ValueError(fmt::format("the labels of column '{}' must differ, got {} in all {} records",
                               column, samples.label(0), samples.size()));
}

}  // namespace

std::vector<std::string> RecordsModelSpec::read_data(TomlSection& root) {
  records_ = read_records_spec(root);
  return names_of(records_.ids);
}

std::vector<std::string> RecordsModelSpec::ids_without_tables() const {
  std::vector<std::string> names = records_.split.by;
  for (const IdsSpec& ids : records_.ids) {
    if (ids.joined()) names.push_back(ids.of);
  }
  return names;
}

void RecordsModelSpec::read_features(TomlSection& root, const Job& job) {
  TomlSection all = root.section("features", true);
  for (const std::string& name : all.keys()) {
    TomlSection section = all.section(name);
    features_.push_back({name, section.choice("table", names_of(job.tables), name)});
    section.finish();
  }
  if (!features_.empty()) return;
  for (const TableSpec& table : job.tables) features_.push_back({table.name, table.name});
}

std::int32_t RecordsModelSpec::dim_of(const Job& job, const std::string& feature) const {
  return named(job.tables, named(features_, feature).table).dim;
}

bool RecordsModelSpec::is_one_id(const Job& job, const std::string& feature) const {
  const TableSpec& table = named(job.tables, named(features_, feature).table);
  return named(records_.ids, table.ids).one_a_sample();
}

void RecordsModelSpec::check_roles(const TomlSection& section, std::string_view key,
                                   std::vector<std::string> roles) const {
  std::sort(roles.begin(), roles.end());
  const auto twice = std::adjacent_find(roles.begin(), roles.end());
  if (twice != roles.end())
    section.refuse(key, fmt::format("must use each feature once, got \"{}\" twice", *twice));
  for (const FeatureSpec& feature : features_) {
    if (!std::binary_search(roles.begin(), roles.end(), feature.name)) {
      section.refuse(key, fmt::format("must use every feature, got none for \"{}\"", feature.name));
    }
  }
}

std::unique_ptr<Model> RecordsModelSpec::make(const Job& job, const DataOptions& options) const {
  DataSet data = jobs::read_data(records_, options);
  check_labels_differ(records_.data.label, data.samples);
  return make_of(job, std::move(data));
}

PartsById::Lists side_lists(const IdsSpec& ids) {
  return {.name = "lists." + ids.name, .of = ids.of, .ids = ids.name};
}

PartsById RecordsModelSpec::parts_by_id() const {
  PartsById parts;
  for (const IdsSpec& ids : records_.ids) {
    parts.keys.push_back({ids.name, ids.rules.map_kind(), ids.rules.shared_rows()});
    if (ids.joined()) parts.lists.push_back(side_lists(ids));
  }
  return parts;
}

std::unique_ptr<Predictor> RecordsModelSpec::make_predictor(const SavedParts& saved,
                                                            const NewRows& rows) const {
  if (rows.items)
    throw ValueError(
        fmt::format("a number of items must be for a model that ranks them, got {} "
                    "for a model {}",
                    *rows.items, saved.job.model_kind));
  check_parameters(saved);
  std::unique_ptr<RecordsModel> model = make_of(saved.job, make_columns(records_));
  model->restore(saved);
  return std::make_unique<RecordsPredictor>(saved, *this, std::move(model), rows);
}

RecordsModel::RecordsModel(const Job& job, const RecordsModelSpec& spec, DataSet data)
    : seed_(job.seed), data_(std::move(data)) {
  for (const FeatureSpec& feature : spec.features()) {
    columns_.push_back(&data_.column(named(job.tables, feature.table).ids));
    features_.push_back({.name = feature.name,
                         .table = feature.table,
                         .width = columns_.back()->width,
                         .lists = columns_.back()->cell < 0});
  }
  for (const IdsSpec& ids : spec.records().ids) {
    if (ids.joined()) joined_.push_back(side_lists(ids));
  }
  for (const IdColumn& column : data_.columns)
    key_spaces_.push_back({column.name, column.keys.id_map(), column.lists.without, column.empty});
  for (const Part part : {Part::kTest, Part::kValidation})
    parts_[static_cast<std::size_t>(part)] = data_.select({part});
  parts_[static_cast<std::size_t>(Part::kTraining)] =
      spec.trains_on_validation() ? data_.select({Part::kTraining, Part::kValidation})
                                  : data_.select({Part::kTraining});
}

std::int64_t RecordsModel::samples(Part part) const {
  return std::count(data_.part.begin(), data_.part.end(), part);
}

std::map<std::string, std::string> RecordsModel::data_digests() const {
  return jobs::data_digests(data_);
}

std::int64_t RecordsModel::begin_epoch(std::int32_t epoch) {
  shuffle_epoch(samples_of(Part::kTraining), seed_, epoch, order_);
  labels_.resize(order_.size());
  for (std::int64_t s = 0; s < order_.size(); ++s) labels_[s] = order_.label(s);
  return order_.size();
}

void RecordsModel::fill(std::int64_t first, std::int64_t count, std::span<StepIds> ids) {
  fill(order_, first, count, ids);
}

void RecordsModel::fill(const Samples& samples, std::int64_t first, std::int64_t count,
                        std::span<StepIds> ids) const {
  for (std::size_t f = 0; f < columns_.size(); ++f) {
    const IdColumn& column = *columns_[f];
    StepIds& to = ids[f];
    const std::int32_t* sample = samples.row(first);
    if (column.cell >= 0) {
      to.ids.resize(count * column.width);
      for (std::int32_t* id = to.ids.data(); id != to.ids.data() + to.ids.size();
           id += column.width) {
        std::copy_n(sample + column.cell, column.width, id);
        sample += samples.stride;
      }
      continue;
    }
    to.ids.clear();
    to.splits.assign(1, 0);
    for (std::int64_t s = 0; s < count; ++s, sample += samples.stride) {
      const auto list = static_cast<std::size_t>(sample[column.owner]);
      to.ids.insert(to.ids.end(), column.lists.ids.begin() + column.lists.splits[list],
                    column.lists.ids.begin() + column.lists.splits[list + 1]);
      to.splits.push_back(static_cast<std::int64_t>(to.ids.size()));
    }
  }
}

void RecordsModel::save(const Embedding& /*engine*/, CallerState& state) const {
  for (const PartsById::Lists& saved : joined_) {
    const IdLists& lists = data_.column(saved.ids).lists;
    save_lists(saved.name, lists.splits, lists.ids, state);
  }
}

Measures RecordsModel::measure(Part part, Lookups& lookups) {
  // For kTraining only the training part is measured, even if others train too.
  const Samples chosen = part == Part::kTraining ? data_.select({part}) : Samples();
  const Samples& samples = part == Part::kTraining ? chosen : samples_of(part);
  std::vector<float> predictions(samples.size());
  lookups.for_each(
      samples.size(),
      [&](std::int64_t first, std::int64_t count, std::span<StepIds> ids) {
        fill(samples, first, count, ids);
      },
      [&](const Block& block) { predict(block, samples, predictions.data() + block.first); },
      [](std::int64_t, std::int64_t) {});
  lookups.complete(samples.size(), std::as_writable_bytes(std::span(predictions)));
  std::vector<float> labels;
  for (std::int64_t s = 0; s < samples.size(); ++s) labels.push_back(samples.label(s));
  return judge(predictions, labels);
}

}  // namespace embertable::jobs
