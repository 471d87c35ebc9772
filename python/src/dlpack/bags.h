#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "embertable/batch.h"
#include "python/src/dlpack/exchange_api.h"

namespace embertable::python {

namespace nb = nanobind;

/// What the tensors of a feature may be. Numbers are those that embertable/steps.py passes.
enum class BagForm : std::uint8_t {
  kBagsOrSingles = 0,       ///< bags; 1-D ids without offsets are one for each sample
  kBags = 1,                ///< 2-D ids, or 1-D ids with offsets, where each bag begins
  kBagsWithLastOffset = 2,  ///< bags, and the last offset is the end of the last bag
  kSingles = 3,             ///< ids of any shape, one for each sample
};

/// A batch of tensors as torch.nn.EmbeddingBag takes them. Created and destroyed with the GIL.
struct Bags {
  Batch batch;
  const dlpack::ExchangeApi* api = nullptr;  ///< the functions of the tensors' type
  std::vector<std::int64_t> splits;          ///< row splits of all features that came with offsets
  std::vector<nb::object> tensors;           ///< what the batch borrows from
};

/// Reads a tuple or list with one item for each leaf of `expected`, in flatten order: ids, or a
/// tuple or list of ids, offsets and weights, the last ones None or left out. Empty for anything
/// but plain tensors in memory of the host in C order, of int32 or int64 and weights of float32,
/// whose shapes are right: a slower road reads that, or says what is wrong.
std::optional<Bags> read_bags(nb::handle values, BagForm form, const Structure& expected);

}  // namespace embertable::python
