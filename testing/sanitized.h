#pragma once

namespace embertable {

/// For tests: true under the address or thread sanitizer, whose build is an order of magnitude
/// slower. What repeats one thing thousands of times repeats it less often there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace embertable
