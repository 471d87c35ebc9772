#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "embertable/config.h"
#include "embertable/embedding.h"

namespace embertable::jobs {

/// Returns the rows of a table, [vocabulary_size, dim].
std::vector<float> all_rows(const Embedding& engine, const std::string& table);

/// Adds to each vector [lists, dim] the combined rows of its list, summed in double; an empty list
/// adds nothing. `splits` is [lists + 1]; `ids` are rows of `rows` [.., dim].
void add_combined(std::span<const std::int64_t> splits, std::span<const std::int32_t> ids,
                  std::span<const float> rows, std::int32_t dim, Combiner combiner,
                  std::span<float> vectors);

}  // namespace embertable::jobs
