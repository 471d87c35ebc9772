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
  const auto refuse = [](std::string_view name) {
    throw ValueError(fmt::format(
        "{} must be of scores of records: lines of items have the user's key, and no label", name));
  };
  if (!copy.empty()) refuse(names.copy);
  if (!copy_ids.value_or(true)) refuse(names.no_ids);
  if (!has_label) refuse(names.no_label);
  return wanted;
}

}  // namespace embertable::jobs
