#include "input/feature_reader.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "embertable/errors.h"
#include "input/rank_rule.h"

namespace embertable {
namespace {

using input::EntryTile;
using input::EntryWriter;

constexpr std::int64_t kCountsPerLine = 64 / sizeof(std::uint32_t);

std::string_view kind_of(const FeatureWeights& weights) {
  constexpr std::string_view kNames[] = {"no", "sparse", "ragged", "dense"};
  return kNames[weights.index()];
}

/// Moves a tile's entries down to the end of the entries before them.
void move_entries(const input::EntryCopy& copy, EntryTile& tile, std::int64_t to) {
  const auto size = static_cast<std::size_t>(tile.kept);
  const std::size_t row_bytes = copy.row.wide ? sizeof(std::uint64_t) : sizeof(std::uint32_t);
  char* const row = copy.row.as<char>();
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
  spec_ = &spec;
  replica_ = replica;
  kind_ = static_cast<Kind>(ids.index());
  sequence_ = 0;
  sorted_ = {};
  tile_ = {};
  plan_ = {};
  dropped_ = 0;
  truncated_ = 0;
  empty_ = 0;
  copy_ = {};
  copy_.ids = std::visit([](const auto& kind) { return kind.values; }, ids);
  copy_.drop = spec.drop_out_of_range;
  copy_.vocabulary_size = spec.vocabulary_size;
  copy_.combiner = spec.combiner;
  if (const std::string rule = input::broken_rank_rule(ids); !rule.empty()) refuse(rule);
  if (copy_.ids.size() > kMaxEntries) {
    refuse("a feature must have fewer than 2^31 ids per replica, got " +
           std::to_string(copy_.ids.size()));
  }
  check_weights(weights);
  switch (kind_) {
    case Kind::kDense:
      start_dense(std::get<DenseIds>(ids));
      break;
    case Kind::kSparse:
      start_sparse(std::get<SparseIds>(ids));
      break;
    case Kind::kRagged:
      start_ragged(std::get<RaggedIds>(ids));
      break;
  }
  take_memory(buckets, arena);
}

void FeatureReader::check_weights(const FeatureWeights& weights) {
  if (std::holds_alternative<std::monostate>(weights)) return;
  if (kind_ == Kind::kDense) {
    refuse("dense ids have no weights, got " + std::string(kind_of(weights)) + " weights");
  }
  const auto* const sparse = std::get_if<SparseWeights>(&weights);
  const auto* const ragged = std::get_if<RaggedWeights>(&weights);
  if (kind_ == Kind::kSparse ? sparse == nullptr : ragged == nullptr) {
    const std::string kind = kind_ == Kind::kSparse ? "sparse" : "ragged";
    refuse("weights of " + kind + " ids must be " + kind + ", got " +
           std::string(kind_of(weights)) + " weights");
  }
  copy_.weighted = true;
  copy_.weights = sparse != nullptr ? sparse->values : ragged->values;
  if (copy_.weights.size() != copy_.ids.size()) {
    refuse_data(-1, -1,
                "weights must be as many as the ids, " + std::to_string(copy_.ids.size()) +
                    ", got " + std::to_string(copy_.weights.size()));
  }
}

bool FeatureReader::is_sequence(int rank) const {
  return rank == 2 && !spec_->shape_is_configured && spec_->max_sequence_length > 0;
}

bool FeatureReader::set_shape(std::int64_t outputs) {
  shape_ = spec_->output_shape;
  plan_ = {.outputs = outputs};
  const std::int64_t built = shape_.num_elements();
  if (outputs == built) return true;
  if (!spec_->variable_batch || shape_.rank() == 0 || outputs > built) return false;
  const std::int64_t inner = built / shape_[0];
  if (outputs % inner != 0) return false;
  shape_ = shape_.with_leading(outputs / inner);
  return true;
}

void FeatureReader::start_dense(const DenseIds& ids) {
  const std::int64_t count = ids.values.size();
  if (ids.shape.has_rank() && ids.shape.num_elements() != count) {
    refuse("dense ids of shape " + ids.shape.to_string() + " must number " +
           std::to_string(ids.shape.num_elements()) + ", got " + std::to_string(count));
  }
  // One id of weight 1 per output row is a plain copy, whatever the combiner.
  copy_.combiner = Combiner::kSum;
  if (!set_shape(count)) {
    refuse("dense ids must give one id per element of output shape " +
           spec_->output_shape.to_string() + ", got " + std::to_string(count));
  }
}

void FeatureReader::take_memory(std::int32_t buckets, Arena& arena) {
  const std::int64_t outputs = plan_.outputs;
  const std::int64_t entries = copy_.ids.size();
  if (outputs > kMaxEntries) {
    refuse("a feature must have fewer than 2^31 output rows per replica, got " +
           std::to_string(outputs));
  }
  copy_.row.wide = spec_->wide;
  copy_.row.size = entries;
  copy_.row.data = spec_->wide ? static_cast<void*>(arena.take<std::uint64_t>(entries).data())
                               : static_cast<void*>(arena.take<std::uint32_t>(entries).data());
  plan_.row = copy_.row;
  copy_.split = arena.take<std::int64_t>(outputs + 1).data();
  if (copy_.weighted) copy_.weight = arena.take<float>(entries).data();
  if (copy_.combiner != Combiner::kSum) copy_.denominator = arena.take<float>(outputs).data();
  if (buckets > 1) {
    copy_.buckets = static_cast<std::uint32_t>(buckets);
    copy_.counts_stride = (buckets + kCountsPerLine - 1) / kCountsPerLine * kCountsPerLine;
    plan_.counts_stride = copy_.counts_stride;
    plan_.counts = arena.take<std::uint32_t>(plan_.tiles() * copy_.counts_stride);
    copy_.counts = plan_.counts.data();
  }
  if (kind_ == Kind::kSparse) {
    sorted_.order = arena.take<input::PlacedEntry>(entries);
    sorted_.spare = arena.take<input::PlacedEntry>(entries);
    sorted_.ids = arena.take<std::int64_t>(entries);
    if (copy_.weighted) sorted_.weights = arena.take<float>(entries);
  }
  tile_ = arena.take<EntryTile>(plan_.tiles());
  for (std::int64_t t = 0; t < tiles(); ++t) {
    tile_[t] = EntryTile{.first = t * kTileRows, .last = std::min(outputs, (t + 1) * kTileRows)};
  }
}

void FeatureReader::read_tile(std::int64_t index, SimdLevel level) noexcept {
  EntryTile& tile = tile_[index];
  tile.level = level;
  switch (kind_) {
    case Kind::kDense:
      return read_dense(tile, level);
    case Kind::kSparse:
      return read_sparse(tile, level);
    case Kind::kRagged:
      break;
  }
  if (splits_.is_int64()) {
    const auto* const splits = static_cast<const std::int64_t*>(splits_.data());
    sequence_ > 0 ? read_ragged_sequences(splits, tile, level) : read_ragged(splits, tile, level);
  } else {
    const auto* const splits = static_cast<const std::int32_t*>(splits_.data());
    sequence_ > 0 ? read_ragged_sequences(splits, tile, level) : read_ragged(splits, tile, level);
  }
}

void FeatureReader::read_dense(EntryTile& tile, SimdLevel level) noexcept {
  EntryWriter writer(copy_, tile, tile.first, level);
  writer.take(tile.first, tile.outputs());
  writer.finish(&tile - tile_.data(), true);
}

void FeatureReader::finish() {
  if (kind_ == Kind::kSparse && !entries_in_order()) sort_entries();
  refuse_first_offence();
  complete_plan();
}

void FeatureReader::recount(SimdLevel level) noexcept {
  for (EntryTile& tile : tile_) count_tile(copy_, tile, &tile - tile_.data(), level);
}

void FeatureReader::complete_plan() {
  bool one_hot = true;
  bool plain_weights = true;
  bool plain_denominators = true;
  std::int64_t entries = 0;
  for (EntryTile& tile : tile_) {
    if (tile.begin != entries) move_entries(copy_, tile, entries);
    entries += tile.kept;
    one_hot = one_hot && tile.one_hot;
    plain_weights = plain_weights && tile.plain_weights;
    plain_denominators = plain_denominators && tile.plain_denominators;
    dropped_ += tile.dropped;
    truncated_ += tile.truncated;
    empty_ += tile.empty;
  }
  plan_.row = copy_.row;
  plan_.row.size = entries;
  if (one_hot && plain_weights) return;

  const auto outputs = static_cast<std::size_t>(plan_.outputs);
  for (EntryTile& tile : tile_) {
    if (!tile.split_written) write_one_hot_splits(copy_, tile);
    if (!plain_denominators && !tile.denominator_written) {
      std::fill(copy_.denominator + tile.first, copy_.denominator + tile.last, 1.0f);
    }
  }
  copy_.split[outputs] = entries;
  plan_.split = {copy_.split, outputs + 1};
  if (!plain_weights) plan_.weight = {copy_.weight, static_cast<std::size_t>(entries)};
  if (!plain_denominators) plan_.denominator = {copy_.denominator, outputs};
}

}  // namespace embertable
