#include "embertable/variables/tensor_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/enumerators.h"
#include "base/float_environment.h"
#include "embertable/errors.h"
#include "tensor/element_type.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"

namespace embertable {

template <>
struct Enumerators<BinaryOperator>
    : EnumeratorRange<BinaryOperator::kAdd, BinaryOperator::kMatMul> {};
template <>
struct Enumerators<UnaryOperator>
    : EnumeratorRange<UnaryOperator::kNegate, UnaryOperator::kInvert> {};

namespace {

using Op = BinaryOperator;

constexpr const char* kNames[] = {
    "add",       "subtract", "multiply",   "truediv", "floordiv",      "mod",
    "pow",       "less",     "less_equal", "greater", "greater_equal", "equal",
    "not_equal", "and",      "or",         "xor",     "matmul"};
constexpr const char* kUnaryNames[] = {"negative", "abs", "invert"};

const char* name(Op what) { return kNames[static_cast<std::size_t>(what)]; }

bool is_logic(Op what) { return what == Op::kAnd || what == Op::kOr || what == Op::kXor; }
bool is_equality(Op what) { return what == Op::kEqual || what == Op::kNotEqual; }

bool takes(Op what, DType dtype) {
  if (dtype == DType::kBool) return is_logic(what) || is_equality(what);
  return is_integer(dtype) || !is_logic(what);
}

[[noreturn]] void refuse(Op what, const std::string& why) {
  throw ValueError(fmt::format("{}: {}", name(what), why));
}

struct LiteralTensor {
  DType dtype;

  Tensor operator()(const Tensor& tensor) const { return tensor; }
  Tensor operator()(bool literal) const {
    if (dtype != DType::kBool) refuse_literal(literal ? "true" : "false");
    return Tensor::scalar(literal);
  }
  Tensor operator()(std::int64_t literal) const {
    if (dtype == DType::kInt64) return Tensor::scalar(literal);
    if (dtype == DType::kInt32 && literal == static_cast<std::int32_t>(literal))
      return Tensor::scalar(static_cast<std::int32_t>(literal));
    if (is_integer(dtype)) refuse_literal(std::to_string(literal));
    return floating(literal);
  }
  Tensor operator()(double literal) const {
    if (is_integer(dtype)) refuse_literal(fmt::format("{}", literal));
    return floating(literal);
  }

 private:
  template <class Number>
  Tensor floating(Number x) const {
    switch (dtype) {
      case DType::kFloat32:
        return Tensor::scalar(static_cast<float>(x));
      case DType::kFloat64:
        return Tensor::scalar(static_cast<double>(x));
      case DType::kBFloat16:
        return Tensor::scalar(BFloat16(static_cast<float>(x)));
      case DType::kFloat16:
        return Tensor::scalar(Float16(static_cast<float>(x)));
      default:
        refuse_literal(fmt::format("{}", x));
    }
  }
  [[noreturn]] void refuse_literal(const std::string& literal) const {
    throw TypeError(fmt::format("operator: {} is no number of {}, the other side's dtype", literal,
                                to_string(dtype)));
  }
};

/// Both sides as tensors; a literal gets the dtype of the other side.
struct Sides {
  Tensor x, y;

