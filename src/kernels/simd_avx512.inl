// 16 lanes of binary32 in one AVX-512 register. The names are explained in simd_scalar.inl.

inline constexpr int kWidestBlock = 16;

struct F16 {
  __m512 all;
};
struct M16 {
  __mmask16 all;
};

EMBERTABLE_INLINE F16 set1(float x) { return {_mm512_set1_ps(x)}; }
EMBERTABLE_INLINE F16 zero16() { return {_mm512_setzero_ps()}; }

EMBERTABLE_INLINE F16 load(const float* p) { return {_mm512_loadu_ps(p)}; }
EMBERTABLE_INLINE void store(float* p, F16 a) { _mm512_storeu_ps(p, a.all); }
EMBERTABLE_INLINE void stream(float* p, F16 a) { _mm512_stream_ps(p, a.all); }

EMBERTABLE_INLINE __mmask16 first_lanes(int n) { return static_cast<__mmask16>((1u << n) - 1); }
// An access that crosses a cache line touches both lines, also where the mask leaves out all of the
// second one: few columns are accessed as half a vector.
EMBERTABLE_INLINE F16 load_part(const float* p, int n) {
  if (n > 8) return {_mm512_maskz_loadu_ps(first_lanes(n), p)};
  const auto first = static_cast<__mmask8>(first_lanes(n));
  return {_mm512_zextps256_ps512(_mm256_maskz_loadu_ps(first, p))};
}
EMBERTABLE_INLINE void store_part(float* p, F16 a, int n) {
  if (n > 8) return _mm512_mask_storeu_ps(p, first_lanes(n), a.all);
  _mm256_mask_storeu_ps(p, static_cast<__mmask8>(first_lanes(n)), _mm512_castps512_ps256(a.all));
}

EMBERTABLE_INLINE F16 operator+(F16 a, F16 b) { return {_mm512_add_ps(a.all, b.all)}; }
EMBERTABLE_INLINE F16 operator-(F16 a, F16 b) { return {_mm512_sub_ps(a.all, b.all)}; }
EMBERTABLE_INLINE F16 operator*(F16 a, F16 b) { return {_mm512_mul_ps(a.all, b.all)}; }
EMBERTABLE_INLINE F16 operator/(F16 a, F16 b) { return {_mm512_div_ps(a.all, b.all)}; }
EMBERTABLE_INLINE F16 sqrt(F16 a) { return {_mm512_sqrt_ps(a.all)}; }

EMBERTABLE_INLINE M16 less(F16 a, F16 b) { return {_mm512_cmp_ps_mask(a.all, b.all, _CMP_LT_OQ)}; }
EMBERTABLE_INLINE M16 equal(F16 a, F16 b) { return {_mm512_cmp_ps_mask(a.all, b.all, _CMP_EQ_OQ)}; }
EMBERTABLE_INLINE F16 select(M16 m, F16 a, F16 b) {
  return {_mm512_mask_blend_ps(m.all, b.all, a.all)};
}
EMBERTABLE_INLINE bool any_nan(F16 a, F16 b) {
  return _mm512_cmp_ps_mask(a.all, b.all, _CMP_UNORD_Q) != 0;
}

// MAXPS and MINPS give the second operand where the comparison does not hold.
EMBERTABLE_INLINE F16 at_least(F16 x, F16 lo) { return {_mm512_max_ps(lo.all, x.all)}; }
EMBERTABLE_INLINE F16 at_most(F16 x, F16 hi) { return {_mm512_min_ps(hi.all, x.all)}; }
EMBERTABLE_INLINE F16 copysign(F16 magnitude, F16 sign) {
  const __m512 top = _mm512_set1_ps(-0.0f);
  return {_mm512_or_ps(_mm512_andnot_ps(top, magnitude.all), _mm512_and_ps(top, sign.all))};
}
EMBERTABLE_INLINE F16 abs(F16 x) { return {_mm512_andnot_ps(_mm512_set1_ps(-0.0f), x.all)}; }
EMBERTABLE_INLINE F16 negate(F16 x) { return {_mm512_xor_ps(_mm512_set1_ps(-0.0f), x.all)}; }

EMBERTABLE_INLINE float sum16(F16 a) {
  const __m256 by8 = _mm256_add_ps(_mm512_castps512_ps256(a.all), _mm512_extractf32x8_ps(a.all, 1));
  __m128 x = _mm_add_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
  x = _mm_add_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}

