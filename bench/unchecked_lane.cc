// What `embertable-bench validation` finds in the library without checks.
#include "bench/lane.h"

extern "C" [[gnu::visibility("default")]] embertable::bench::Lane* embertable_unchecked_lane(
    const embertable::bench::LaneInput* input);

embertable::bench::Lane* embertable_unchecked_lane(const embertable::bench::LaneInput* input) {
  return embertable::bench::make_engine_lane(*input).release();
}
