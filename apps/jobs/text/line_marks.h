#pragma once

#include <emmintrin.h>

#include <bit>
#include <cstdint>

namespace embertable::jobs {

/// Finds a separator and line ends in a text, 64 bytes at a time. Borrows the text, which must be
/// followed by a line end; kBeyond bytes from there on must be readable.
class LineMarks {
 public:
  static constexpr std::int64_t kBeyond = 64;

  explicit LineMarks(char separator) noexcept
      : separator_(_mm_set1_epi8(separator)), line_end_(_mm_set1_epi8('\n')) {}

  /// Returns where the next mark is searched.
  const char* place() const noexcept { return place_; }
  void forget() noexcept { place_ = nullptr; }
  void seek(const char* p) noexcept {
    place_ = block_ = p;
    marks_ = marks(p);
  }

  /// Returns the next mark, each once. Requires: there is one.
  const char* next() noexcept {
    while (marks_ == 0) {
      block_ += kBlock;
      marks_ = marks(block_);
    }
    const char* const found = block_ + std::countr_zero(marks_);
    marks_ &= marks_ - 1;
    place_ = found + 1;
    return found;
  }

 private:
  static constexpr std::int64_t kBlock = 64;

  std::uint64_t quarter(const char* p) const noexcept {
    const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i found =
        _mm_or_si128(_mm_cmpeq_epi8(text, separator_), _mm_cmpeq_epi8(text, line_end_));
    return static_cast<std::uint32_t>(_mm_movemask_epi8(found));
  }
  std::uint64_t marks(const char* p) const noexcept {
    return quarter(p) | quarter(p + 16) << 16 | quarter(p + 32) << 32 | quarter(p + 48) << 48;
  }

  const char* place_ = nullptr;
  const char* block_ = nullptr;
  std::uint64_t marks_ = 0;  ///< marks of the block that have not been returned yet
  __m128i separator_;
  __m128i line_end_;
};

}  // namespace embertable::jobs