// Takes four steps, each of which folds the vectors of two inputs by halves into one.
EMBERTABLE_INLINE F16 sum16_each(const F16 (&q)[16]) {
  const __m512i front = _mm512_setr_epi32(0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
  const __m512i back =
      _mm512_setr_epi32(4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
  const __m512i by_input = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  __m512 eights[8], fours[4], twos[2];
  for (int i = 0; i < 8; ++i) {
    const __m512 a = q[2 * i].all, b = q[2 * i + 1].all;
    eights[i] = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xEE));
  }
  for (int i = 0; i < 4; ++i) {
    const __m512 a = eights[2 * i], b = eights[2 * i + 1];
    fours[i] =
        _mm512_add_ps(_mm512_permutex2var_ps(a, front, b), _mm512_permutex2var_ps(a, back, b));
  }
  for (int i = 0; i < 2; ++i) {
    const __m512 a = fours[2 * i], b = fours[2 * i + 1];
    twos[i] = _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xEE));
  }
  const __m512 sums = _mm512_add_ps(_mm512_shuffle_ps(twos[0], twos[1], 0x88),
                                    _mm512_shuffle_ps(twos[0], twos[1], 0xDD));
  return {_mm512_permutexvar_ps(by_input, sums)};
}

struct U16 {
  __m512i all;
};
EMBERTABLE_INLINE U16 set1_bits(std::uint32_t x) {
  return {_mm512_set1_epi32(static_cast<int>(x))};
}
EMBERTABLE_INLINE U16 load_bits(const std::uint32_t* p) { return {_mm512_loadu_si512(p)}; }
EMBERTABLE_INLINE U16 bits_of(F16 a) { return {_mm512_castps_si512(a.all)}; }
EMBERTABLE_INLINE F16 of_bits(U16 a) { return {_mm512_castsi512_ps(a.all)}; }
EMBERTABLE_INLINE U16 operator+(U16 a, U16 b) { return {_mm512_add_epi32(a.all, b.all)}; }
EMBERTABLE_INLINE U16 operator*(U16 a, U16 b) { return {_mm512_mullo_epi32(a.all, b.all)}; }
EMBERTABLE_INLINE U16 operator^(U16 a, U16 b) { return {_mm512_xor_si512(a.all, b.all)}; }
EMBERTABLE_INLINE U16 operator|(U16 a, U16 b) { return {_mm512_or_si512(a.all, b.all)}; }
EMBERTABLE_INLINE U16 operator&(U16 a, U16 b) { return {_mm512_and_si512(a.all, b.all)}; }
template <int kBits>
EMBERTABLE_INLINE U16 shifted_right(U16 a) {
  return {_mm512_srli_epi32(a.all, kBits)};
}
template <int kBits>
EMBERTABLE_INLINE U16 shifted_left(U16 a) {
  return {_mm512_slli_epi32(a.all, kBits)};
}
EMBERTABLE_INLINE void interleave(F16& a, F16& b) {
  const __m512i first = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const __m512i second =
      _mm512_set_epi32(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8);
  const F16 even = a, odd = b;
  a.all = _mm512_permutex2var_ps(even.all, first, odd.all);
  b.all = _mm512_permutex2var_ps(even.all, second, odd.all);
}

EMBERTABLE_INLINE F16 widened(__m256i halves) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16))};
}
EMBERTABLE_INLINE F16 load(const std::uint16_t* p) {
  return widened(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
EMBERTABLE_INLINE F16 load_part(const std::uint16_t* p, int n) {
  return widened(_mm256_maskz_loadu_epi16(first_lanes(n), p));
}
EMBERTABLE_INLINE void store_upper(std::uint16_t* p, U16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtepi32_epi16(_mm512_srli_epi32(a.all, 16)));
}
EMBERTABLE_INLINE void store_upper(std::uint16_t* p, U16 a, U16 b) {
  const __m512i upper =
      _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33,  //
                       31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  _mm512_storeu_si512(p, _mm512_permutex2var_epi16(a.all, upper, b.all));
}
EMBERTABLE_INLINE void store_upper_part(std::uint16_t* p, U16 a, int n) {
  _mm256_mask_storeu_epi16(p, first_lanes(n), _mm512_cvtepi32_epi16(_mm512_srli_epi32(a.all, 16)));
}
EMBERTABLE_INLINE F16 load(const std::uint8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes))};
}
EMBERTABLE_INLINE F16 load_part(const std::uint8_t* p, int n) {
  const __m128i bytes = _mm_maskz_loadu_epi8(first_lanes(n), p);
  return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes))};
}

using Doubles = __m512d;
struct D16 {
  Doubles part[2];
};
EMBERTABLE_INLINE D16 widen(F16 a) {
  return {{_mm512_cvtps_pd(_mm512_castps512_ps256(a.all)),
           _mm512_cvtps_pd(_mm512_extractf32x8_ps(a.all, 1))}};
}
EMBERTABLE_INLINE F16 rounded(D16 a) {
  return {_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(a.part[0])),
                             _mm512_cvtpd_ps(a.part[1]), 1)};
}

#include "kernels/simd_derived.inl"
