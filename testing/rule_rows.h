#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "embertable/errors.h"
#include "optimizer/callback_failure.h"
#include "optimizer/rule.h"
#include "testing/bounded_number.h"

namespace embertable {

/// For tests of rules: rows with their slots as a table keeps them, full-size slots in the row's
/// record and row-wise ones apart. Behind each stand a few signalling NaN that no rule may touch:
/// one that is read spoils a sum, and one that goes through any arithmetic comes back quiet.
class TestedRows {
 public:
  TestedRows(Optimizer optimizer, std::int64_t rows, std::int32_t dim)
      : optimizer_(std::move(optimizer)), rows_(rows), dim_(dim) {
    const Rule& rule = rule_of(optimizer_);
    std::int64_t record = dim + kGap;
    for (const RuleSlot& kind : rule.slots(optimizer_)) {
      slots_.push_back({.kind = kind});
      Slot& slot = slots_.back();
      slot.width = slot.kind.row_wise ? 1 : dim;
      slot.offset = slot.kind.row_wise ? 0 : std::exchange(record, record + dim + kGap);
      if (slot.kind.row_wise) slot.apart = values(rows * kRowWiseStride);
    }
    stride_ = record;
    records_ = values(rows * stride_);
    for (std::int64_t r = 0; r < rows; ++r) {
      std::fill_n(row(r), dim, 0.0f);
      for (std::int32_t s = 0; s < num_slots(); ++s) {
        std::fill_n(slot(s, r), slot_width(s), slots_[s].kind.initial_value);
      }
    }
  }

  const Optimizer& optimizer() const { return optimizer_; }
  std::int64_t rows() const { return rows_; }
  std::int32_t dim() const { return dim_; }
  std::int32_t num_slots() const { return static_cast<std::int32_t>(slots_.size()); }
  std::int32_t slot_width(std::int32_t s) const { return slots_[s].width; }
  std::string slot_name(std::int32_t s) const { return std::string(slots_[s].kind.name); }

  float* row(std::int64_t r) { return records_.data() + r * stride_; }
  float* slot(std::int32_t s, std::int64_t r) {
    Slot& slot = slots_[s];
    return slot.kind.row_wise ? slot.apart.data() + r * kRowWiseStride : row(r) + slot.offset;
  }

  std::vector<float> row_values(std::int64_t r) { return {row(r), row(r) + dim_}; }
  std::vector<float> slot_values(std::int32_t s, std::int64_t r) {
    return {slot(s, r), slot(s, r) + slot_width(s)};
  }

  RowBlock block() {
    RowBlock block = {
        .row = row(0), .stride = stride_, .slots = num_slots(), .dim = dim_, .rows = rows_};
    for (std::int32_t s = 0; s < num_slots(); ++s) {
      block.slot[s] = slot(s, 0);
      block.slot_stride[s] = slots_[s].kind.row_wise ? kRowWiseStride : stride_;
    }
    return block;
  }

  StepScalars begin_step(const StepInputs& inputs) const {
    return rule_of(optimizer_).begin_step(optimizer_, inputs);
  }
  StepScalars begin_step(float learning_rate, std::int64_t step) const {
    return begin_step(inputs(learning_rate, step));
  }

  /// Steps these rows, each named once, in tiles. Gradient i belongs to row which[i].
  void update(SimdLevel level, const std::vector<std::int64_t>& which,
              const std::vector<std::vector<float>>& gradients, float learning_rate,
              std::int64_t step) {
    update(level, which, gradients, inputs(learning_rate, step));
  }
  void update(SimdLevel level, const std::vector<std::int64_t>& which,
              const std::vector<std::vector<float>>& gradients, const StepInputs& inputs) {
    CallbackFailure failure;  // set by a caller's rule that throws; a test's does not
    StepScalars scalars = begin_step(inputs);
    scalars.failure = &failure;
    for (std::size_t first = 0; first < which.size(); first += RowTile::kRows) {
      float* rows[RowTile::kRows];
      float* slots[kMaxSlots][RowTile::kRows];
      const float* g[RowTile::kRows];
      RowTile tile = {.row = rows, .slot = {}, .gradient = g, .rows = 0, .dim = dim_};
      for (int s = 0; s < num_slots(); ++s) tile.slot[s] = slots[s];
      for (;
           tile.rows < RowTile::kRows && first + static_cast<std::size_t>(tile.rows) < which.size();
           ++tile.rows) {
        const std::size_t i = first + static_cast<std::size_t>(tile.rows);
        rows[tile.rows] = row(which[i]);
        for (std::int32_t s = 0; s < num_slots(); ++s) slots[s][tile.rows] = slot(s, which[i]);
        g[tile.rows] = gradients[i].data();
      }
      rule_of(optimizer_).update_rows(level, optimizer_)(tile, scalars);
    }
  }

