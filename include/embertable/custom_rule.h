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

/// What a step is, the same for all rows of a table.
struct CustomStep {
  float learning_rate = 0;
  std::int64_t number = 1;  ///< 1 for the first; goes on after a restore
  std::span<const float> hyperparameters;
};

/// Up to 16 rows in one step of a caller's rule. Borrowed for the call, which may write rows and
/// slots.
struct CustomTile {
  std::span<float* const> row;             ///< [rows], each dim floats
  std::span<const float* const> gradient;  ///< [rows], each dim floats: summed and clipped
  std::span<float* const* const> slot;     ///< by slot, then by row: dim floats, or one
  std::int32_t dim = 0;
  CustomStep step;
};

/// One row, likewise.
struct CustomRow {
  std::span<float> row;                    ///< [dim]
  std::span<const float> gradient;         ///< [dim]
  std::span<const std::span<float>> slot;  ///< by slot: [dim] or [1]
  CustomStep step;
};

/// A rule of the caller's. Its function is called from several threads at once, for different rows;
/// how rows are cut into calls depends on the machine, so a row's result must hang on nothing but
/// that row, its slots, its gradient and the step. Clipping, decay and the sum of gradients are
/// done around it. If it throws, the step throws that, and the engine is failed until a restore.
///
/// Source: TF tpu_embedding_v2_utils.py, CustomOptimizer.
struct CustomRule {
  using Tiles = std::function<void(const CustomTile& tile)>;
  using Rows = std::function<void(const CustomRow& row)>;

  /// One element. Inputs: gradient, row, slots in their order, and the rate where
  /// `rate_is_an_input`; outputs: row, slots.
  using Elements = std::function<void(std::span<const float> inputs, std::span<float> outputs)>;

  /// In messages and checkpoints; not that of one of `optimizer_rules`.
  std::string name = "custom";

  /// At most 7 that differ; a checkpoint has "<table>/<slot>".
  std::vector<std::string> slot_names;

  /// First values, one for each name.
  std::vector<Initializer> slot_initializers;

  /// 2: a slot of dim numbers per row; 1: of one. Empty: all 2. Not with Elements.
  std::vector<std::int32_t> slot_dims;

  /// At most 14 numbers, kept and compared by name, given to the function as binary32.
  std::vector<std::pair<std::string, double>> hyperparameters;

  std::variant<Tiles, Rows, Elements> function;
  bool rate_is_an_input = false;

  /// Rows that no id names take each step too, with a gradient of zeros. Needs accumulation.
  bool steps_every_row = false;
};

/// An optimizer whose program works element by element, as the proto's user_defined_program has it:
/// `outputs` are row and slots "Slot_0", "Slot_1", ...; `inputs` are gradient, row, slots and, if
/// there is one more, the rate. slot_initializers: one for each slot; empty: zeros. Throws
/// ValueError for other numbers, naming both, and as `Optimizer::custom`. With accumulation there
/// may be 6 slots, else 7. Source: TF optimization_parameters.proto, UserDefinedProgramParameters.
EMBERTABLE_API Optimizer user_defined_program(std::int32_t inputs, std::int32_t outputs,
                                              CustomRule::Elements program,
                                              LearningRate learning_rate = 0.0,
                                              std::vector<Initializer> slot_initializers = {},
                                              OptimizerOptions options = {});

}  // namespace embertable
