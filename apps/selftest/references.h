#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "embertable/optimizer.h"

namespace embertable::selftest {

/// One row and its slots while a reference steps it.
struct ReferenceRow {
  std::vector<double> row;
  std::vector<std::vector<double>> slots;  ///< [dim] each, [1] of a row-wise slot
};

/// What a step of a reference knows.
struct ReferenceStep {
  const Optimizer& optimizer;
  double learning_rate;
  double step;  ///< step of the table's optimizer, 1 for the first; also its step counter

  /// A parameter rounded to binary32, which is what the rule takes.
  double operator[](std::string_view parameter) const {
    return static_cast<float>(optimizer.parameter(parameter));
  }
};

/// A rule in real numbers, written from its formula and sharing nothing with the rule's code.
struct Reference {
  std::string_view rule;

  /// One step of one row with its summed gradient, between the clips and decays of all rules.
  void (*step)(const ReferenceStep& step, ReferenceRow& at, std::span<const double> gradient);

  /// What the rule is tried with besides its defaults.
  std::vector<Optimizer::Settings> settings;

  /// By step, from 1; null: always 0.05.
  double (*learning_rate)(double step) = nullptr;
};

/// Sorted by rule.
std::span<const Reference> references();

/// The reference of a rule, or null.
const Reference* find_reference(std::string_view rule);

}  // namespace embertable::selftest
