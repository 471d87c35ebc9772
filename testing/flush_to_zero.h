#pragma once

#include <xmmintrin.h>

namespace embertable {

/// For tests: returns what `call` returns where denormals count as zeros and results that are
/// denormal are flushed, as frameworks leave their threads.
template <class Call>
auto flushing_to_zero(Call call) {
  struct Mode {
    unsigned int found = _mm_getcsr();
    Mode() { _mm_setcsr(found | 0x8040); }
    ~Mode() { _mm_setcsr(found); }
  };
  const Mode flushing;
  return call();
}

}  // namespace embertable
