#include "bench/record_loops.h"

#define EMBERTABLE_LEVEL_BODY "bench/record_loops.inl"
#include "kernels/for_each_level.inl"

namespace embertable::bench {

float update_records(const RecordPart& part, SimdLevel level) noexcept {
  return EMBERTABLE_AT_LEVEL(level, update_records(part));
}

float divide(const float* numbers, std::size_t floats, int divisions, int roots,
             SimdLevel level) noexcept {
  return EMBERTABLE_AT_LEVEL(level, divide(numbers, floats, divisions, roots));
}

}  // namespace embertable::bench
