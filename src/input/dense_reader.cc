#include "input/feature_reader.h"
#include "input/rank_rule.h"

namespace embertable {

using input::EntryTile;
using input::EntryWriter;

void FeatureReader::start_dense(const DenseIds& ids) {
  const std::int64_t count = ids.values.size();
  if (ids.shape.has_rank() && ids.shape.num_elements() != count) {
    refuse("dense ids of shape " + ids.shape.to_string() + " must number " +
           std::to_string(ids.shape.num_elements()) + ", got " + std::to_string(count));
  }
  copy_.combiner =
      Combiner::kSum;  // one id of weight 1 per output row: a plain copy whatever the combiner
  if (!set_shape(count)) {
    refuse("dense ids must give one id per element of output shape " +
           spec_->output_shape.to_string() + ", got " + std::to_string(count));
  }
}

void FeatureReader::read_dense(EntryTile& tile, SimdLevel level) noexcept {
  EntryWriter writer(copy_, tile, tile.first, level);
  writer.take(tile.first, tile.outputs());
  writer.finish(&tile - tile_.data(), true);
}

}  // namespace embertable
