#include "embertable/variables/variable_creator.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/enumerators.h"
#include "base/random.h"
#include "embertable/errors.h"
#include "rows/placement.h"
#include "tensor/dtypes.h"

namespace embertable {
namespace {

std::string text_of(std::span<const std::int64_t> counts) {
  std::string text = "[";
  for (const std::int64_t count : counts)
    text += (text.size() > 1 ? ", " : "") + std::to_string(count);
  return text + "]";
}

template <class Function>
void require_function(const Function& function) {
  if (!function) throw ValueError("initial value: a function must not be empty");
}

VariablePart part_of(const std::string& name, const Shape& full_shape, std::int64_t first_row,
                     const Shape& shape) {
  VariablePart part{name, full_shape, {}, shape};
  part.offset.assign(full_shape.rank(), 0);
  if (full_shape.rank() > 0) part.offset[0] = first_row;
  return part;
}

/// Returns what `make` gives for the part.
Tensor made(const InitialValue::Part& make, DType dtype, const VariablePart& part) {
  Tensor value = make(part);
  if (value.dtype() == dtype && value.shape() == part.shape) return value;
  throw ValueError("variable '" + part.name + "': its initial value at " + text_of(part.offset) +
                   " must be " + std::string(to_string(dtype)) + " of shape " +
                   part.shape.to_string() + ", got " + std::string(to_string(value.dtype())) +
                   " of shape " + value.shape().to_string());
}

/// Copies the rows of `value` that the part names.
Tensor rows_of(const Tensor& value, const VariablePart& part) {
  if (part.shape == value.shape()) return value;
  return value.view(part.offset[0] * value.byte_strides()[0], part.shape, value.byte_strides())
      .copy();
}

/// Makes components of the sizes of DIV, named "<name><infix><i>".
std::vector<Variable> components(const InitialValue::Part& make, const Shape& full_shape,
                                 DType dtype, const std::string& name, const std::string& infix,
                                 std::int64_t count) {
  if (count > std::numeric_limits<std::int32_t>::max())
    throw ValueError("variable '" + name + "': there must be at most 2147483647 components, got " +
                     std::to_string(count));
  const auto shards = static_cast<std::int32_t>(count);
  const Placement placement(full_shape[0], shards, Sharding::kDiv);
  std::vector<Variable> variables;
  std::int64_t first_row = 0;
  for (std::int32_t i = 0; i < shards; ++i) {
    const std::int64_t rows = placement.shard_rows(i);
    const VariablePart part = part_of(name, full_shape, first_row, full_shape.with_leading(rows));
    variables.emplace_back(made(make, dtype, part), name + infix + std::to_string(i));
    first_row += rows;
  }
  return variables;
}

/// Returns the elements of a row. Throws ValueError if an Initializer cannot count them.
std::int32_t row_width(const Shape& shape) {
  if (shape.rank() < 1 || !shape.fully_defined())
    throw ValueError("initial value: an initializer needs a known shape of rank >= 1, got " +
                     shape.to_string());
  const std::int64_t width = Shape(shape.dims().subspan(1)).num_elements();
  if (width <= std::numeric_limits<std::int32_t>::max()) return static_cast<std::int32_t>(width);
  throw ValueError("initial value: a row must have at most 2147483647 elements, got shape " +
                   shape.to_string());
}

}  // namespace

InitialValue::InitialValue(Tensor value) : source_(std::move(value)) {}

InitialValue InitialValue::whole(Whole make) {
  require_function(make);
  return InitialValue(Source(std::move(make)));
}

InitialValue InitialValue::parts(Shape full_shape, DType dtype, Part make) {
  require_function(make);
  check_enumerator(dtype, "initial value: dtype");
  if (!full_shape.fully_defined())
    throw ValueError("initial value: the shape must be fully defined, got " +
                     full_shape.to_string());
  return InitialValue(Source(Parts{full_shape, dtype, std::move(make)}));
}

InitialValue InitialValue::of(Initializer initializer, Shape full_shape, std::uint64_t seed) {
  const std::int32_t width = row_width(full_shape);
  initializer.check("initial value", full_shape[0], width);
  return parts(full_shape, DType::kFloat32,
               [initializer = std::move(initializer), width, seed](const VariablePart& part) {
                 Tensor value(DType::kFloat32, part.shape);
                 initializer.fill({.first_row = part.offset[0],
                                   .rows = part.shape[0],
                                   .vocabulary_size = part.full_shape[0],
                                   .dim = width},
                                  stream_of(seed, part.name), value.mutable_values<float>());
                 return value;
               });
}

bool InitialValue::is_function() const noexcept { return !std::holds_alternative<Tensor>(source_); }

Shape InitialValue::shape() const {
  if (const auto* parts = std::get_if<Parts>(&source_)) return parts->full_shape;
  return is_function() ? Shape() : std::get<Tensor>(source_).shape();
}

std::optional<DType> InitialValue::dtype() const {
  if (const auto* parts = std::get_if<Parts>(&source_)) return parts->dtype;
  if (is_function()) return std::nullopt;
  return std::get<Tensor>(source_).dtype();
}

/// Returns any source as a function of a part; calls a function of the whole here.
InitialValue::Parts InitialValue::as_parts() const {
  if (const auto* parts = std::get_if<Parts>(&source_)) return *parts;
  const auto* make = std::get_if<Whole>(&source_);
  Tensor value = make ? (*make)() : std::get<Tensor>(source_);
  const Shape shape = value.shape();
  const DType dtype = value.dtype();
  return {shape, dtype,
          [value = std::move(value)](const VariablePart& part) { return rows_of(value, part); }};
}

VariableCreator::VariableCreator(VariableCreatorOptions options) : options_(std::move(options)) {
  if (options_.storage_nodes < 1)
    throw ValueError("VariableCreator: storage_nodes must be >= 1, got " +
                     std::to_string(options_.storage_nodes));
}

/// Returns how many components the partitioner wants, 1 for one piece.
std::int64_t VariableCreator::parts_of(const Shape& shape, DType dtype,
                                       const std::string& name) const {
  if (!options_.variable_partitioner || shape.rank() == 0) return 1;
  const std::vector<std::int64_t> counts = options_.variable_partitioner(shape, dtype, 0);
  const bool good = !counts.empty() && counts[0] >= 1 &&
                    std::all_of(counts.begin() + 1, counts.end(), [](auto n) { return n == 1; });
  if (good) return counts[0];
  throw ValueError("variable '" + name +
                   "': variable_partitioner must give a count >= 1 for axis "
                   "0 and 1 for every other axis of shape " +
                   shape.to_string() + ", got " + text_of(counts));
}

/// Returns the next `count` nodes by turns.
std::vector<std::int32_t> VariableCreator::take_nodes(std::int64_t count) {
  std::vector<std::int32_t> nodes;
  for (std::int64_t i = 0; i < count; ++i)
    nodes.push_back(static_cast<std::int32_t>(next_node_++ % options_.storage_nodes));
  return nodes;
}

CreatedVariable VariableCreator::create(const InitialValue& initial_value,
                                        const VariableOptions& options) {
  const std::string& name = options.name;
  const std::optional<std::int32_t>& beside = options.colocate_with;
  if (beside && (*beside < 0 || *beside >= options_.storage_nodes))
    throw ValueError("variable '" + name + "': colocate_with must be 0 <= node < " +
                     std::to_string(options_.storage_nodes) + ", got " + std::to_string(*beside));
  const auto& [shape, dtype, make] = initial_value.as_parts();
  const std::int64_t wanted = beside ? 1 : parts_of(shape, dtype, name);
  if (wanted == 1) {
    Variable variable(made(make, dtype, part_of(name, shape, 0, shape)), name);
    return {std::move(variable), beside ? std::vector{*beside} : take_nodes(1)};
  }
  const std::int64_t count = std::max<std::int64_t>(1, std::min(wanted, shape[0]));
  ShardedVariable variable(components(make, shape, dtype, name, "/part_", count), {.name = name});
  return {std::move(variable), take_nodes(count)};
}

ShardedVariable create_on_hosts(const InitialValue& initial_value, std::int32_t hosts,
                                const std::string& name) {
  const std::string subject = "variable '" + name + "': ";
  if (hosts < 1) throw ValueError(subject + "hosts must be >= 1, got " + std::to_string(hosts));
  if (!initial_value.is_function())
    throw ValueError(subject +
                     "Unable to extract initializer function and shape: the initial "
                     "value must be a function, got a tensor");
  const auto& [shape, dtype, make] = initial_value.as_parts();
  if (shape.rank() != 2 || shape[0] < 1)
    throw ValueError(subject + "a table must have rank 2 and a row at least, got shape " +
                     shape.to_string());
  const std::int64_t owners = std::min<std::int64_t>(hosts, shape[0]);
  return ShardedVariable(components(make, shape, dtype, name, "_", owners), {.name = name});
}

}  // namespace embertable
