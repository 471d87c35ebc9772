#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "embertable/checkpoint.h"
#include "embertable/variables/sharded_variable.h"
#include "embertable/variables/variable_creator.h"
#include "embertable/version.h"

namespace embertable {

/// A variable in a checkpoint: in one piece, or in any number of components.
class EMBERTABLE_API CheckpointVariable {
 public:
  /// Take the components, not their values. They throw TypeError for an empty handle, ValueError
  /// for a placeholder.
  CheckpointVariable(Variable variable);                // NOLINT: written as a variable
  CheckpointVariable(const ShardedVariable& variable);  // NOLINT: written as a variable
  CheckpointVariable(const CreatedVariable& variable);  // NOLINT: written as a variable

  const std::vector<Variable>& components() const noexcept { return components_; }
  const Shape& shape() const noexcept { return shape_; }  ///< shape of all components together
  DType dtype() const noexcept { return components_.front().dtype(); }

 private:
  std::vector<Variable> components_;
  Shape shape_;
};

/// Variables by their names in checkpoints.
using CheckpointVariables = std::map<std::string, CheckpointVariable>;

// Variables are saved whole, as dense tensors of the caller, so any number of components can
// restore what any other number has saved. A variable of an engine's table is found under its name
// too, and so are the tensors that `Embedding::save` was given in CallerState::tensors.

/// Saves variables and the caller's state as one step of the run, in one commit: see
/// Embedding::save. Returns the step's directory. Throws ValueError naming the variable for a name
/// that cannot be saved or is that of a tensor in `state`, or a step < 0; StateError if the step is
/// saved already; IoError.
EMBERTABLE_API std::filesystem::path save_variables(const CheckpointRun& run, std::int64_t step,
                                                    const CheckpointVariables& variables,
                                                    const CallerState& state = {});

/// Copies a whole variable into a tensor that the caller can put into a CallerState.
EMBERTABLE_API DenseTensor dense_tensor_of(const CheckpointVariable& variable);

/// Gives the variables their saved values; each component reads its own rows. Everything is read
/// before the first variable changes. `path` is the directory of a step, or of a run, which stands
/// for its latest step. Returns the step and what the caller saved with it, without the tensors.
///
/// Throws KeyError naming a variable that the checkpoint lacks; ValueError naming every variable
/// whose saved dtype or shape is another; StateError for a component that is not assignable;
/// IoError; DataLoss naming file and block.
EMBERTABLE_API SavedState restore_variables(const std::filesystem::path& path,
                                            const CheckpointVariables& variables);

/// Returns an initial value for a variable that is made later: each component reads its own rows
/// when it is made. `path` is that of `restore_variables`. Opens the checkpoint at once. Throws
/// KeyError naming a variable that it lacks, IoError, DataLoss; ValueError for a tensor of a dtype
/// that no variable has.
EMBERTABLE_API InitialValue saved_value(const std::filesystem::path& path, const std::string& name);

}  // namespace embertable
