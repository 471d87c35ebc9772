#include "input/feature_reader.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/assert.h"
#include "input/batch_rules.h"
#include "input/detected_shape.h"

namespace embertable {
namespace {

using input::EntryTile;
using input::EntryWriter;

/// Moves a tile's entries down to the end of the entries before them.
void move_entries(const input::EntryCopy& copy, EntryTile& tile, std::int64_t to) {
  const auto size = static_cast<std::size_t>(tile.kept);
  const std::size_t row_bytes = copy.plan.row.wide ? sizeof(std::uint64_t) : sizeof(std::uint32_t);
  char* const row = copy.plan.row.as<char>();
  std::memmove(row + static_cast<std::size_t>(to) * row_bytes,
               row + static_cast<std::size_t>(tile.begin) * row_bytes, size * row_bytes);
  if (copy.weighted) {
    std::memmove(copy.weight + to, copy.weight + tile.begin, size * sizeof(float));
  }
  if (tile.split_written) {
    for (std::int64_t i = tile.first; i < tile.last; ++i) copy.split[i] -= tile.begin - to;
  }
  tile.begin = to;
}

}  // namespace

void FeatureReader::start(const FeatureSpec& spec, const FeatureIds& ids,
                          const FeatureWeights& weights, std::int32_t replica, std::int32_t buckets,
                          Arena& arena) {
  EMBERTABLE_ASSERT(spec.output_shape.fully_defined());
  *this = FeatureReader();
  arena_ = &arena;
  refuse_ = {&spec, replica};
  copy_.spec = &spec;
  copy_.ids = std::visit([](const auto& kind) { return kind.values; }, ids);
  copy_.combiner = spec.combiner;
  if (const std::string rule = input::broken_rank_rule(ids); !rule.empty()) refuse_(rule);
  require_fewer_than_2_31("ids", copy_.ids.size());
  if (!std::holds_alternative<std::monostate>(weights)) {
    copy_.weighted = true;
    copy_.weights = input::weights_of_kind(ids, weights, refuse_.place());
    input::require_weights(copy_.ids.size(), copy_.weights.size(), refuse_.place());
  }
  if (const auto* const sparse = std::get_if<SparseIds>(&ids)) {
    input::SparseReader& reader = kind_.emplace<input::SparseReader>();
    shape_ = reader.start(*sparse, refuse_);
  } else if (const auto* const ragged = std::get_if<RaggedIds>(&ids)) {
    input::RaggedReader& reader = kind_.emplace<input::RaggedReader>();
    shape_ = reader.start(*ragged, refuse_);
    if (reader.takes_single_ids()) {
      copy_.weighted = false;
      copy_.combiner = Combiner::kSum;
    }
  } else {
    shape_ = start_dense(std::get<DenseIds>(ids));
    // One id of weight 1 per output row is a plain copy, whatever the combiner.
    copy_.combiner = Combiner::kSum;
  }

  LookupPlan& plan = copy_.plan;
  const std::int64_t outputs = shape_.num_elements();
  const std::int64_t entries = copy_.ids.size();
  require_fewer_than_2_31("output rows", outputs);
  plan = {.outputs = outputs};
  plan.row.wide = spec.wide;
  plan.row.size = entries;
  plan.row.data = spec.wide ? static_cast<void*>(arena.take<std::uint64_t>(entries).data())
                            : static_cast<void*>(arena.take<std::uint32_t>(entries).data());
  copy_.split = arena.take<std::int64_t>(outputs + 1).data();
  if (copy_.weighted) copy_.weight = arena.take<float>(entries).data();
  if (copy_.combiner != Combiner::kSum) copy_.denominator = arena.take<float>(outputs).data();
  if (buckets > 1) {
    copy_.buckets = static_cast<std::uint32_t>(buckets);
    plan.counts_stride = counts_stride_of(buckets);
    plan.counts = arena.take<std::uint32_t>(plan.tiles() * plan.counts_stride);
  }
  tile_ = arena.take<EntryTile>(plan.tiles());
  for (std::int64_t t = 0; t < tiles(); ++t) {
    tile_[t] = EntryTile{.first = t * kTileRows, .last = std::min(outputs, (t + 1) * kTileRows)};
  }
}

Shape FeatureReader::start_dense(const DenseIds& ids) const {
  const FeatureSpec& spec = *copy_.spec;
  const std::int64_t count = ids.values.size();
  if (ids.shape.has_rank() && ids.shape.num_elements() != count) {
    refuse_("dense ids of shape " + ids.shape.to_string() + " must number " +
            std::to_string(ids.shape.num_elements()) + ", got " + std::to_string(count));
  }
  if (const std::optional<Shape> shape = spec.shape_of(count)) return *shape;
  refuse_("dense ids must give one id per element of output shape " +
          spec.output_shape.to_string() + ", got " + std::to_string(count));
}

void FeatureReader::require_fewer_than_2_31(std::string_view what, std::int64_t number) const {
  if (number <= input::kMostEntries) return;
  refuse_("a feature must have fewer than 2^31 " + std::string(what) + " per replica, got " +
          std::to_string(number));
}

void FeatureReader::read_tile(std::int64_t index, SimdLevel level) noexcept {
  EntryTile& tile = tile_[index];
  tile.level = level;
  if (const auto* const sparse = std::get_if<input::SparseReader>(&kind_)) {
    sparse->read_tile(copy_, tile, index);
  } else if (const auto* const ragged = std::get_if<input::RaggedReader>(&kind_)) {
    ragged->read_tile(copy_, tile, index);
  } else {
    tile.end = tile.last;
    EntryWriter writer(copy_, tile, tile.first, level);
    writer.take(tile.first, tile.outputs());
    writer.finish(index, true);
  }
}

/// False if tiles did not read the caller's entries one after the other: splits fall, coordinates
/// are not in order, or another thread has changed them between two tiles.
bool FeatureReader::tiles_adjoin() const {
  std::int64_t end = 0;
  for (const EntryTile& tile : tile_) {
    if (tile.begin != end || tile.end < end) return false;
    end = tile.end;
  }
  return tile_.empty() || end == copy_.ids.size();
}

bool FeatureReader::entries_in_order() const {
  if (tile_.empty()) return copy_.ids.size() == 0;
  return tiles_adjoin() &&
         std::all_of(tile_.begin(), tile_.end(), [](const EntryTile& t) { return t.in_order; });
}

void FeatureReader::recount(SimdLevel level) noexcept {
  if (copy_.buckets == 0) return;
  for (EntryTile& tile : tile_) count_tile(copy_, tile, &tile - tile_.data(), level);
}

void FeatureReader::refuse_id(std::int64_t entry) const {
  std::int64_t position = entry, output = entry;
  if (const auto* const sparse = std::get_if<input::SparseReader>(&kind_)) {
    position = sparse->position_of(entry);
    output = sparse->output_of(position);
  } else if (const auto* const ragged = std::get_if<input::RaggedReader>(&kind_)) {
    output = ragged->output_of(position);
  }
  const std::int64_t rows = copy_.spec->vocabulary_size;
  refuse_.at(output, position, input::id_rule(rows, copy_.ids[entry]));
}

void FeatureReader::finish() {
  if (auto* const sparse = std::get_if<input::SparseReader>(&kind_)) {
    if (!entries_in_order()) truncated_ = sparse->sort(copy_, tile_, *arena_);
    sparse->require_all_inside(refuse_);
  } else if (const auto* const ragged = std::get_if<input::RaggedReader>(&kind_)) {
    for (const EntryTile& tile : tile_)
      if (tile.bad_split >= 0) ragged->refuse_fall(tile.bad_split, refuse_);
    if (!tiles_adjoin()) input::refuse_changing_splits(refuse_.place());
  }
  for (const EntryTile& tile : tile_)
    if (tile.bad_entry >= 0) refuse_id(tile.bad_entry);

  LookupPlan& plan = copy_.plan;
  bool one_hot = true, plain_weights = true, plain_denominators = true;
  std::int64_t entries = 0;
  for (EntryTile& tile : tile_) {
    if (tile.begin != entries) move_entries(copy_, tile, entries);
    entries += tile.kept;
    one_hot = one_hot && tile.one_hot;
    plain_weights = plain_weights && tile.plain_weights;
    plain_denominators = plain_denominators && tile.plain_denominators;
    plan.zero_denominators = plan.zero_denominators || tile.zero_denominators;
    dropped_ += tile.dropped;
    truncated_ += tile.truncated;
    empty_ += tile.empty;
  }
  plan.row.size = entries;
  if (one_hot && plain_weights) return;

  const auto outputs = static_cast<std::size_t>(plan.outputs);
  for (EntryTile& tile : tile_) {
    if (!tile.split_written) write_one_hot_splits(copy_, tile);
    if (!plain_denominators && !tile.denominator_written) {
      std::fill(copy_.denominator + tile.first, copy_.denominator + tile.last, 1.0f);
    }
  }
  copy_.split[outputs] = entries;
  plan.split = {copy_.split, outputs + 1};
  if (!plain_weights) plan.weight = {copy_.weight, static_cast<std::size_t>(entries)};
  if (!plain_denominators) plan.denominator = {copy_.denominator, outputs};
}

}  // namespace embertable
