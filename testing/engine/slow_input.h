#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace embertable::slow {

using Ids = std::vector<std::int64_t>;

inline double to_float(double x) { return static_cast<double>(static_cast<float>(x)); }

enum class Combiner { kSum, kMean, kSqrtN };
enum class Kind { kDense, kSparse, kRagged };

/// What a gradient does to a row of a table, and what is around it.
struct Rule {
  std::string name = "sgd";  ///< or adagrad, adam, rowwise_adagrad, momentum, none
  double rate = 0.1;
  bool falling = false;  ///< the rate of step k is rate / k
  double initial_accumulator = 0.5;
  double epsilon = 0.125;
  double beta_1 = 0.9, beta_2 = 0.99, momentum = 0.75;
  bool nesterov = false, lazy = true, sum_inside_sqrt = true;
  bool accumulate = true;
  std::optional<double> clip_gradient_min, clip_gradient_max, clip_weight_min, clip_weight_max;
  double decay = 0;
  bool decay_by_rate = false;
};

struct TableSpec {
  std::int64_t rows = 1, dim = 1;
  Combiner combiner = Combiner::kSum;
  Rule rule;
  std::vector<float> first;  ///< [rows, dim]
  bool replicated = false;   ///< every host has all rows
};

struct FeatureSpec {
  std::size_t table = 0;
  Ids outputs;              ///< S
  bool configured = false;  ///< S is the configuration's; then `length` is void
  std::int64_t length = 0;
};

/// What one feature of one replica brings.
struct Input {
  Kind kind = Kind::kDense;
  Ids shape;   ///< shape of dense ids (empty: a vector) and of sparse ones
  Ids places;  ///< coordinates or row splits
  Ids ids;
  std::vector<double> weights;  ///< one for each id, or empty: all 1
};

struct Entry {
  std::int64_t id;
  double weight;
};

/// Entries by output row.
using Outputs = std::vector<std::vector<Entry>>;

inline std::int64_t product(const Ids& dims) {
  std::int64_t all = 1;
  for (const std::int64_t dim : dims) all *= dim;
  return all;
}

/// Turns what a feature brings into entries.
class Reading {
 public:
  Reading(const FeatureSpec& feature, const TableSpec& table, bool variable_batch)
      : feature_(feature), table_(table), variable_batch_(variable_batch) {}

  Outputs of(const Input& input) {
    outputs_.clear();
    if (input.kind == Kind::kDense) read_dense(input);
    if (input.kind == Kind::kSparse) read_sparse(input);
    if (input.kind == Kind::kRagged) read_ragged(input);
    return std::move(outputs_);
  }

 private:
  /// An id outside the table counts as absent.
  void add(const Input& input, std::size_t k, std::size_t output, bool weighted) {
    if (input.ids[k] < 0 || input.ids[k] >= table_.rows) return;
    const double weight = weighted && !input.weights.empty() ? to_float(input.weights[k]) : 1;
    outputs_[output].push_back({input.ids[k], weight});
  }

  void read_dense(const Input& input) {
    outputs_.resize(input.ids.size());
    for (std::size_t k = 0; k < input.ids.size(); ++k) add(input, k, k, false);
  }

  void read_sparse(const Input& input) {
    const std::size_t rank = input.shape.size();
    const bool sequence = rank == 2 && feature_.length > 0 && !feature_.configured;
    const std::size_t length = sequence ? feature_.length : 1;
    outputs_.resize(
        static_cast<std::size_t>(product({input.shape.begin(), input.shape.end() - 1})) * length);
    std::vector<std::pair<Ids, std::size_t>> order;  // row-major, equal places as they came
    for (std::size_t k = 0; k < input.ids.size(); ++k) {
      const auto at = input.places.begin() + static_cast<std::ptrdiff_t>(k * rank);
      order.emplace_back(Ids(at, at + static_cast<std::ptrdiff_t>(rank)), k);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [place, k] : order) {
      std::int64_t row = 0;
      for (std::size_t axis = 0; axis + 1 < rank; ++axis)
        row = row * input.shape[axis] + place[axis];
      const std::size_t column = place.back();
      if (!sequence) add(input, k, static_cast<std::size_t>(row), true);
      if (sequence && column < length)
        add(input, k, static_cast<std::size_t>(row) * length + column, true);
    }
  }

  /// Output rows that one row of ragged ids fills.
  std::int64_t outputs_of_a_row(std::int64_t rows) const {
    if (feature_.length > 0 && !feature_.configured) return feature_.length;
    const std::int64_t all = product(feature_.outputs);
    if (rows == all) return 1;
    if (variable_batch_ && rows <= feature_.outputs[0]) return all / feature_.outputs[0];
    return all / rows;
  }

  void read_ragged(const Input& input) {
    const auto rows = static_cast<std::int64_t>(input.places.size()) - 1;
    const std::int64_t each = outputs_of_a_row(rows);
    const bool sequence = feature_.length > 0 && !feature_.configured;
    outputs_.resize(rows * each);
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t begin = input.places[row];
      for (std::int64_t k = begin; k < input.places[row + 1]; ++k) {
        const std::size_t entry = k;
        const std::size_t output = row * each + k - begin;
        if (!sequence && each == 1) {
          add(input, entry, static_cast<std::size_t>(row), true);
        } else if (k - begin < each) {  // by S alone, without weights; by the length, with them
          add(input, entry, output, sequence);
        }
      }
    }
  }

  const FeatureSpec& feature_;
  const TableSpec& table_;
  bool variable_batch_;
  Outputs outputs_;
};

}  // namespace embertable::slow