  Sides(Op what, const Operand& left, const Operand& right) {
    const auto* of_x = std::get_if<Tensor>(&left.value());
    const auto* of_y = std::get_if<Tensor>(&right.value());
    if (of_x == nullptr && of_y == nullptr)
      throw TypeError(fmt::format("{}: one side must be a tensor", name(what)));
    const DType dtype = of_x != nullptr ? of_x->dtype() : of_y->dtype();
    x = std::visit(LiteralTensor{dtype}, left.value());
    y = std::visit(LiteralTensor{dtype}, right.value());
    if (x.dtype() != y.dtype())
      refuse(what, fmt::format("both sides must have the same dtype, got {} and {}",
                               to_string(x.dtype()), to_string(y.dtype())));
    if (!takes(what, dtype)) refuse(what, fmt::format("is not for {}", to_string(dtype)));
  }
};

template <class T>
void check_integers(Op what, std::span<const T> y) {
  if ((what == Op::kFloorDiv || what == Op::kMod) && std::ranges::find(y, T{0}) != y.end())
    refuse(what, "an integer is divided by zero");
  if (what == Op::kPow && std::ranges::any_of(y, [](T e) { return e < 0; }))
    refuse(what, "integers to negative integer powers are not allowed");
}

void check_integers(Op what, const Tensor& y) {
  const Tensor packed = y.packed();
  if (y.dtype() == DType::kInt32) check_integers(what, packed.values<std::int32_t>());
  if (y.dtype() == DType::kInt64) check_integers(what, packed.values<std::int64_t>());
}

Tensor computed(Op what, const Tensor& x, const Tensor& y, const Shape& shape, Executor* executor) {
  return what == Op::kMatMul ? matrix_product(x, y, executor)
                             : elementwise(what, x, y, shape, executor);
}

/// Computes in float32 and rounds every operation of the formula.
Tensor computed_half(Op what, const Tensor& x, const Tensor& y, const Shape& shape,
                     Executor* executor) {
  const auto wide = [&](const Tensor& t) { return converted(t, DType::kFloat32, executor); };
  const auto half = [&](const Tensor& t) { return converted(t, x.dtype(), executor); };
  if (what == Op::kFloorDiv) {
    const Tensor quotient = half(elementwise(Op::kTrueDiv, wide(x), wide(y), shape, executor));
    return half(elementwise(what, wide(quotient), Tensor::scalar(1.0f), shape, executor));
  }
  const Tensor result = computed(what, wide(x), wide(y), shape, executor);
  return result.dtype() == DType::kBool ? result : half(result);
}

}  // namespace

Tensor binary(BinaryOperator what, const Operand& left, const Operand& right) {
  check_enumerator(what, "binary operator");
  const FloatEnvironment environment;
  Executor* const executor = left.executor() != nullptr ? left.executor() : right.executor();
  Sides sides(what, left, right);
  Shape shape;
  if (what != Op::kMatMul && !broadcast_shape(sides.x.shape(), sides.y.shape(), &shape)) {
    if (is_equality(what)) return Tensor::scalar(what == Op::kNotEqual);
    refuse(what, fmt::format("shapes {} and {} cannot be broadcast to one",
                             sides.x.shape().to_string(), sides.y.shape().to_string()));
  }
  if (shape.num_elements() > 0) check_integers(what, sides.y);
  if (what == Op::kTrueDiv && is_integer(sides.x.dtype())) {
    sides.x = converted(sides.x, DType::kFloat64, executor);
    sides.y = converted(sides.y, DType::kFloat64, executor);
  }
  return is_half(sides.x.dtype()) ? computed_half(what, sides.x, sides.y, shape, executor)
                                  : computed(what, sides.x, sides.y, shape, executor);
}

Tensor unary(UnaryOperator what, const Operand& side) {
  check_enumerator(what, "unary operator");
  const FloatEnvironment environment;
  const char* const called = kUnaryNames[static_cast<std::size_t>(what)];
  const auto* x = std::get_if<Tensor>(&side.value());
  if (x == nullptr) throw TypeError(fmt::format("{}: takes a tensor", called));
  const bool logic = what == UnaryOperator::kInvert;
  if (logic ? !is_integer(x->dtype()) && x->dtype() != DType::kBool : x->dtype() == DType::kBool)
    throw ValueError(fmt::format("{}: is not for {}", called, to_string(x->dtype())));
  Executor* const executor = side.executor();
  if (!is_half(x->dtype())) return elementwise(what, *x, executor);
  const Tensor wide = elementwise(what, converted(*x, DType::kFloat32, executor), executor);
  return converted(wide, x->dtype(), executor);
}

}  // namespace embertable
