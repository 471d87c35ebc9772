#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "embertable/export.h"

namespace embertable {

/// A constant rate, or a function that is asked once per application of gradients. A value. Two
/// dynamic rates are the same rate (and share a tag) if they are copies of one object.
class EMBERTABLE_API LearningRate {
 public:
  using Function = std::function<double()>;
  LearningRate(double constant) : constant_(constant) {}  // NOLINT: a number is a rate

  /// Throws ValueError for an empty function.
  static LearningRate dynamic(Function function);

  bool is_dynamic() const noexcept { return function_ != nullptr; }
  double constant() const noexcept { return constant_; }

  /// The constant, or what the function says now.
  double value() const { return function_ ? (*function_)() : constant_; }

  /// Equal constants, or one function.
  friend bool operator==(const LearningRate& a, const LearningRate& b) noexcept = default;

 private:
  double constant_ = 0;
  std::shared_ptr<const Function> function_;
};

/// What a gradient does to a row: the name of a rule (one of `optimizer_rules`) and its parameters.
/// A value to copy and compare; complete and checked once constructed.
class EMBERTABLE_API Optimizer {
 public:
  using Parameters = std::vector<std::pair<std::string, double>>;

  /// Parameters that are not named keep the rule's defaults. Throws ValueError for an unknown rule
  /// or parameter (with the nearest name), one that is given twice, and, naming rule, field, range
  /// and value, a value that is outside its range or leaves it when rounded to binary32. A constant
  /// rate must be finite and >= 0.
  explicit Optimizer(std::string_view rule, LearningRate learning_rate,
                     const Parameters& parameters = {});

  const std::string& rule() const noexcept { return rule_; }
  const LearningRate& learning_rate() const noexcept { return learning_rate_; }

  /// Every parameter of the rule but the rate, in the rule's order.
  const Parameters& parameters() const noexcept { return parameters_; }

  /// Throws KeyError for a parameter that the rule does not have.
  double parameter(std::string_view name) const;

  /// "name(learning_rate=0.1, epsilon=1e-08)", with every parameter; a dynamic rate is "dynamic".
  std::string to_string() const;

  friend bool operator==(const Optimizer& a, const Optimizer& b) noexcept = default;

 private:
  std::string rule_;
  LearningRate learning_rate_;
  Parameters parameters_;
};

/// The names that `Optimizer` knows, sorted.
EMBERTABLE_API std::vector<std::string> optimizer_rules();

}  // namespace embertable
