#include "apps/jobs/run/given_activations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <utility>

#include "apps/convert/saved_table_parts.h"

namespace embertable::jobs {

GivenActivations::GivenActivations(std::map<std::string, DenseTensor> by_feature,
                                   std::vector<Feature> features, std::filesystem::path directory)
    : by_feature_(std::move(by_feature)),
      features_(std::move(features)),
      directory_(std::move(directory)) {
  if (by_feature_.empty()) return;
  for (const Feature& feature : features_) {
    const auto given = by_feature_.find(feature.name);
    const bool has_rows = given != by_feature_.end() && !given->second.shape.empty();
    check(feature.name, {has_rows ? given->second.shape[0] : 0, feature.dim});
  }
  if (by_feature_.size() == features_.size()) return;
  throw misfit(directory_, fmt::format("the run must have activations of {} features, got {}",
                                       features_.size(), by_feature_.size()));
}

void GivenActivations::check(const std::string& feature,
                             const std::vector<std::int64_t>& shape) const {
  const auto given = by_feature_.find(feature);
  if (given == by_feature_.end())
    throw misfit(directory_,
                 fmt::format("the run must have the tensor 'looked_up.{}', got none", feature));
  const DenseTensor& tensor = given->second;
  if (tensor.dtype == "F32" && tensor.shape == shape) return;
  throw misfit(directory_,
               fmt::format("tensor 'looked_up.{}' must be F32 [{}], got {} [{}]", feature,
                           fmt::join(shape, ", "), tensor.dtype, fmt::join(tensor.shape, ", ")));
}

void GivenActivations::take(std::int64_t samples, std::span<std::vector<float>> rows) {
  for (const Feature& feature : features_)
    check(feature.name, {samples * feature.width, feature.dim});
  for (std::size_t f = 0; f < features_.size(); ++f) {
    const std::string& bytes = by_feature_.at(features_[f].name).bytes;
    std::memcpy(rows[f].data(), bytes.data(), bytes.size());
  }
  by_feature_.clear();
}

}  // namespace embertable::jobs
