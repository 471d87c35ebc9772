// 16 lanes of binary32 in plain C++: four groups of four, which every x86-64 has registers for.
// simd_avx2.inl and simd_avx512.inl offer the same names; every operation gives the same bits.

/// Number of vectors that a sum over many rows keeps in registers.
inline constexpr int kWidestBlock = 4;

using Float4 = float __attribute__((vector_size(16)));
using Int4 = std::int32_t __attribute__((vector_size(16)));

struct F16 {
  Float4 part[4];
};

/// Lanes in which a comparison holds.
struct M16 {
  Int4 part[4];
};

EMBERTABLE_INLINE F16 set1(float x) {
  const Float4 all = {x, x, x, x};
  return {{all, all, all, all}};
}
EMBERTABLE_INLINE F16 zero16() { return set1(0.0f); }

EMBERTABLE_INLINE F16 load(const float* p) {
  return {{_mm_loadu_ps(p), _mm_loadu_ps(p + 4), _mm_loadu_ps(p + 8), _mm_loadu_ps(p + 12)}};
}
EMBERTABLE_INLINE void store(float* p, F16 a) {
  EMBERTABLE_UNROLL
  for (int i = 0; i < 4; ++i) _mm_storeu_ps(p + i * 4, a.part[i]);
}
EMBERTABLE_INLINE void stream(float* p, F16 a) {
  EMBERTABLE_UNROLL
  for (int i = 0; i < 4; ++i) _mm_stream_ps(p + i * 4, a.part[i]);
}

// The loops over part of a vector are functions by themselves, because they are long.
[[gnu::noinline]] inline F16 load_first(const float* p, int n) {
  float lane[16] = {};
  for (int i = 0; i < n; ++i) lane[i] = p[i];
  return load(lane);
}
[[gnu::noinline]] inline void store_first(float* p, const F16& a, int n) {
  float lane[16];
  store(lane, a);
  for (int i = 0; i < n; ++i) p[i] = lane[i];
}

/// Reads only the first n <= 16 floats; the other lanes are +0.
EMBERTABLE_INLINE F16 load_part(const float* p, int n) {
  return n == 16 ? load(p) : load_first(p, n);
}
EMBERTABLE_INLINE void store_part(float* p, F16 a, int n) {
  if (n == 16) return store(p, a);
  store_first(p, a, n);
}

EMBERTABLE_INLINE F16 operator+(F16 a, F16 b) {
  return {
      {a.part[0] + b.part[0], a.part[1] + b.part[1], a.part[2] + b.part[2], a.part[3] + b.part[3]}};
}
EMBERTABLE_INLINE F16 operator-(F16 a, F16 b) {
  return {
      {a.part[0] - b.part[0], a.part[1] - b.part[1], a.part[2] - b.part[2], a.part[3] - b.part[3]}};
}
EMBERTABLE_INLINE F16 operator*(F16 a, F16 b) {
  return {
      {a.part[0] * b.part[0], a.part[1] * b.part[1], a.part[2] * b.part[2], a.part[3] * b.part[3]}};
}
EMBERTABLE_INLINE F16 operator/(F16 a, F16 b) {
  return {
      {a.part[0] / b.part[0], a.part[1] / b.part[1], a.part[2] / b.part[2], a.part[3] / b.part[3]}};
}

EMBERTABLE_INLINE F16 sqrt(F16 a) {
  EMBERTABLE_UNROLL
  for (int i = 0; i < 4; ++i) a.part[i] = _mm_sqrt_ps(a.part[i]);
  return a;
}

EMBERTABLE_INLINE M16 less(F16 a, F16 b) {
  M16 r;
  EMBERTABLE_UNROLL
  for (int i = 0; i < 4; ++i) r.part[i] = a.part[i] < b.part[i];
  return r;
}
EMBERTABLE_INLINE M16 equal(F16 a, F16 b) {
  M16 r;
  EMBERTABLE_UNROLL
  for (int i = 0; i < 4; ++i) r.part[i] = a.part[i] == b.part[i];
  return r;
}
/// Returns m ? a : b.
EMBERTABLE_INLINE F16 select(M16 m, F16 a, F16 b) {
  EMBERTABLE_UNROLL
  for (int i = 0; i < 4; ++i)
    a.part[i] = reinterpret_cast<Float4>((m.part[i] & reinterpret_cast<Int4>(a.part[i])) |
                                         (~m.part[i] & reinterpret_cast<Int4>(b.part[i])));
  return a;
}

