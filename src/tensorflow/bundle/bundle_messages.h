#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "embertable/tensorflow/tensor_bundle.h"

namespace embertable::formats {

/// The first entry of an index. Source: TF tensor_bundle.proto, versions.proto.
struct BundleHeader {
  std::int32_t num_shards = 0;
  std::int32_t endianness = 0;  ///< 0: little, 1: big
  std::int32_t producer = 0;
  std::int32_t min_consumer = 0;
  std::vector<std::int32_t> bad_consumers;
  friend bool operator==(const BundleHeader&, const BundleHeader&) = default;
};

/// Any other entry: where a tensor or a slice is stored, or of which slices a tensor consists.
struct BundleEntry {
  std::int32_t dtype = 0;
  std::vector<std::int64_t> shape;
  std::int32_t shard = 0;
  std::int64_t offset = 0;
  std::int64_t size = 0;
  std::uint32_t masked_sum = 0;
  std::vector<TensorSlice> slices;
  friend bool operator==(const BundleEntry&, const BundleEntry&) = default;
};

std::string serialize(const BundleHeader& header);
std::string serialize(const BundleEntry& entry);

/// Return false for bytes that are not such a message. Unknown fields are skipped.
bool parse(std::string_view bytes, BundleHeader& header);
bool parse(std::string_view bytes, BundleEntry& entry);

/// Returns the key under which a slice of the tensor `name` is stored: order-preserving, and before
/// every name of a tensor. Source: TF saved_tensor_slice_util.cc, EncodeTensorNameSlice.
std::string slice_key(std::string_view name, const TensorSlice& slice);

/// Appends a number as keys contain it. Source: TF tsl/lib/strings/ordered_code.cc.
void append_ordered(std::uint64_t number, std::string& key);
void append_ordered_signed(std::int64_t number, std::string& key);
void append_ordered(std::string_view text, std::string& key);

}  // namespace embertable::formats
