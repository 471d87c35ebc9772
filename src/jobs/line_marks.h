#pragma once

#include <emmintrin.h>

#include <bit>
#include <cstdint>

namespace embertable::jobs {

/// The places of a separator and of line ends in a text, 64 bytes at a time. Borrows the text, of
/// which kBeyond bytes behind its end must be readable.
class LineMarks {
 public:
  static constexpr std::int64_t kBeyond = 64;

  LineMarks(const char* begin, const char* end, char separator) noexcept
      : end_(end), separator_(_mm_set1_epi8(separator)), line_end_(_mm_set1_epi8('\n')) {
    seek(begin);
  }

  void seek(const char* p) noexcept {
    block_ = p;
    marks_ = p < end_ ? marks(p) : 0;
  }

  /// The next one, each once; the end when there is no more.
  const char* next() noexcept {
    while (marks_ == 0) {
      block_ += kBlock;
      if (block_ >= end_) return end_;
      marks_ = marks(block_);
    }
    const char* const found = block_ + std::countr_zero(marks_);
    marks_ &= marks_ - 1;
    return found < end_ ? found : end_;
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

  const char* end_;
  const char* block_ = nullptr;
  std::uint64_t marks_ = 0;  ///< of the block, those that were not given
  __m128i separator_;
  __m128i line_end_;
};

}  // namespace embertable::jobs
