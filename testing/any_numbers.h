#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "testing/rule_rows.h"

namespace embertable {

/// Numbers of every kind: a fifth are zeros of both signs, denormals, huge or tiny.
class AnyNumbers {
 public:
  explicit AnyNumbers(unsigned seed) : random_(seed) {}

  float operator()() {
    static constexpr float kSpecial[] = {0.0f,   -0.0f, 1e-45f, -3e-39f,  1e-30f,
                                         -1e19f, 1e30f, -3e38f, 0x1p-63f, 1.0f};
    if (random_() % 5 == 0) return kSpecial[random_() % std::size(kSpecial)];
    return static_cast<float>(random_()) * 0x1p-30f - 2;
  }
  std::vector<float> row(std::int32_t dim) {
    std::vector<float> row(dim);
    std::ranges::generate(row, std::ref(*this));
    return row;
  }

 private:
  std::mt19937 random_;
};

/// Whether slot s may hold negative numbers: those that add up squares or count may not.
inline bool is_signed_slot(const TestedRows& rows, std::int32_t s) {
  static const std::set<std::string> kSigned = {"linears", "m",       "mg",      "mom",
                                                "momenta", "weights", "benefits"};
  return kSigned.contains(rows.slot_name(s));
}

inline float any_slot_number(bool is_signed, AnyNumbers& numbers) {
  const float number = numbers();
  return is_signed ? number : std::abs(number);
}

/// Rows and slots of any numbers.
inline void fill(TestedRows& rows, AnyNumbers& numbers) {
  std::vector<bool> is_signed;
  for (std::int32_t s = 0; s < rows.num_slots(); ++s) is_signed.push_back(is_signed_slot(rows, s));
  for (std::int64_t r = 0; r < rows.rows(); ++r) {
    std::generate_n(rows.row(r), rows.dim(), std::ref(numbers));
    for (std::int32_t s = 0; s < rows.num_slots(); ++s) {
      const bool negative = is_signed[s];
      std::generate_n(rows.slot(s, r), rows.slot_width(s),
                      [&] { return any_slot_number(negative, numbers); });
    }
  }
}

inline std::vector<std::int64_t> first_rows(std::int64_t n) {
  std::vector<std::int64_t> rows(n);
  for (std::int64_t r = 0; r < n; ++r) rows[r] = r;
  return rows;
}

inline std::vector<std::vector<float>> gradients(AnyNumbers& numbers, std::int64_t n,
                                                 std::int32_t dim) {
  std::vector<std::vector<float>> all;
  for (std::int64_t i = 0; i < n; ++i) all.push_back(numbers.row(dim));
  return all;
}

/// The `dims` that a rule can step.
inline std::vector<std::int32_t> dims_of(const Rule& rule, std::vector<std::int32_t> dims) {
  std::erase_if(dims, [&](std::int32_t dim) {
    try {
      rule.check_dim(dim);
      return false;
    } catch (const ValueError&) {
      return true;
    }
  });
  return dims;
}

/// A rule with its defaults, and with the settings that its reference names.
inline std::vector<Optimizer> tested_optimizers(const Rule& rule) {
  std::vector<Optimizer> all = {Optimizer(rule.name(), rule.default_learning_rate())};
  for (const Optimizer::Settings& settings : references()[std::string(rule.name())].settings)
    all.emplace_back(rule.name(), rule.default_learning_rate(), settings);
  return all;
}

}  // namespace embertable
