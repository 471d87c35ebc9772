#include "apps/jobs/spec/predictor.h"

#include <fmt/format.h>

#include "embertable/errors.h"

namespace embertable::jobs {

std::int64_t NewRows::ranked_items() const {
  const std::int64_t wanted = items.value_or(kItems);
  if (wanted < 1 || wanted > kMostItems) {
    throw ValueError(fmt::format("the number of items for each user must be 1 to {}, got {}",
                                 kMostItems, wanted));
  }
  if (!copy.empty()) {
    throw ValueError(
        fmt::format("columns to copy must be for scores of records: lines of items have the user's "
                    "key, got '{}'",
                    copy.front()));
  }
  if (!copy_ids.value_or(true)) {
    throw ValueError(
        "columns of ids to leave out must be for scores of records: lines of items have the user's "
        "key");
  }
  if (!has_label) {
    throw ValueError(
        "rows without the label's column must be for scores of records: where items are ranked, it "
        "is not read");
  }
  return wanted;
}

}  // namespace embertable::jobs
