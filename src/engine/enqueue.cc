#include <unistd.h>

#include <algorithm>

#include "base/float_environment.h"
#include "embertable/errors.h"
#include "engine/core.h"
#include "engine/output_shapes.h"

namespace embertable::engine {
namespace {

constexpr std::int64_t kMostBuckets = 4096;
constexpr std::int64_t kSmallTableBytes =
    128 << 10;  ///< such one-hot tables are updated without grouping

std::int64_t ids_in(const FeatureIds& ids) {
  return std::visit([](const auto& of_kind) { return of_kind.values.size(); }, ids);
}

/// Rows and slots of one bucket should fill about a quarter of the second-level cache.
std::int64_t quarter_of_cache() {
  static const std::int64_t bytes = [] {
    const long level2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return std::clamp<std::int64_t>(level2 / 4, 64 << 10, 512 << 10);
  }();
  return bytes;
}

const FeatureWeights& weights_of(const Batch& batch, std::int64_t feature) {
  static const FeatureWeights kNone;
  return batch.weights ? (*batch.weights)[feature] : kNone;
}

}  // namespace

void Core::check_batches(std::span<const Batch> batches, std::string_view call) const {
  const auto count = static_cast<std::int64_t>(batches.size());
  if (count != 1 && count != replicas_) {
    throw ValueError(std::string(call) + ": there must be one batch, or one for each of " +
                     std::to_string(replicas_) + " replicas, got " + std::to_string(count));
  }
  for (const Batch& batch : batches)
    assert_same_structure(features_.structure(), batch.features.structure(), "features");
}

const Batch& Core::batch_of(std::span<const Batch> batches, std::int32_t replica) const {
  return batches.size() == 1 ? batches.front() : batches[static_cast<std::size_t>(replica)];
}

Shape Core::detected_shape(const Batch& batch, std::int64_t feature) const {
  const FeatureSpec& spec = specs_[static_cast<std::size_t>(feature)];
  return detected_output_shape(batch.features[feature], spec.max_sequence_length,
                               spec.shape_is_configured, spec.path);
}

/// The shapes that the first batches ask for: one for all replicas, or the largest where batches
/// may vary.
std::vector<Shape> Core::detect_shapes(std::span<const Batch> batches) const {
  std::vector<Shape> detected;
  for (std::int64_t i = 0; i < features_.size(); ++i) {
    Shape common = detected_shape(batches.front(), i);
    for (std::size_t replica = 1; replica < batches.size(); ++replica) {
      const Shape shape = detected_shape(batches[replica], i);
      if (shapes_[i].has_rank()) {
        check_shape(features_.path(i), shapes_[i], shape, options_.variable_batch);
      } else if (options_.variable_batch && shape.rank() > 0 && common.rank() > 0) {
        if (shape[0] > common[0]) common = shape;
      } else if (!(shape == common)) {
        throw ValueError("feature '" + features_.path(i) + "': replica " + std::to_string(replica) +
                         " asks for output shape " + shape.to_string() + ", replica 0 for " +
                         common.to_string());
      }
    }
    detected.push_back(common);
  }
  return detected;
}

void Core::check_against_built(const Batch& batch) const {
  for (std::int64_t i = 0; verify && i < features_.size(); ++i)
    check_shape(features_.path(i), shapes_[i], detected_shape(batch, i), options_.variable_batch);
  if (batch.weights)
    assert_same_structure(features_.structure(), batch.weights->structure(), "weights");
}

/// Everything about the first batches is checked before the first table exists.
void Core::build_for(std::span<const Batch> batches) {
  if (!verify)
    throw ValueError(
        "enqueue: the engine is not built, and verify_output_shapes_on_enqueue is off");
  const std::vector<Shape> detected = options_.revision == ApiRevision::kBatchSize
                                          ? shapes_of_batch_size(batches)
                                          : detect_shapes(batches);
  check_shapes(features_, shapes_.leaves(), detected, options_.variable_batch);
  for (const Batch& batch : batches) {
    if (batch.weights)
      assert_same_structure(features_.structure(), batch.weights->structure(), "weights");
  }
  const std::vector<Shape> shapes =
      resolve_shapes(features_, shapes_.leaves(), detected, options_.merge_partial_shapes);
  Arena memory;
  for (std::size_t replica = 0; replica < batches.size(); ++replica) {
    for (std::int64_t i = 0; i < features_.size(); ++i) {
      FeatureSpec spec = specs_[static_cast<std::size_t>(i)];
      spec.output_shape = shapes[static_cast<std::size_t>(i)];
      FeatureReader reader;
      reader.start(spec, batches[replica].features[i], weights_of(batches[replica], i),
                   static_cast<std::int32_t>(replica), 0, memory);
      for (std::int64_t tile = 0; tile < reader.tiles(); ++tile) reader.read_tile(tile, level_);
      reader.finish();
    }
  }
  build(detected);
}

/// Shapes and structures, in the order in which the original checks them; the first good batch
/// builds.
void Core::prepare(std::span<const Batch> batches) {
  const std::lock_guard lock(building_);
  if (!built_) return build_for(batches);
  for (const Batch& batch : batches) check_against_built(batch);
}

void Core::choose_buckets(Step& step, const Batch& batch) {
  const std::lock_guard lock(bucket_choice_);
  if (!step.buckets.empty()) return;
  const std::int64_t target =
      options_.tuning.bucket_bytes > 0 ? options_.tuning.bucket_bytes : quarter_of_cache();
  for (std::size_t t = 0; t < assembly_.tables.size(); ++t) {
    const StoredTable& table = tables_->tables()[t];
    const RowBlock& rows = table.shards.front().block();
    std::int64_t entries = 0, outputs = 0;
    for (const std::int64_t feature : assembly_.tables[t].features) {
      entries += ids_in(batch.features[feature]) * replicas_;
      outputs = std::max(outputs, shapes_[feature].num_elements());
    }
    const double unique =
        std::min(static_cast<double>(entries) * unique_share_[t].load(std::memory_order_relaxed),
                 static_cast<double>(table.vocabulary_size));
    std::int64_t row_bytes = rows.stride * 4;
    for (std::int32_t slot = 0; slot < rows.slots; ++slot)
      row_bytes += rows.slot_stride[slot] == 1 ? 8 : 0;
    const bool one_source = replicas_ == 1 && assembly_.tables[t].features.size() == 1;
    const bool small = one_source && table.vocabulary_size * table.dim * 4 <= kSmallTableBytes &&
                       entries * 2 >= table.vocabulary_size && outputs <= kPieceRows &&
                       options_.tuning.bucket_bytes == 0;
    const auto buckets = static_cast<std::int64_t>(unique * static_cast<double>(row_bytes) /
                                                   static_cast<double>(target)) +
                         1;
    step.buckets.push_back(small ? 1 : static_cast<std::int32_t>(std::min(buckets, kMostBuckets)));
  }
}

void Core::start_reading(Step& step, std::int32_t replica, const Batch& batch, bool training) {
  choose_buckets(step, batch);
  ReplicaBatch& mine = step.replica[static_cast<std::size_t>(replica)];
  mine.memory.reset();
  mine.items.clear();
  for (std::int64_t i = 0; i < features_.size(); ++i) {
    const auto table = static_cast<std::size_t>(assembly_.table_of[static_cast<std::size_t>(i)]);
    const std::int32_t buckets = training && hosts_ == 1 ? step.buckets[table] : 0;
    FeatureReader& reader = mine.readers[static_cast<std::size_t>(i)];
    reader.start(specs_[static_cast<std::size_t>(i)], batch.features[i], weights_of(batch, i),
                 replica, buckets, mine.memory);
    for (std::int64_t tile = 0; tile < reader.tiles(); ++tile)
      mine.items.push_back({&reader, tile});
  }
}

/// Reads what was started for replicas first <= r < last.
void Core::finish_reading(Step& step, std::int32_t first, std::int32_t last) {
  std::int64_t items = 0, ids = 0;
  for (std::int32_t r = first; r < last; ++r) {
    items += static_cast<std::int64_t>(step.replica[static_cast<std::size_t>(r)].items.size());
    for (std::int64_t i = 0; i < features_.size(); ++i) ids += step.plan(r, i).row.size;
  }
  const auto read = [&](const WorkItem& work) {
    const FloatEnvironment ours;
    std::int64_t index = work.index;
    std::int32_t r = first;
    for (;
         index >= static_cast<std::int64_t>(step.replica[static_cast<std::size_t>(r)].items.size());
         ++r)
      index -= static_cast<std::int64_t>(step.replica[static_cast<std::size_t>(r)].items.size());
    const ReplicaBatch::Item& item =
        step.replica[static_cast<std::size_t>(r)].items[static_cast<std::size_t>(index)];
    item.reader->read_tile(item.tile, level_);
  };
  if (ids < options_.tuning.inline_floats || items == 1) {
    for (std::int64_t i = 0; i < items; ++i) read({i, -1, 0});
  } else {
    executor_->run(items, read);
  }
  for (std::int32_t r = first; r < last; ++r)
    for (std::int64_t i = 0; i < features_.size(); ++i) step.reader(r, i).finish();
}

void Core::enqueue(std::span<const Batch> batches, bool training, std::string_view name) {
  require_accelerated("enqueue");
  require_home("enqueue");
  require_sound("enqueue");
  const FloatEnvironment ours;
  std::vector<Batch> sized;
  batches = with_batch_size(batches, "enqueue", sized);
  check_batches(batches, "enqueue");
  prepare(batches);
  tables();
  for (auto& mutex : reading_) mutex->lock();
  const auto unlock = [this](void*) {
    for (auto& mutex : reading_) mutex->unlock();
  };
  const std::unique_ptr<void, decltype(unlock)> locked(this, unlock);

  Step* step = schedule_.open(0);
  for (std::int32_t r = 1; r < replicas_; ++r) {
    if (schedule_.open(r) != step) {
      throw StateError("enqueue: replica " + std::to_string(r) +
                       " has enqueued another number of batches than replica 0; "
                       "enqueue its batches one by one");
    }
  }
  for (std::int32_t r = 0; r < replicas_; ++r)
    start_reading(*step, r, batch_of(batches, r), training);
  finish_reading(*step, 0, replicas_);
  for (std::int32_t r = 0; r < replicas_; ++r) schedule_.commit(r, training, name);
}

void Core::enqueue(std::int32_t replica, const Batch& batch, bool training, std::string_view name) {
  require_accelerated("enqueue");
  require_home("enqueue");
  require_sound("enqueue");
  const FloatEnvironment ours;
  std::vector<Batch> sized;
  const std::span<const Batch> one = with_batch_size(std::span(&batch, 1), "enqueue", sized);
  check_batches(one, "enqueue");
  prepare(one);
  tables();
  const std::lock_guard lock(*reading_[static_cast<std::size_t>(replica)]);
  Step* step = schedule_.open(replica);
  start_reading(*step, replica, one.front(), training);
  finish_reading(*step, replica, replica + 1);
  schedule_.commit(replica, training, name);
}

}  // namespace embertable::engine
