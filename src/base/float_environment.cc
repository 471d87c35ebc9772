#include "base/float_environment.h"

#include <xmmintrin.h>

namespace embertable {
namespace {

constexpr unsigned int kDenormalsAreZero = 1u << 6;
constexpr unsigned int kMaskExceptions = 0x3fu << 7;
constexpr unsigned int kRounding = 3u << 13;
constexpr unsigned int kFlushToZero = 1u << 15;

}  // namespace

FloatEnvironment::FloatEnvironment() noexcept
    : found_(_mm_getcsr()),
      ours_((found_ & ~(kDenormalsAreZero | kFlushToZero | kRounding)) | kMaskExceptions) {
  if (ours_ != found_) _mm_setcsr(ours_);
}

FloatEnvironment::~FloatEnvironment() {
  if (ours_ != found_) _mm_setcsr(found_);
}

}  // namespace embertable
