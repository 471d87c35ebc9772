#include "engine/intake/bucket_choice.h"

#include <algorithm>
#include <variant>

namespace embertable::engine {
namespace {

std::int64_t ids_in(const FeatureIds& ids) {
  return std::visit([](const auto& of_kind) { return of_kind.values.size(); }, ids);
}

}  // namespace

BucketChoice::BucketChoice(const Setup& setup)
    : setup_(setup), outputs_(setup.features.size()), expected_(setup.assembly.tables.size()) {}

void BucketChoice::use(std::span<const StepTable> tables, std::span<const NamedShares> shares,
                       std::span<const Shape> shapes) noexcept {
  shares_ = shares;
  for (std::size_t t = 0; t < expected_.size(); ++t) {
    expected_[t] = expected_update(tables[t]);
    expected_[t].one_source = setup_.cores == 1 && setup_.all_hosts == 1 &&
                              setup_.assembly.tables[t].features.size() == 1;
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) outputs_[i] = shapes[i].num_elements();
}

void BucketChoice::choose(Step& step, const Feed& feed) {
  const std::lock_guard lock(mutex_);
  if (!step.cuts.empty()) return;
  for (std::int64_t t = 0; t < std::ssize(expected_); ++t) {
    ExpectedUpdate& update = expected_[t];
    update.unique_share = shares_[t].unique.load(std::memory_order_relaxed);
    update.once_share = shares_[t].once.load(std::memory_order_relaxed);
    update.entries = update.outputs = 0;
    for (const Batch& batch : feed.batches) {
      for (const std::int64_t feature : setup_.assembly.tables[t].features) {
        const FeatureIds& ids = batch.features[feature];
        update.entries += ids_in(ids);
        update.outputs = std::max(update.outputs, outputs_of(feature, ids));
      }
    }
    update.entries *= setup_.strategy->cores();
    update.entries /= std::ssize(feed.batches) * feed.parts();
    if (feed.cores.last - feed.cores.first < setup_.cores)
      update.entries = std::max(update.entries, shares_[t].entries.load(std::memory_order_relaxed));
  }
  choose_buckets(expected_, setup_.executor->workers(), setup_.options.tuning.bucket_bytes,
                 setup_.level, step.cuts);
}

/// Returns the output rows that a batch asks for, as far as its ids tell: at most those built.
std::int64_t BucketChoice::outputs_of(std::int64_t feature, const FeatureIds& ids) const {
  const std::int64_t built = outputs_[feature];
  if (!setup_.options.variable_batch || setup_.features[feature].max_sequence_length > 0)
    return built;
  if (const auto* ragged = std::get_if<RaggedIds>(&ids))
    return std::clamp<std::int64_t>(ragged->row_splits.size() - 1, 0, built);
  if (const auto* dense = std::get_if<DenseIds>(&ids)) return std::min(dense->values.size(), built);
  return built;
}

}  // namespace embertable::engine
