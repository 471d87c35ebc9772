#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <variant>

#include "embertable/executor.h"
#include "embertable/variables/tensor.h"
#include "embertable/version.h"

namespace embertable {

class ShardedVariable;

/// One side of an operator: a tensor, a sharded variable, which means the tensor of all its rows,
/// or a literal, which takes the other side's dtype. It lives for the length of a call.
class EMBERTABLE_API Operand {
 public:
  Operand(const Tensor& tensor) : value_(tensor) {}        // NOLINT: written as an operand
  Operand(const ShardedVariable& variable);                // NOLINT: written as an operand
  Operand(int literal) : value_(std::int64_t{literal}) {}  // NOLINT: written as an operand
  Operand(std::int64_t literal) : value_(literal) {}       // NOLINT: written as an operand
  Operand(double literal) : value_(literal) {}             // NOLINT: written as an operand
  template <std::same_as<bool> B>                          ///< not a pointer
  Operand(B literal) : value_(literal) {}                  // NOLINT: written as an operand

  const std::variant<Tensor, std::int64_t, double, bool>& value() const { return value_; }

  /// Returns the executor of a sharded variable, or null.
  Executor* executor() const noexcept { return executor_.get(); }

 private:
  std::variant<Tensor, std::int64_t, double, bool> value_;
  std::shared_ptr<Executor> executor_;
};

/// TensorFlow's operators on two tensors. They take and give these dtypes:
///
///     kAdd kSub kMul           numbers                  the same; integers wrap
///     kTrueDiv                 numbers                  the same; integers give float64
///     kFloorDiv kMod           numbers                  the same; the remainder has y's sign
///     kPow                     numbers                  the same; integers wrap
///     kLess ... kGreaterEqual  numbers                  bool
///     kEqual kNotEqual         all                      bool
///     kAnd kOr kXor            bool: logical; integers: bitwise
///     kMatMul                  numbers, rank >= 2; axes before the last two are broadcast
enum class BinaryOperator : std::uint8_t {
  kAdd,
  kSub,
  kMul,
  kTrueDiv,
  kFloorDiv,
  kMod,
  kPow,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kEqual,
  kNotEqual,
  kAnd,
  kOr,
  kXor,
  kMatMul,
};

/// Operators on one tensor. kNegate and kAbs take numbers; kInvert takes bool (logical) and
/// integers (bitwise).
enum class UnaryOperator : std::uint8_t { kNegate, kAbs, kInvert };

/// Applies an operator element by element, shapes broadcast by the rules of NumPy and TensorFlow.
/// Float16 and BFloat16 are computed as float32 and rounded, matmul once for each element. Floor
/// division and remainder of floats are floor(x / y) and fmod corrected by y. An element of a
/// matrix product is the sum of its products from the first to the last, each operation rounded.
/// Large values are computed on the workers of the sharded variable's executor, with the same bits.
///
/// Throws ValueError for two dtypes (nothing is promoted), a dtype that the operator does not take,
/// shapes that cannot be broadcast (kEqual and kNotEqual give a scalar false and true instead, as
/// in TensorFlow), an integer divided by zero or raised to a negative power; TypeError for two
/// literals and for a literal that the other side's dtype cannot hold; ValueError for a value that
/// is no operator. Source: TF math_ops.py, OVERLOADABLE_OPERATORS of ops.py.
EMBERTABLE_API Tensor binary(BinaryOperator what, const Operand& x, const Operand& y);

/// Applies an operator to every element, under the same rules. Throws ValueError for a dtype that
/// the operator does not take, TypeError for a literal.
EMBERTABLE_API Tensor unary(UnaryOperator what, const Operand& x);

// The operators and functions below call `binary` and `unary` and throw what those throw.
// clang-format off
inline Tensor operator+(const Operand& x, const Operand& y) { return binary(BinaryOperator::kAdd, x, y); }
inline Tensor operator-(const Operand& x, const Operand& y) { return binary(BinaryOperator::kSub, x, y); }
inline Tensor operator*(const Operand& x, const Operand& y) { return binary(BinaryOperator::kMul, x, y); }
inline Tensor operator/(const Operand& x, const Operand& y) { return binary(BinaryOperator::kTrueDiv, x, y); }
inline Tensor operator%(const Operand& x, const Operand& y) { return binary(BinaryOperator::kMod, x, y); }
inline Tensor operator<(const Operand& x, const Operand& y) { return binary(BinaryOperator::kLess, x, y); }
inline Tensor operator<=(const Operand& x, const Operand& y) { return binary(BinaryOperator::kLessEqual, x, y); }
inline Tensor operator>(const Operand& x, const Operand& y) { return binary(BinaryOperator::kGreater, x, y); }
inline Tensor operator>=(const Operand& x, const Operand& y) { return binary(BinaryOperator::kGreaterEqual, x, y); }
inline Tensor operator==(const Operand& x, const Operand& y) { return binary(BinaryOperator::kEqual, x, y); }
inline Tensor operator!=(const Operand& x, const Operand& y) { return binary(BinaryOperator::kNotEqual, x, y); }
inline Tensor operator&(const Operand& x, const Operand& y) { return binary(BinaryOperator::kAnd, x, y); }
inline Tensor operator|(const Operand& x, const Operand& y) { return binary(BinaryOperator::kOr, x, y); }
inline Tensor operator^(const Operand& x, const Operand& y) { return binary(BinaryOperator::kXor, x, y); }
inline Tensor operator-(const Operand& x) { return unary(UnaryOperator::kNegate, x); }
inline Tensor operator~(const Operand& x) { return unary(UnaryOperator::kInvert, x); }
inline Tensor floor_div(const Operand& x, const Operand& y) { return binary(BinaryOperator::kFloorDiv, x, y); }
inline Tensor pow(const Operand& x, const Operand& y) { return binary(BinaryOperator::kPow, x, y); }
inline Tensor matmul(const Operand& x, const Operand& y) { return binary(BinaryOperator::kMatMul, x, y); }
inline Tensor abs(const Operand& x) { return unary(UnaryOperator::kAbs, x); }
// clang-format on

}  // namespace embertable
