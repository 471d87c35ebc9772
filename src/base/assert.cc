#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace embertable {

void assertion_failed(const char* file, int line, const char* what) noexcept {
  std::fprintf(stderr, "embertable: %s:%d: broken invariant: %s\n", file, line, what);
  std::abort();
}

}  // namespace embertable