/// Returns true if a lane of a or b is NaN.
EMBERTABLE_INLINE bool any_nan(F16 a, F16 b) {
  __m128 nan = _mm_cmpunord_ps(a.part[0], b.part[0]);
  EMBERTABLE_UNROLL
  for (int i = 1; i < 4; ++i) nan = _mm_or_ps(nan, _mm_cmpunord_ps(a.part[i], b.part[i]));
  return _mm_movemask_ps(nan) != 0;
}

/// Returns x < lo ? lo : x.
EMBERTABLE_INLINE F16 at_least(F16 x, F16 lo) { return select(less(x, lo), lo, x); }
/// Returns x > hi ? hi : x.
EMBERTABLE_INLINE F16 at_most(F16 x, F16 hi) { return select(less(hi, x), hi, x); }

EMBERTABLE_INLINE F16 copysign(F16 magnitude, F16 sign) {
  const Int4 top = {INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN};
  return select({{top, top, top, top}}, sign, magnitude);
}
EMBERTABLE_INLINE F16 abs(F16 x) { return copysign(x, zero16()); }
EMBERTABLE_INLINE F16 negate(F16 x) {
  EMBERTABLE_UNROLL
  for (int i = 0; i < 4; ++i) x.part[i] = -x.part[i];
  return x;
}

/// Sums the lanes: lane l += lane l + 8, then + 4, + 2, + 1.
EMBERTABLE_INLINE float sum16(F16 a) {
  const Float4 by4 = (a.part[0] + a.part[2]) + (a.part[1] + a.part[3]);
  return (by4[0] + by4[2]) + (by4[1] + by4[3]);
}

/// Sets lane i to sum16(q[i]).
EMBERTABLE_INLINE F16 sum16_each(const F16 (&q)[16]) {
  float lane[16];
  for (int i = 0; i < 16; ++i) lane[i] = sum16(q[i]);
  return load(lane);
}

/// 16 lanes of unsigned integers, modulo 2^32.
using Uint4 = std::uint32_t __attribute__((vector_size(16)));
struct U16 {
  Uint4 part[4];
};
EMBERTABLE_INLINE U16 set1_bits(std::uint32_t x) {
  const Uint4 all = {x, x, x, x};
  return {{all, all, all, all}};
}
EMBERTABLE_INLINE U16 load_bits(const std::uint32_t* p) {
  U16 r;
  EMBERTABLE_UNROLL
  for (int i = 0; i < 4; ++i)
    r.part[i] = reinterpret_cast<Uint4>(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p) + i));
  return r;
}
EMBERTABLE_INLINE U16 bits_of(F16 a) {
  U16 r;
  EMBERTABLE_UNROLL
  for (int i = 0; i < 4; ++i) r.part[i] = reinterpret_cast<Uint4>(a.part[i]);
  return r;
}
EMBERTABLE_INLINE F16 of_bits(U16 a) {
  F16 r;
  EMBERTABLE_UNROLL
  for (int i = 0; i < 4; ++i) r.part[i] = reinterpret_cast<Float4>(a.part[i]);
  return r;
}
EMBERTABLE_INLINE U16 operator+(U16 a, U16 b) {
  EMBERTABLE_UNROLL
  for (int i = 0; i < 4; ++i) a.part[i] += b.part[i];
  return a;
}
EMBERTABLE_INLINE U16 operator*(U16 a, U16 b) {
  EMBERTABLE_UNROLL
  for (int i = 0; i < 4; ++i) a.part[i] *= b.part[i];
  return a;
}
EMBERTABLE_INLINE U16 operator^(U16 a, U16 b) {
  EMBERTABLE_UNROLL
  for (int i = 0; i < 4; ++i) a.part[i] ^= b.part[i];
  return a;
}
EMBERTABLE_INLINE U16 operator|(U16 a, U16 b) {
  EMBERTABLE_UNROLL
  for (int i = 0; i < 4; ++i) a.part[i] |= b.part[i];
  return a;
}
EMBERTABLE_INLINE U16 operator&(U16 a, U16 b) {
  EMBERTABLE_UNROLL
  for (int i = 0; i < 4; ++i) a.part[i] &= b.part[i];
  return a;
}
template <int kBits>
EMBERTABLE_INLINE U16 shifted_right(U16 a) {
  EMBERTABLE_UNROLL
  for (int i = 0; i < 4; ++i) a.part[i] >>= kBits;
  return a;
}
template <int kBits>
EMBERTABLE_INLINE U16 shifted_left(U16 a) {
  EMBERTABLE_UNROLL
  for (int i = 0; i < 4; ++i) a.part[i] <<= kBits;
  return a;
}

