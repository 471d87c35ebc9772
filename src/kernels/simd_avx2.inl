// 16 lanes of binary32 in two AVX registers. The names are explained in simd_scalar.inl.

inline constexpr int kWidestBlock = 4;

struct F16 {
  __m256 low, high;
};
struct M16 {
  __m256 low, high;
};

EMBERTABLE_INLINE F16 set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
EMBERTABLE_INLINE F16 zero16() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }

EMBERTABLE_INLINE F16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
EMBERTABLE_INLINE void store(float* p, F16 a) {
  _mm256_storeu_ps(p, a.low);
  _mm256_storeu_ps(p + 8, a.high);
}
EMBERTABLE_INLINE void stream(float* p, F16 a) {
  _mm256_stream_ps(p, a.low);
  _mm256_stream_ps(p + 8, a.high);
}

/// Sets lane i to all ones if i < n.
EMBERTABLE_INLINE __m256i first_lanes(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
EMBERTABLE_INLINE F16 load_part(const float* p, int n) {
  if (n <= 8) return {_mm256_maskload_ps(p, first_lanes(n)), _mm256_setzero_ps()};
  return {_mm256_loadu_ps(p), _mm256_maskload_ps(p + 8, first_lanes(n - 8))};
}
EMBERTABLE_INLINE void store_part(float* p, F16 a, int n) {
  if (n <= 8) return _mm256_maskstore_ps(p, first_lanes(n), a.low);
  _mm256_storeu_ps(p, a.low);
  _mm256_maskstore_ps(p + 8, first_lanes(n - 8), a.high);
}

EMBERTABLE_INLINE F16 operator+(F16 a, F16 b) {
  return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}
EMBERTABLE_INLINE F16 operator-(F16 a, F16 b) {
  return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}
EMBERTABLE_INLINE F16 operator*(F16 a, F16 b) {
  return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}
EMBERTABLE_INLINE F16 operator/(F16 a, F16 b) {
  return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}
EMBERTABLE_INLINE F16 sqrt(F16 a) { return {_mm256_sqrt_ps(a.low), _mm256_sqrt_ps(a.high)}; }

EMBERTABLE_INLINE M16 less(F16 a, F16 b) {
  return {_mm256_cmp_ps(a.low, b.low, _CMP_LT_OQ), _mm256_cmp_ps(a.high, b.high, _CMP_LT_OQ)};
}
EMBERTABLE_INLINE M16 equal(F16 a, F16 b) {
  return {_mm256_cmp_ps(a.low, b.low, _CMP_EQ_OQ), _mm256_cmp_ps(a.high, b.high, _CMP_EQ_OQ)};
}
EMBERTABLE_INLINE F16 select(M16 m, F16 a, F16 b) {
  return {_mm256_blendv_ps(b.low, a.low, m.low), _mm256_blendv_ps(b.high, a.high, m.high)};
}
EMBERTABLE_INLINE bool any_nan(F16 a, F16 b) {
  return _mm256_movemask_ps(_mm256_or_ps(_mm256_cmp_ps(a.low, b.low, _CMP_UNORD_Q),
                                         _mm256_cmp_ps(a.high, b.high, _CMP_UNORD_Q))) != 0;
}

// MAXPS and MINPS give the second operand where the comparison does not hold.
EMBERTABLE_INLINE F16 at_least(F16 x, F16 lo) {
  return {_mm256_max_ps(lo.low, x.low), _mm256_max_ps(lo.high, x.high)};
}
EMBERTABLE_INLINE F16 at_most(F16 x, F16 hi) {
  return {_mm256_min_ps(hi.low, x.low), _mm256_min_ps(hi.high, x.high)};
}
EMBERTABLE_INLINE __m256 copysign(__m256 magnitude, __m256 sign) {
  const __m256 top = _mm256_set1_ps(-0.0f);
  return _mm256_or_ps(_mm256_andnot_ps(top, magnitude), _mm256_and_ps(top, sign));
}
EMBERTABLE_INLINE F16 copysign(F16 magnitude, F16 sign) {
  return {copysign(magnitude.low, sign.low), copysign(magnitude.high, sign.high)};
}
EMBERTABLE_INLINE F16 abs(F16 x) {
  const __m256 top = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(top, x.low), _mm256_andnot_ps(top, x.high)};
}
EMBERTABLE_INLINE F16 negate(F16 x) {
  const __m256 top = _mm256_set1_ps(-0.0f);
  return {_mm256_xor_ps(top, x.low), _mm256_xor_ps(top, x.high)};
}

EMBERTABLE_INLINE float sum8(__m256 a) {
  __m128 x = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  x = _mm_add_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}
EMBERTABLE_INLINE float sum16(F16 a) { return sum8(_mm256_add_ps(a.low, a.high)); }
EMBERTABLE_INLINE F16 sum16_each(const F16 (&q)[16]) {
  float lane[16];
  for (int i = 0; i < 16; ++i) lane[i] = sum16(q[i]);
  return load(lane);
}

