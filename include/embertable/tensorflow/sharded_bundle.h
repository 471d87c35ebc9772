#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "embertable/tensorflow/tensor_bundle.h"
#include "embertable/variables/variable_checkpoint.h"
#include "embertable/version.h"

namespace embertable {

/// Adds a variable to a tensor bundle: a slice for each component that has rows, "13 5 0,5:0,5", or
/// the whole if one component has all rows. It is read row by row; no copy of a component is made.
/// Throws what TensorBundleWriter::add_slice throws.
EMBERTABLE_API void add(TensorBundleWriter& writer, const std::string& key,
                        const CheckpointVariable& variable);

/// Gives variables, by the keys of their tensors, the values of a bundle, whatever components and
/// slices either side has. Every dtype and shape is compared (TensorBundleReader::require), and
/// every value is read, before the first variable changes: all of them get their values, or none.
/// Components without rows ask for nothing. Throws KeyError, ValueError, IoError, DataLoss;
/// StateError for a variable that cannot be assigned.
EMBERTABLE_API void restore(const TensorBundleReader& reader, const CheckpointVariables& variables);

/// Variables by their paths from the root: {"model", "kernel"} is the attribute `kernel` of the
/// object `model`.
using VariablesOfObjects = std::map<std::vector<std::string>, CheckpointVariable>;

/// Writes a checkpoint that tf.train.Checkpoint(name=variable, ...).restore(prefix) can read: keys,
/// object graph, and a save_counter of 1. Names are those of attributes of the root, and are
/// escaped in keys. Throws ValueError for the name "save_counter" and an empty path; what
/// TensorBundleWriter throws.
EMBERTABLE_API void save_tensor_bundle(const std::filesystem::path& prefix,
                                       const CheckpointVariables& variables);
EMBERTABLE_API void save_tensor_bundle(const std::filesystem::path& prefix,
                                       const VariablesOfObjects& variables);

/// Restores variables from a checkpoint that either side has written. Throws ValueError for an
/// empty path; what `restore` throws.
EMBERTABLE_API void restore_tensor_bundle(const std::filesystem::path& prefix,
                                          const CheckpointVariables& variables);
EMBERTABLE_API void restore_tensor_bundle(const std::filesystem::path& prefix,
                                          const VariablesOfObjects& variables);

}  // namespace embertable
