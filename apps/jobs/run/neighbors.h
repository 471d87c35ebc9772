#pragma once

#include <cstdint>
#include <vector>

#include "apps/convert/saved_model.h"

namespace embertable::jobs {

struct Neighbor {
  std::int64_t row = 0;
  double cosine = 0;
};

/// Returns the `count` rows most similar to `row` by cosine, excluding `row`: the nearest first,
/// equal ones by number. A row of zeros has cosine 0 with all. Cosines that are NaN, as those of
/// infinite rows, come last. Throws ValueError for a table of dim
/// 1.
std::vector<Neighbor> nearest_rows(const SavedTableRows& table, std::int64_t row,
                                   std::int64_t count);

}  // namespace embertable::jobs
