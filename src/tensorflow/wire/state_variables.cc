#include <fmt/format.h>

#include "embertable/errors.h"
#include "embertable/tensorflow/optimizer_messages.h"
#include "tensorflow/wire/algorithms.h"
#include "tensorflow/wire/cursor.h"

namespace embertable::wire {
namespace {

constexpr const char* kAccumulators = "gradient_accumulators";

/// Initial value by which a row's gradient that was never added to differs from one that adds up to
/// zero.
constexpr double kNotTouched = 0x1p-149;

/// Number of arguments and of results of a program.
struct Arity {
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
};

/// Calls use(bytes) for each submessage with this number.
template <class Use>
void each_submessage(const Input& input, std::string_view message, std::uint32_t number,
                     const Use& use) {
  Cursor cursor(input, message);
  while (!cursor.at_end()) {
    const Tag tag = cursor.tag();
    if (tag.number == number && tag.type == WireType::kBytes) {
      use(cursor.bytes());
    } else {
      cursor.skip(tag);
    }
  }
}

/// Returns the arity of a program. Source: XLA hlo.proto, HloModuleProto.host_program_shape;
/// xla_data.proto, ProgramShapeProto.parameters and .result, ShapeProto.tuple_shapes.
Arity arity_of(std::string_view program) {
  const Input input{"HloModuleProto", program};
  Arity arity;
  const auto count_output = [&](std::string_view) { ++arity.outputs; };
  const auto count_input = [&](std::string_view) { ++arity.inputs; };
  each_submessage(input, program, 4, [&](std::string_view shape) {
    each_submessage(input, shape, 1, count_input);
    each_submessage(input, shape, 2, [&](std::string_view result) {
      each_submessage(input, result, 4, count_output);
    });
  });
  return arity;
}

void check_slots(std::string_view name, std::int64_t slots) {
  if (slots > static_cast<std::int64_t>(kMaxAuxiliary))
    throw ValueError(fmt::format("{}: there may be {} slots, got {}", name, kMaxAuxiliary, slots));
}

std::vector<std::string> program_slots(std::string_view name,
                                       const UserDefinedProgramParameters& parameters) {
  const Arity arity = arity_of(parameters.program.value_or(""));
  const std::int64_t beyond = arity.inputs - arity.outputs;
  if (arity.inputs < 2 || (beyond != 1 && beyond != 2)) {
    throw ValueError(fmt::format(
        "{}: there must be 2 inputs or more, and 1 or 2 more than outputs, got {} inputs and {} "
        "outputs",
        name, arity.inputs, arity.outputs));
  }
  check_slots(name, arity.outputs - 1);
  std::vector<std::string> slots;
  for (std::int64_t s = 0; s + 1 < arity.outputs; ++s) slots.push_back(fmt::format("Slot_{}", s));
  return slots;
}

std::vector<std::string> slots_of(const OptimizationParameters& message) {
  const std::string_view name = algorithm_name(message);
  if (const auto* program = std::get_if<UserDefinedProgramParameters>(&message.parameters))
    return program_slots(name, *program);
  std::vector<std::string> slots;
  for (const std::string_view slot : kAlgorithms[message.parameters.index()].slots) {
    if (!slot.empty()) slots.emplace_back(slot);
  }
  return slots;
}

/// True if gradients are summed beside this many slots.
bool accumulates(const OptimizationParameters& message, std::size_t slots) {
  if (message.gradient_accumulation_status == Status::kDisabled) return false;
  if (slots < kMaxAuxiliary) return true;
  throw ValueError(fmt::format("{}: with gradient accumulation there may be {} slots, got {}",
                               algorithm_name(message), kMaxAuxiliary - 1, slots));
}

}  // namespace

std::string_view algorithm_name(const OptimizationParameters& message) {
  const std::size_t index = message.parameters.index();
  if (index == 0) throw ValueError("OptimizationParameters: there must be an algorithm, got none");
  return kAlgorithms[index].name;
}

bool uses_gradient_accumulation(const OptimizationParameters& message) {
  return accumulates(message, slots_of(message).size());
}

std::vector<StateVariableSpecification> state_variables(const OptimizationParameters& message) {
  using UserDefined = StateVariableSpecification::UserDefined;
  const std::vector<std::string> slots = slots_of(message);
  std::vector<StateVariableSpecification> all = {{.name = "parameters", .usage = UserDefined{}}};
  for (const std::string& slot : slots) all.push_back({.name = slot, .usage = UserDefined{}});
  if (accumulates(message, slots.size())) {
    all.push_back(
        {.name = kAccumulators,
         .usage = StateVariableSpecification::FillWithConstant{.initial_value = kNotTouched}});
  }
  return all;
}

}  // namespace embertable::wire
