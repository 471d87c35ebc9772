#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "embertable/embedding.h"
#include "kernels/level.h"

namespace embertable::selftest {

/// Engines that are made while it lives use this level. One at a time, and no other thread makes
/// engines meanwhile: it is the environment variable EMBERTABLE_SIMD.
class ForcedLevel {
 public:
  explicit ForcedLevel(SimdLevel level);
  ~ForcedLevel();
  ForcedLevel(const ForcedLevel&) = delete;
  ForcedLevel& operator=(const ForcedLevel&) = delete;

 private:
  std::optional<std::string> before_;
};

/// What a step is given from outside.
struct Rates {
  double learning_rate = 0.05;
  double step_counter = 1;
};

/// An engine with one table and one feature, combiner sum, one id a sample.
class Table {
 public:
  struct Shape {
    std::int64_t rows = 0;
    std::int32_t dim = 0;
    std::int32_t samples = 0;  ///< samples of a step
  };

  /// `settings` and `options` as `Optimizer` has them; with `counted`, the step counter is that of
  /// the rates. Rows start uniform in [-1, 1). Throws as the engine.
  Table(const std::string& rule, const Optimizer::Settings& settings, OptimizerOptions options,
        bool counted, const Shape& shape);

  const Optimizer& optimizer() const { return *optimizer_; }
  const Shape& shape() const { return shape_; }

  /// "parameters", then the slots.
  std::int32_t variables() const { return static_cast<std::int32_t>(widths_.size()); }
  const std::string& name(std::int32_t variable) const;
  std::int32_t width(std::int32_t variable) const;  ///< floats a row

  /// [rows, width] of a variable.
  std::vector<float> read(std::int32_t variable) const;
  void assign(std::int32_t variable, std::int64_t row, std::span<const float> values);

  /// One training step. ids: [samples]; gradients: [samples, dim].
  void step(const Rates& rates, const std::vector<std::int64_t>& ids,
            const std::vector<float>& gradients);

 private:
  std::string path(std::int32_t variable) const;

  Shape shape_;
  std::shared_ptr<Rates> rates_;
  std::optional<Optimizer> optimizer_;
  std::vector<std::string> names_;
  std::vector<std::int32_t> widths_;
  std::optional<Embedding> engine_;
};

}  // namespace embertable::selftest
