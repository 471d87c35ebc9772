#include "bench/scalar_model.h"

#include <cmath>
#include <map>
#include <vector>

namespace embertable::bench {
namespace {

constexpr std::int32_t kSamplesOfPiece = 4096;

void add_to(std::vector<float>& sum, std::span<const float> term) {
  for (std::size_t d = 0; d < sum.size(); ++d) sum[d] += term[d];
}

float mean_of_squares(std::span<const float> x) {
  float lanes[16] = {};
  for (std::size_t d = 0; d < x.size(); ++d) lanes[d % 16] += x[d] * x[d];
  for (std::size_t half = 8; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0] / static_cast<float>(x.size());
}

}  // namespace

ScalarModel::ScalarModel(const Workload& workload)
    : dim_(workload.dim), samples_(workload.samples) {
  const auto rows = static_cast<std::size_t>(workload.rows);
  for (std::int32_t t = 0; t < workload.tables; ++t) {
    Table& table = tables_.emplace_back();
    table.rows.resize(rows * dim_);
    table.slots.assign(rows, kInitialSlot);
    for (std::size_t r = 0; r < rows; ++r) {
      fill_initial_row(t, static_cast<std::int64_t>(r),
                       std::span(table.rows).subspan(r * dim_, dim_));
    }
  }
}

std::span<const float> ScalarModel::row(std::int32_t table, std::int64_t row) const {
  const Table& from = tables_[table];
  return std::span(from.rows).subspan(static_cast<std::size_t>(row) * dim_, dim_);
}

float ScalarModel::slot(std::int32_t table, std::int64_t row) const {
  return tables_[table].slots[row];
}

std::vector<float> ScalarModel::activation(const WorkloadBatch& batch, std::int32_t table,
                                           std::int32_t sample) const {
  const auto ids = batch.table_ids(static_cast<std::size_t>(table));
  const auto splits = batch.table_splits(static_cast<std::size_t>(table));
  const auto begin = static_cast<std::size_t>(splits[sample]);
  const auto end = static_cast<std::size_t>(splits[sample + 1]);
  std::vector<float> sum(dim_, 0.0f);
  for (std::size_t i = begin; i < end; ++i) {
    const std::span<const float> term = row(table, ids[i]);
    if (i == begin) {
      sum.assign(term.begin(), term.end());
    } else {
      add_to(sum, term);
    }
  }
  return sum;
}

std::vector<float> ScalarModel::row_gradient(const std::vector<std::int32_t>& samples,
                                             std::int32_t table, std::span<const float> gradients,
                                             const Lane& lane) const {
  std::vector<float> total;
  std::vector<float> piece;
  const auto close_piece = [&] {
    if (total.empty()) {
      total = piece;
    } else {
      add_to(total, piece);
    }
    piece.clear();
  };
  for (std::size_t k = 0; k < samples.size(); ++k) {
    const std::span<const float> term = gradients.subspan(lane.offset(table, samples[k]), dim_);
    if (k > 0 && samples[k] / kSamplesOfPiece != samples[k - 1] / kSamplesOfPiece) close_piece();
    if (piece.empty()) {
      piece.assign(term.begin(), term.end());
    } else {
      add_to(piece, term);
    }
  }
  close_piece();
  return total;
}

void ScalarModel::apply(Table& table, std::size_t row, std::span<const float> gradient) const {
  float& slot = table.slots[row];
  slot += mean_of_squares(gradient);
  const float step = kLearningRate / (std::sqrt(slot) + kEpsilon);
  for (std::size_t d = 0; d < dim_; ++d) table.rows[row * dim_ + d] -= step * gradient[d];
}

void ScalarModel::train(const WorkloadBatch& batch, std::span<const float> gradients,
                        const Lane& lane) {
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    const auto ids = batch.table_ids(t);
    const auto splits = batch.table_splits(t);
    std::map<std::int64_t, std::vector<std::int32_t>> samples_of_row;
    for (std::int32_t s = 0; s < samples_; ++s) {
      const auto index = static_cast<std::size_t>(s);
      for (std::int64_t i = splits[index]; i < splits[index + 1]; ++i) {
        samples_of_row[ids[i]].push_back(s);
      }
    }
    for (const auto& [row, samples] : samples_of_row) {
      apply(tables_[t], static_cast<std::size_t>(row),
            row_gradient(samples, static_cast<std::int32_t>(t), gradients, lane));
    }
  }
}

}  // namespace embertable::bench
