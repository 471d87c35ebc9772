#include "apps/jobs/run/neighbors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

double dot(const float* a, const float* b, std::int64_t dim) {
  double sum = 0;
  for (std::int64_t i = 0; i < dim; ++i)
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

}  // namespace

std::vector<Neighbor> nearest_rows(const SavedTableRows& table, std::int64_t row,
                                   std::int64_t count) {
  if (table.dim() < 2) {
    throw ValueError(fmt::format("table '{}': dim must be at least 2 to have neighbours, got {}",
                                 table.name(), table.dim()));
  }
  const float* own = table.row(row);
  const double own_length = std::sqrt(dot(own, own, table.dim()));
  std::vector<Neighbor> found;
  for (std::int64_t other = 0; other < table.rows(); ++other) {
    if (other == row) continue;
    const float* values = table.row(other);
    const double length = std::sqrt(dot(values, values, table.dim()));
    const double lengths = own_length * length;
    const bool zero = own_length == 0 || length == 0 || lengths == 0;
    found.push_back({other, zero ? 0 : dot(own, values, table.dim()) / lengths});
  }
  const auto wanted = found.begin() + std::min(count, static_cast<std::int64_t>(found.size()));
  // A row of infinities has no cosine; such rows come last, so that all rows have an order.
  const auto place = [](const Neighbor& neighbor) {
    const bool unknown = std::isnan(neighbor.cosine);
    return std::tuple(unknown, unknown ? 0 : -neighbor.cosine, neighbor.row);
  };
  std::partial_sort(found.begin(), wanted, found.end(),
                    [&](const Neighbor& a, const Neighbor& b) { return place(a) < place(b); });
  found.erase(wanted, found.end());
  return found;
}

}  // namespace embertable::jobs
