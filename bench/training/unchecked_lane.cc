// The one function of the library without checks that `embertable-bench validation` loads.
#include "bench/training/lane.h"

extern "C" [[gnu::visibility("default")]] embertable::bench::Lane* embertable_unchecked_lane(
    const embertable::bench::LoadData* data, int threads);

embertable::bench::Lane* embertable_unchecked_lane(const embertable::bench::LoadData* data,
                                                   int threads) {
  return embertable::bench::make_lane(*data, threads).release();
}
