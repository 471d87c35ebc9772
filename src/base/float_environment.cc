#include "base/float_environment.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace embertable {

#if defined(__x86_64__)

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

#else

FloatEnvironment::FloatEnvironment() noexcept
    : found_(static_cast<unsigned int>(std::fegetround())),
      ours_(static_cast<unsigned int>(FE_TONEAREST)) {
  if (ours_ != found_) std::fesetround(static_cast<int>(ours_));
}

FloatEnvironment::~FloatEnvironment() {
  if (ours_ != found_) std::fesetround(static_cast<int>(found_));
}

#endif

}  // namespace embertable
