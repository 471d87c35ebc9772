#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "embertable/checkpoint.h"
#include "embertable/export.h"
#include "embertable/variables/sharded_variable.h"
#include "embertable/variables/variable_creator.h"

namespace embertable {

/// A variable as a checkpoint knows it: in one piece, or in any number of components.
class EMBERTABLE_API CheckpointVariable {
 public:
  CheckpointVariable(Variable variable);                // NOLINT: written as a variable
  CheckpointVariable(const ShardedVariable& variable);  // NOLINT: written as a variable
  CheckpointVariable(const CreatedVariable& variable);  // NOLINT: written as a variable

  const std::vector<Variable>& components() const noexcept { return components_; }
  const Shape& shape() const noexcept { return shape_; }  ///< of all components
  DType dtype() const noexcept { return components_.front().dtype(); }

 private:
  std::vector<Variable> components_;
  Shape shape_;
};

/// By the names that they have in checkpoints.
using CheckpointVariables = std::map<std::string, CheckpointVariable>;

// Variables are saved whole, as the caller's dense tensors, so that any number of components opens
// what any other number has saved. A variable of an engine's table is found under its name too, and
// what `Embedding::save` was given as CallerState::tensors.

/// Saves variables and the caller's state as one step of the run, in one commit: see
/// Embedding::save. Gives the step's directory. Throws ValueError naming the variable for a name
/// that cannot be saved or is that of a tensor in `state`, or a step < 0; StateError if the step is
/// saved already; IoError.
EMBERTABLE_API std::filesystem::path save_variables(const CheckpointRun& run, std::int64_t step,
                                                    const CheckpointVariables& variables,
                                                    const CallerState& state = {});

/// The same for the commit of somebody else: a tensor for his CallerState. A copy.
EMBERTABLE_API DenseTensor dense_tensor_of(const CheckpointVariable& variable);

/// Gives the variables their saved values, each component reading its rows. Everything is read
/// before the first of them changes. Gives the step and what the caller saved with it, but for the
/// tensors.
///
/// Throws KeyError naming a variable that the checkpoint lacks; ValueError naming every variable
/// whose saved dtype or shape is another; StateError for a component that is not assignable;
/// IoError; DataLoss naming file and block.
EMBERTABLE_API SavedState restore_variables(const std::filesystem::path& path,
                                            const CheckpointVariables& variables);

/// What a variable that is made later starts with: each component reads its own rows as it is made.
/// Opens the checkpoint at once. Throws KeyError naming a variable that it lacks, IoError,
/// DataLoss; ValueError for a tensor of a dtype that no variable has.
EMBERTABLE_API InitialValue saved_value(const std::filesystem::path& path, const std::string& name);

}  // namespace embertable
