// One row in vector registers; included before the other kernels, inside a region with AVX-512.

#define EMBERTABLE_BENCH_INLINE inline __attribute__((always_inline))

/// Entries between the gradient that is prefetched and the one that is added; rows likewise.
constexpr std::uint32_t kGradientsAhead = 32;
constexpr std::uint32_t kUpdatesAhead = 16;

template <int kDim>
EMBERTABLE_BENCH_INLINE void prefetch_to_read(const float* row) {
  for (int line = 0; line < kDim / 16; ++line) __builtin_prefetch(row + line * 16, 0, 3);
}

template <int kDim>
EMBERTABLE_BENCH_INLINE void prefetch_to_write(const float* row) {
  for (int line = 0; line < kDim / 16; ++line) __builtin_prefetch(row + line * 16, 1, 3);
}

/// The row and its slot.
template <int kDim>
EMBERTABLE_BENCH_INLINE void prefetch_to_update(const TableRows& table, std::uint32_t row) {
  prefetch_to_write<kDim>(table.rows + std::size_t{row} * kDim);
  __builtin_prefetch(table.slots + row, 1, 3);
}

template <int kDim>
EMBERTABLE_BENCH_INLINE void load(__m512* x, const float* row) {
  for (int v = 0; v < kDim / 16; ++v) x[v] = _mm512_loadu_ps(row + v * 16);
}

template <int kDim>
EMBERTABLE_BENCH_INLINE void add(__m512* x, const float* row) {
  for (int v = 0; v < kDim / 16; ++v) x[v] = _mm512_add_ps(x[v], _mm512_loadu_ps(row + v * 16));
}

template <int kDim>
EMBERTABLE_BENCH_INLINE void store(float* row, const __m512* x) {
  for (int v = 0; v < kDim / 16; ++v) _mm512_storeu_ps(row + v * 16, x[v]);
}

/// Squares summed in 16 lanes, each from +0.
template <int kDim>
EMBERTABLE_BENCH_INLINE __m512 squares(const __m512* x) {
  __m512 sum = _mm512_add_ps(_mm512_setzero_ps(), _mm512_mul_ps(x[0], x[0]));
  for (int v = 1; v < kDim / 16; ++v) sum = _mm512_add_ps(sum, _mm512_mul_ps(x[v], x[v]));
  return sum;
}

/// 16 lanes folded by halves: lane l + lane l+8, then l+4, l+2, l+1.
EMBERTABLE_BENCH_INLINE float fold(__m512 x) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

EMBERTABLE_BENCH_INLINE float square_root(float x) {
  return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x)));
}