/// Puts 32 columns in order, of which `a` holds the even and `b` the odd ones: the first 16 become
/// `a`.
EMBERTABLE_INLINE void interleave(F16& a, F16& b) {
  const F16 even = a, odd = b;
  EMBERTABLE_UNROLL
  for (int i = 0; i < 4; ++i) {
    F16& to = i < 2 ? a : b;
    to.part[2 * i % 4] = _mm_unpacklo_ps(even.part[i], odd.part[i]);
    to.part[2 * i % 4 + 1] = _mm_unpackhi_ps(even.part[i], odd.part[i]);
  }
}

/// Widens 16 numbers of bfloat16, or the first n of them; the other lanes are +0.
EMBERTABLE_INLINE F16 load(const std::uint16_t* p) {
  F16 r;
  const __m128i zero = _mm_setzero_si128();
  EMBERTABLE_UNROLL
  for (int i = 0; i < 2; ++i) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p) + i);
    r.part[2 * i] = reinterpret_cast<Float4>(_mm_unpacklo_epi16(zero, x));
    r.part[2 * i + 1] = reinterpret_cast<Float4>(_mm_unpackhi_epi16(zero, x));
  }
  return r;
}
[[gnu::noinline]] inline F16 load_first(const std::uint16_t* p, int n) {
  std::uint16_t lane[16] = {};
  for (int i = 0; i < n; ++i) lane[i] = p[i];
  return load(lane);
}
EMBERTABLE_INLINE F16 load_part(const std::uint16_t* p, int n) {
  return n == 16 ? load(p) : load_first(p, n);
}

/// Stores the upper half of each lane, of 16, of 32, or of the first n of 16.
EMBERTABLE_INLINE void store_upper(std::uint16_t* p, U16 a) {
  EMBERTABLE_UNROLL
  for (int i = 0; i < 2; ++i) {
    const __m128i low = _mm_srai_epi32(reinterpret_cast<__m128i>(a.part[2 * i]), 16);
    const __m128i high = _mm_srai_epi32(reinterpret_cast<__m128i>(a.part[2 * i + 1]), 16);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p) + i, _mm_packs_epi32(low, high));
  }
}
EMBERTABLE_INLINE void store_upper(std::uint16_t* p, U16 a, U16 b) {
  store_upper(p, a);
  store_upper(p + 16, b);
}
EMBERTABLE_INLINE void store_upper_part(std::uint16_t* p, U16 a, int n) {
  std::uint16_t lane[16];
  store_upper(lane, a);
  for (int i = 0; i < n; ++i) p[i] = lane[i];
}

/// Converts 16 bytes to numbers, or the first n of them; the other lanes are +0.
EMBERTABLE_INLINE F16 load(const std::uint8_t* p) {
  float lane[16];
  for (int i = 0; i < 16; ++i) lane[i] = static_cast<float>(p[i]);
  return load(lane);
}
[[gnu::noinline]] inline F16 load_first(const std::uint8_t* p, int n) {
  float lane[16] = {};
  for (int i = 0; i < n; ++i) lane[i] = static_cast<float>(p[i]);
  return load(lane);
}
EMBERTABLE_INLINE F16 load_part(const std::uint8_t* p, int n) {
  return n == 16 ? load(p) : load_first(p, n);
}

/// The 16 lanes in binary64, a few to a register, in their order.
using Doubles = double __attribute__((vector_size(16)));
struct D16 {
  Doubles part[8];
};
EMBERTABLE_INLINE D16 widen(F16 a) {
  D16 r;
  EMBERTABLE_UNROLL
  for (int i = 0; i < 4; ++i) {
    r.part[2 * i] = _mm_cvtps_pd(a.part[i]);
    r.part[2 * i + 1] = _mm_cvtps_pd(_mm_movehl_ps(a.part[i], a.part[i]));
  }
  return r;
}
/// Rounds each lane to binary32.
EMBERTABLE_INLINE F16 rounded(D16 a) {
  F16 r;
  EMBERTABLE_UNROLL
  for (int i = 0; i < 4; ++i)
    r.part[i] = _mm_movelh_ps(_mm_cvtpd_ps(a.part[2 * i]), _mm_cvtpd_ps(a.part[2 * i + 1]));
  return r;
}

#include "kernels/simd_derived.inl"
