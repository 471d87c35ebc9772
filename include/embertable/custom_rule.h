#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "embertable/export.h"
#include "embertable/initializer.h"
#include "embertable/optimizer.h"

namespace embertable {

/// Describes a step; it is the same for all rows of a table.
struct CustomStep {
  float learning_rate = 0;
  std::int64_t number = 1;  ///< 1 for the first; goes on after a restore
  std::span<const float> hyperparameters;
};

/// Up to 16 rows in one step of a caller-supplied rule. Borrowed for the call, which may write rows
/// and slots.
struct CustomTile {
  std::span<float* const> row;             ///< [rows], each dim floats
  std::span<const float* const> gradient;  ///< [rows], each dim floats: summed and clipped
  std::span<float* const* const> slot;     ///< by slot, then by row: dim floats, or one
  std::int32_t dim = 0;
  CustomStep step;
};

/// One row in one step of a caller-supplied rule. Borrowed for the call, which may write the row
/// and its slots.
struct CustomRow {
  std::span<float> row;                    ///< [dim]
  std::span<const float> gradient;         ///< [dim]
  std::span<const std::span<float>> slot;  ///< by slot: [dim] or [1]
  CustomStep step;
};

/// A caller-supplied rule. Its function is called from several threads at once, for different rows.
/// How rows are grouped into calls depends on the machine, so a row's result must depend on nothing
/// but that row, its slots, its gradient and the step. Clipping, decay and the sum of gradients are
/// done around it. If it throws, the step throws the same exception, and the engine is failed until
/// a restore.
///
/// Source: TF tpu_embedding_v2_utils.py, CustomOptimizer.
struct CustomRule {
  using Tiles = std::function<void(const CustomTile& tile)>;
  using Rows = std::function<void(const CustomRow& row)>;

  /// Steps one element. Inputs: gradient, row, slots in their order, and the rate if
  /// `rate_is_an_input`; outputs: row, slots.
  using Elements = std::function<void(std::span<const float> inputs, std::span<float> outputs)>;

  /// Names the rule in messages and checkpoints. Must not be one of `optimizer_rules`.
  std::string name = "custom";

  /// Names of the slots, at most 7, all different; a checkpoint has "<table>/<slot>".
  std::vector<std::string> slot_names;

  /// First values of the slots, one initializer for each name.
  std::vector<Initializer> slot_initializers;

  /// Kind of each slot. 2: dim numbers per row; 1: one number per row. Empty: every slot is 2. Must
  /// be empty with Elements.
  std::vector<std::int32_t> slot_dims;

  /// At most 14 numbers, kept and compared by name, passed to the function as binary32.
  std::vector<std::pair<std::string, double>> hyperparameters;

  std::variant<Tiles, Rows, Elements> function;
  bool rate_is_an_input = false;

  /// If true, rows that no id names take each step too, with a gradient of zeros. Requires
  /// accumulation.
  bool steps_every_row = false;
};

/// Makes an optimizer whose program works element by element, like the proto's
/// user_defined_program: `outputs` are row and slots "Slot_0", "Slot_1", ...; `inputs` are
/// gradient, row, slots and, if there is one more, the rate. slot_initializers: one for each slot;
/// empty: zeros. With accumulation there may be 6 slots, else 7. Throws ValueError for other
/// numbers, naming both, and what `Optimizer::custom` throws. Source: TF
/// optimization_parameters.proto, UserDefinedProgramParameters.
EMBERTABLE_API Optimizer user_defined_program(std::int32_t inputs, std::int32_t outputs,
                                              CustomRule::Elements program,
                                              LearningRate learning_rate = 0.0,
                                              std::vector<Initializer> slot_initializers = {},
                                              OptimizerOptions options = {});

}  // namespace embertable