struct U16 {
  __m256i low, high;
};
EMBERTABLE_INLINE U16 set1_bits(std::uint32_t x) {
  const __m256i all = _mm256_set1_epi32(static_cast<int>(x));
  return {all, all};
}
EMBERTABLE_INLINE U16 load_bits(const std::uint32_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p) + 1)};
}
EMBERTABLE_INLINE U16 bits_of(F16 a) {
  return {_mm256_castps_si256(a.low), _mm256_castps_si256(a.high)};
}
EMBERTABLE_INLINE F16 of_bits(U16 a) {
  return {_mm256_castsi256_ps(a.low), _mm256_castsi256_ps(a.high)};
}
EMBERTABLE_INLINE U16 operator+(U16 a, U16 b) {
  return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}
EMBERTABLE_INLINE U16 operator*(U16 a, U16 b) {
  return {_mm256_mullo_epi32(a.low, b.low), _mm256_mullo_epi32(a.high, b.high)};
}
EMBERTABLE_INLINE U16 operator^(U16 a, U16 b) {
  return {_mm256_xor_si256(a.low, b.low), _mm256_xor_si256(a.high, b.high)};
}
EMBERTABLE_INLINE U16 operator|(U16 a, U16 b) {
  return {_mm256_or_si256(a.low, b.low), _mm256_or_si256(a.high, b.high)};
}
EMBERTABLE_INLINE U16 operator&(U16 a, U16 b) {
  return {_mm256_and_si256(a.low, b.low), _mm256_and_si256(a.high, b.high)};
}
template <int kBits>
EMBERTABLE_INLINE U16 shifted_right(U16 a) {
  return {_mm256_srli_epi32(a.low, kBits), _mm256_srli_epi32(a.high, kBits)};
}
template <int kBits>
EMBERTABLE_INLINE U16 shifted_left(U16 a) {
  return {_mm256_slli_epi32(a.low, kBits), _mm256_slli_epi32(a.high, kBits)};
}
EMBERTABLE_INLINE F16 interleaved(__m256 even, __m256 odd) {
  const __m256 low = _mm256_unpacklo_ps(even, odd), high = _mm256_unpackhi_ps(even, odd);
  return {_mm256_permute2f128_ps(low, high, 0x20), _mm256_permute2f128_ps(low, high, 0x31)};
}
EMBERTABLE_INLINE void interleave(F16& a, F16& b) {
  const F16 even = a, odd = b;
  a = interleaved(even.low, odd.low);
  b = interleaved(even.high, odd.high);
}

EMBERTABLE_INLINE __m256 widened(__m128i halves) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}
EMBERTABLE_INLINE F16 load(const std::uint16_t* p) {
  return {widened(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          widened(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p) + 1))};
}
[[gnu::noinline]] inline F16 load_first(const std::uint16_t* p, int n) {
  std::uint16_t lane[16] = {};
  for (int i = 0; i < n; ++i) lane[i] = p[i];
  return load(lane);
}
EMBERTABLE_INLINE F16 load_part(const std::uint16_t* p, int n) {
  return n == 16 ? load(p) : load_first(p, n);
}
EMBERTABLE_INLINE void store_upper(std::uint16_t* p, U16 a) {
  const __m256i packed =
      _mm256_packs_epi32(_mm256_srai_epi32(a.low, 16), _mm256_srai_epi32(a.high, 16));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xD8));
}
EMBERTABLE_INLINE void store_upper(std::uint16_t* p, U16 a, U16 b) {
  store_upper(p, a);
  store_upper(p + 16, b);
}
EMBERTABLE_INLINE void store_upper_part(std::uint16_t* p, U16 a, int n) {
  if (n == 16) return store_upper(p, a);
  std::uint16_t lane[16];
  store_upper(lane, a);
  for (int i = 0; i < n; ++i) p[i] = lane[i];
}
EMBERTABLE_INLINE F16 load(const std::uint8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)),
          _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8)))};
}
[[gnu::noinline]] inline F16 load_first(const std::uint8_t* p, int n) {
  std::uint8_t lane[16] = {};
  for (int i = 0; i < n; ++i) lane[i] = p[i];
  return load(lane);
}
EMBERTABLE_INLINE F16 load_part(const std::uint8_t* p, int n) {
  return n == 16 ? load(p) : load_first(p, n);
}

using Doubles = __m256d;
struct D16 {
  Doubles part[4];
};
EMBERTABLE_INLINE D16 widen(F16 a) {
  return {{_mm256_cvtps_pd(_mm256_castps256_ps128(a.low)),
           _mm256_cvtps_pd(_mm256_extractf128_ps(a.low, 1)),
           _mm256_cvtps_pd(_mm256_castps256_ps128(a.high)),
           _mm256_cvtps_pd(_mm256_extractf128_ps(a.high, 1))}};
}
EMBERTABLE_INLINE F16 rounded(D16 a) {
  return {_mm256_set_m128(_mm256_cvtpd_ps(a.part[1]), _mm256_cvtpd_ps(a.part[0])),
          _mm256_set_m128(_mm256_cvtpd_ps(a.part[3]), _mm256_cvtpd_ps(a.part[2]))};
}

#include "kernels/simd_derived.inl"
