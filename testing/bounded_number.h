#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "embertable/optimizer.h"

namespace embertable {

/// For references of rules: a number, and how far the same formula in binary32 may be from it when
/// each of its operations rounds once. Where terms cancel, the bound keeps their size. Infinite
/// where binary32 may have left its range, or divides by what may be zero: nothing is known from
/// there on.
class Bounded {
 public:
  Bounded(double value = 0)  // NOLINT: a number without error
      : value_(value), error_(std::isfinite(value) ? 0 : kUnknown) {}

  double value() const { return value_; }
  double error() const { return error_; }
  bool is_known() const { return std::isfinite(value_) && std::isfinite(error_); }

  friend Bounded operator+(const Bounded& a, const Bounded& b) {
    return once(a.value_ + b.value_, a.error_ + b.error_);
  }
  friend Bounded operator-(const Bounded& a, const Bounded& b) {
    return once(a.value_ - b.value_, a.error_ + b.error_);
  }
  friend Bounded operator-(const Bounded& a) { return exact(-a.value_, a.error_); }
  friend Bounded operator*(const Bounded& a, const Bounded& b) {
    return once(a.value_ * b.value_, std::abs(a.value_) * b.error_ + std::abs(b.value_) * a.error_ +
                                         a.error_ * b.error_);
  }
  friend Bounded operator/(const Bounded& a, const Bounded& b) {
    const double quotient = a.value_ / b.value_;
    const double least = std::abs(b.value_) - b.error_;
    return once(quotient,
                least > 0 ? (a.error_ + std::abs(quotient) * b.error_) / least : kUnknown);
  }
  Bounded& operator+=(const Bounded& other) { return *this = *this + other; }
  Bounded& operator-=(const Bounded& other) { return *this = *this - other; }

  /// x^p for p >= 0, four roundings; of x below 0 only what rounding may have made of 0.
  friend Bounded pow(const Bounded& x, double p) {
    const double value = std::pow(x.value_, p);
    const double low = std::pow(std::max(x.value_ - x.error_, 0.0), p);
    const double high = std::pow(x.value_ + x.error_, p);
    Bounded power = exact(value, std::max(high - value, value - low));
    for (int i = 0; i < 4; ++i) power = once(power.value_, power.error_);
    return power;
  }
  friend Bounded sqrt(const Bounded& x) { return pow(x, 0.5); }

  friend Bounded abs(const Bounded& x) { return exact(std::abs(x.value_), x.error_); }
  friend Bounded max(const Bounded& x, const Bounded& low) {
    return exact(x.value_ < low.value_ ? low.value_ : x.value_, std::max(x.error_, low.error_));
  }
  friend Bounded min(const Bounded& x, const Bounded& high) {
    return exact(x.value_ > high.value_ ? high.value_ : x.value_, std::max(x.error_, high.error_));
  }

  /// a >= b ? x : y; where that cannot be told, both are within the bound.
  friend Bounded if_at_least(const Bounded& a, const Bounded& b, const Bounded& x,
                             const Bounded& y) {
    const double doubt = a.error_ + b.error_;
    const bool sure = doubt == 0 || std::abs(a.value_ - b.value_) > doubt;
    return exact(a.value_ >= b.value_ ? x.value_ : y.value_,
                 std::max(x.error_, y.error_) + (sure ? 0 : std::abs(x.value_ - y.value_)));
  }

  /// (x > 0) - (x < 0)
  friend Bounded sign(const Bounded& x) { return if_at_least(0, x, if_at_least(x, 0, 0, -1), 1); }

  /// 0 where n is 0, else n / d.
  friend Bounded quotient(const Bounded& n, const Bounded& d) {
    return n.value_ == 0 && n.error_ == 0 ? Bounded(0) : n / d;
  }

 private:
  static constexpr double kUnknown = std::numeric_limits<double>::infinity();

  static Bounded exact(double value, double error) {
    Bounded bounded(value);
    bounded.error_ = error < kUnknown ? error : kUnknown;  // NaN is unknown too
    return bounded;
  }

  /// Rounded once to binary32.
  static Bounded once(double value, double error) {
    const double most = std::abs(value) + error;
    if (!(most < double{std::numeric_limits<float>::max()})) return exact(value, kUnknown);
    return exact(value, most == 0 ? 0 : error + most * 0x1p-24 + 0x1p-150);
  }

  double value_;
  double error_;
};

/// One step of a rule as its own test writes it down from the formula in real numbers.
template <class Number>
using ReferenceStepOf = std::function<void(
    const Optimizer& optimizer, double learning_rate, std::int64_t step, std::vector<Number>& row,
    std::vector<std::vector<Number>>& slots, const std::vector<Number>& gradient)>;
using ReferenceStep = ReferenceStepOf<double>;
using BoundedStep = ReferenceStepOf<Bounded>;

/// The numbers of a row.
using Numbers = std::vector<Bounded>;

/// What a rule's test says of the rule: a step in double or one with bounds, and settings in which
/// to test it besides its defaults.
struct Reference {
  ReferenceStep step;
  BoundedStep bounded;
  std::vector<Optimizer::Settings> settings;

  /// Row and slots after a step.
  void operator()(const Optimizer& optimizer, double learning_rate, std::int64_t number,
                  std::vector<double>& row, std::vector<std::vector<double>>& slots,
                  const std::vector<double>& gradient) const {
    if (step) return step(optimizer, learning_rate, number, row, slots, gradient);
    const auto values = [](const Numbers& from, std::vector<double>& to) {
      std::ranges::transform(from, to.begin(), &Bounded::value);
    };
    Numbers bounded_row(row.begin(), row.end());
    std::vector<Numbers> bounded_slots;
    for (const std::vector<double>& slot : slots)
      bounded_slots.emplace_back(slot.begin(), slot.end());
    bounded(optimizer, learning_rate, number, bounded_row, bounded_slots,
            Numbers(gradient.begin(), gradient.end()));
    values(bounded_row, row);
    for (std::size_t s = 0; s < slots.size(); ++s) values(bounded_slots[s], slots[s]);
  }
};

/// By rule. A rule's test adds its own: `const AddReference added("sgd", step);`, where the step is
/// a ReferenceStep or, better, a BoundedStep.
inline std::map<std::string, Reference>& references() {
  static std::map<std::string, Reference> all;
  return all;
}
struct AddReference {
  template <class Step>
  AddReference(const std::string& rule, Step step, std::vector<Optimizer::Settings> settings = {}) {
    Reference& reference = references()[rule];
    if constexpr (std::is_convertible_v<Step, BoundedStep>)
      reference.bounded = std::move(step);
    else
      reference.step = std::move(step);
    reference.settings = std::move(settings);
  }
};

}  // namespace embertable
