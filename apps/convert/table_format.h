#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace embertable::jobs {

/// Formats in which other programs keep tables.
enum class TableFormat : std::uint8_t {
  kTensorFlow,  ///< a checkpoint of tf.train.Checkpoint:
                ///< include/embertable/tensorflow/tensor_bundle.h
  kNpy,         ///< an .npy file for each table and slot
  kWord2vec,    ///< words with their vectors, one table per file
  kInt8,        ///< a checkpoint of this library to serve, whose rows have a byte for each number
};

/// A table or a slot that was written or read: "video", "video/accumulators".
struct ConvertedArray {
  std::string name;
  std::vector<std::int64_t> shape;
  std::string place;  ///< file, or key of a tensor
};

/// Called for each array when it is done.
using Converted = std::function<void(const ConvertedArray&)>;

}  // namespace embertable::jobs
