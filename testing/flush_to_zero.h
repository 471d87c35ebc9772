#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace embertable {

/// For tests: returns what `call` returns where denormals count as zeros and results that are
/// denormal are flushed, as frameworks leave their threads; elsewhere than on x86-64 just calls.
template <class Call>
auto flushing_to_zero(Call call) {
#if defined(__x86_64__)
  struct Mode {
    unsigned int found = _mm_getcsr();
    Mode() { _mm_setcsr(found | 0x8040); }
    ~Mode() { _mm_setcsr(found); }
  };
  const Mode flushing;
#endif
  return call();
}

}  // namespace embertable