  /// All memory, what lies between the rows included, as bits; every NaN is one.
  std::vector<std::uint32_t> bits() const {
    std::vector<float> all = records_;
    for (const Slot& slot : slots_) all.insert(all.end(), slot.apart.begin(), slot.apart.end());
    std::vector<std::uint32_t> bits(all.size());
    std::memcpy(bits.data(), all.data(), all.size() * sizeof(float));
    for (std::uint32_t& x : bits) {
      if ((x & 0x7fffffffu) > 0x7f800000u) x = 0x7fc00000u;
    }
    return bits;
  }

  /// True if the floats between the rows are what they were.
  bool gaps_are_intact() const {
    const auto is_gap = [](const float* at, std::int64_t n) {
      return std::all_of(at, at + n, [](float x) {
        return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(kGapValue);
      });
    };
    for (std::int64_t r = 0; r < rows_; ++r) {
      const float* const record = records_.data() + r * stride_;
      // The row and each full-size slot are followed by a gap.
      for (std::int64_t at = dim_; at < stride_; at += dim_ + kGap) {
        if (!is_gap(record + at, kGap)) return false;
      }
      for (const Slot& slot : slots_) {
        const std::int64_t apart = r * kRowWiseStride;
        if (slot.kind.row_wise && !is_gap(slot.apart.data() + apart + 1, kRowWiseStride - 1))
          return false;
      }
    }
    return true;
  }

 private:
  struct Slot {
    RuleSlot kind;
    std::int32_t width = 0;
    std::int64_t offset = 0;   ///< position of a full-size slot in the record
    std::vector<float> apart;  ///< a row-wise slot
  };
  static constexpr std::int64_t kGap = 3;  ///< odd strides: rows lie on no border
  static constexpr std::int64_t kRowWiseStride = 2;
  static constexpr float kGapValue = std::bit_cast<float>(0x7f812345u);

  static StepInputs inputs(float learning_rate, std::int64_t step) {
    return {.learning_rate = learning_rate, .step = step, .step_counter = static_cast<float>(step)};
  }

  static std::vector<float> values(std::int64_t n) { return std::vector<float>(n, kGapValue); }

  Optimizer optimizer_;
  std::int64_t rows_;
  std::int32_t dim_;
  std::int64_t stride_ = 0;
  std::vector<Slot> slots_;
  std::vector<float> records_;
};

/// What an optimizer's constructor says of parameters or options that it refuses; else "".
inline std::string refusal(std::string_view rule, const Optimizer::Settings& parameters,
                           const OptimizerOptions& options = {}) {
  try {
    Optimizer(rule, 0.1, parameters, options);
    return "";
  } catch (const ValueError& error) {
    return error.what();
  }
}

/// A parameter as it counts, in binary32.
inline double binary32(const Optimizer& optimizer, std::string_view parameter) {
  return static_cast<float>(optimizer.parameter(parameter));
}

/// One row, stepped at every usable level, for steps worked by hand.
class TestedRow {
 public:
  TestedRow(const Optimizer& optimizer, const std::vector<float>& row) {
    for (const SimdLevel level : usable_levels()) {
      at_.emplace_back(level, TestedRows(optimizer, 1, static_cast<std::int32_t>(row.size())));
      std::ranges::copy(row, at_.back().second.row(0));
    }
  }

  /// The row after the step; empty if two levels differ.
  std::vector<float> step(float learning_rate, const std::vector<float>& gradient) {
    ++steps_;
    for (auto& [level, rows] : at_) rows.update(level, {0}, {gradient}, learning_rate, steps_);
    return agreed([](TestedRows& rows) { return rows.row_values(0); });
  }

  std::vector<float> slot(std::int32_t s) {
    return agreed([s](TestedRows& rows) { return rows.slot_values(s, 0); });
  }

 private:
  template <class Read>
  std::vector<float> agreed(const Read& read) {
    for (auto& [level, rows] : at_) {
      if (rows.bits() != at_.front().second.bits()) return {};
    }
    return read(at_.front().second);
  }

  std::vector<std::pair<SimdLevel, TestedRows>> at_;
  std::int64_t steps_ = 0;
};

}  // namespace embertable
