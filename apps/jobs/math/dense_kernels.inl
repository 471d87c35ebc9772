// The body of dense_kernels.cc for one SIMD level.

// Number of sums that are kept in registers: kTileRows * kTileVectors * 16.
#if EMBERTABLE_LEVEL == 2
inline constexpr int kTileRows = 6, kTileVectors = 4;
#elif EMBERTABLE_LEVEL == 1
inline constexpr int kTileRows = 6, kTileVectors = 1;
#else
inline constexpr int kTileRows = 2, kTileVectors = 1;
#endif

/// Number of terms that are summed before the next ones are read: what a tile reads of b stays in
/// L1.
inline constexpr std::int64_t kTileDepth = 128;

EMBERTABLE_INLINE F16 load_n(const float* p, int n) { return n == 16 ? load(p) : load_part(p, n); }
EMBERTABLE_INLINE void store_n(float* p, F16 x, int n) {
  n == 16 ? store(p, x) : store_part(p, x, n);
}

/// Computes rows [m, m + R) and V vectors of columns from n, the last one with `tail` of them if
/// kPart.
template <int R, int V, bool kPart>
inline void product_tile(const jobs::Product& p, std::int64_t m, std::int64_t n, int tail) {
  F16 sum[R][V];
  EMBERTABLE_UNROLL
  for (int r = 0; r < R; ++r) {
    if (p.start != nullptr) {
      load_columns<V, kPart>(sum[r], p.start + (m + r) * p.start_row + n, tail);
      if (p.scale != 1) multiply_columns<V>(sum[r], p.scale);
    } else {
      EMBERTABLE_UNROLL
      for (int v = 0; v < V; ++v) sum[r][v] = zero16();
    }
  }
  const float* a[R];
  EMBERTABLE_UNROLL
  for (int r = 0; r < R; ++r) a[r] = p.a + (m + r) * p.a_row;
  const float* b = p.b + n;
  for (std::int64_t k = 0; k < p.depth; ++k, b += p.b_depth) {
    F16 x[V];
    load_columns<V, kPart>(x, b, tail);
    EMBERTABLE_UNROLL
    for (int r = 0; r < R; ++r) {
      const F16 factor = set1(a[r][k * p.a_depth]);
      EMBERTABLE_UNROLL
      for (int v = 0; v < V; ++v) sum[r][v] = sum[r][v] + factor * x[v];
    }
  }
  EMBERTABLE_UNROLL
  for (int r = 0; r < R; ++r) {
    if (p.relu) {
      EMBERTABLE_UNROLL
      for (int v = 0; v < V; ++v) sum[r][v] = at_least(sum[r][v], zero16());
    }
    if (p.gate != nullptr) {
      F16 gate[V];
      load_columns<V, kPart>(gate, p.gate + (m + r) * p.gate_row + n, tail);
      EMBERTABLE_UNROLL
      for (int v = 0; v < V; ++v) sum[r][v] = select(less(zero16(), gate[v]), sum[r][v], zero16());
    }
    store_columns<V, kPart>(p.c + (m + r) * p.c_row + n, sum[r], tail);
  }
}

template <int V, bool kPart>
inline void product_columns(const jobs::Product& p, std::int64_t n, int tail) {
  std::int64_t m = 0;
  for (; p.rows - m >= kTileRows; m += kTileRows) product_tile<kTileRows, V, kPart>(p, m, n, tail);
  for (; p.rows - m >= 2; m += 2) product_tile<2, V, kPart>(p, m, n, tail);
  if (m < p.rows) product_tile<1, V, kPart>(p, m, n, tail);
}

/// Adds some terms to all columns.
inline void multiply_depth(const jobs::Product& p) {
  std::int64_t n = 0;
  for (; p.columns - n >= kTileVectors * 16; n += kTileVectors * 16)
    product_columns<kTileVectors, false>(p, n, 16);
#if EMBERTABLE_LEVEL == 2
  for (; p.columns - n >= 32; n += 32) product_columns<2, false>(p, n, 16);
  for (; p.columns - n >= 16; n += 16) product_columns<1, false>(p, n, 16);
#endif
  if (n < p.columns) product_columns<1, true>(p, n, static_cast<int>(p.columns - n));
}

inline void multiply(const jobs::Product& all) {
  jobs::Product p = all;
  p.depth = 0;
  for (std::int64_t k = 0; k == 0 || k < all.depth; k += kTileDepth) {
    p.depth = all.depth - k < kTileDepth ? all.depth - k : kTileDepth;
    p.a = all.a + k * all.a_depth;
    p.b = all.b + k * all.b_depth;
    if (k > 0) {
      p.start = all.c;
      p.start_row = all.c_row;
      p.scale = 1;
    }
    const bool last = k + p.depth == all.depth;
    p.relu = last && all.relu;
    p.gate = last ? all.gate : nullptr;
    multiply_depth(p);
  }
}

inline void add_dots(const jobs::AddDots& args) {
  const float* a = args.a;
  for (std::int64_t m = 0; m < args.rows; ++m, a += args.columns) {
    F16 sum = zero16();
    for (std::int64_t n = 0; n < args.columns; n += 16) {
      const int left = args.columns - n < 16 ? static_cast<int>(args.columns - n) : 16;
      const F16 x = load_n(a + n, left);
      sum = sum + (args.b != nullptr ? x * load_n(args.b + n, left) : x);
    }
    args.out[m] = args.out[m] + sum16(sum);
  }
}

inline void adagrad_step(const jobs::AdagradStep& args) {
  const F16 rate = set1(args.rate), regularization = set1(args.regularization);
  for (std::int64_t i = 0; i < args.size; i += 16) {
    const int n = args.size - i < 16 ? static_cast<int>(args.size - i) : 16;
    F16 g = load_n(args.gradients + i, n);
    for (std::int64_t part = 1; part < args.parts; ++part)
      g = g + load_n(args.gradients + part * args.part_stride + i, n);
    const F16 w = load_n(args.weights + i, n);
    if (args.regularization != 0) g = g + regularization * w;
    const F16 s = load_n(args.accumulators + i, n) + g * g;
    store_n(args.accumulators + i, s, n);
    const F16 moved = w - rate * g / sqrt(s);
    store_n(args.weights + i, select(equal(s, zero16()), w, moved), n);
  }
}

inline void slope_rows(const jobs::SlopeRows& args) {
  const F16 regularization = set1(args.regularization);
  float* x = args.x;
  for (std::int64_t m = 0; m < args.rows; ++m, x += args.columns) {
    const F16 slope = set1(args.slopes[m]);
    for (std::int64_t n = 0; n < args.columns; n += 16) {
      const int left = args.columns - n < 16 ? static_cast<int>(args.columns - n) : 16;
      store_n(x + n, slope + regularization * load_n(x + n, left), left);
    }
  }
}
