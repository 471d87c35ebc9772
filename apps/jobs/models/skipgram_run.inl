// The body of skipgram_run.cc for one SIMD level.

using Run = jobs::SkipgramRun;

/// Returns exp(-a) for 0 <= a, with a limited to 16: the series of exp(-a / 32), squared five
/// times. The relative error is below 8e-6.
EMBERTABLE_INLINE F16 falling_exp(F16 a) {
  constexpr float kTerm[] = {1,         1,          1.0f / 2,   1.0f / 6,
                             1.0f / 24, 1.0f / 120, 1.0f / 720, 1.0f / 5040};
  const F16 x = at_most(a, set1(16.0f)) * set1(-1.0f / 32);
  F16 sum = set1(kTerm[7]);
  EMBERTABLE_UNROLL
  for (int k = 6; k >= 0; --k) sum = set1(kTerm[k]) + x * sum;
  EMBERTABLE_UNROLL
  for (int k = 0; k < 5; ++k) sum = sum * sum;
  return sum;
}

/// Returns log(1 + e) for 0 <= e <= 1: 2 atanh(s) with s = e / (2 + e) <= 1/3, by its series up to
/// s^13.
EMBERTABLE_INLINE F16 log_of_one_plus(F16 e) {
  const F16 s = e / (set1(2.0f) + e);
  const F16 square = s * s;
  F16 sum = set1(1.0f / 13);
  EMBERTABLE_UNROLL
  for (int k = 11; k > 0; k -= 2) sum = set1(1.0f / static_cast<float>(k)) + square * sum;
  return (s + s) * sum;
}

/// Up to 16 scalar products in progress, each with the use of its result.
struct Products {
  const float* left[16];
  const float* right[16];
  float sign[16];    ///< -1 for pairs of the text, 1 for negatives
  float weight[16];  ///< weight of the pair in the loss
  float* slope[16];  ///< receives the loss's derivative by the product
  int size = 0;
  float unused;
  double loss = 0;
};

/// Computes the 16 scalar products.
EMBERTABLE_INLINE F16 multiply(const Products& p, std::int64_t dim) {
  F16 sum[16];
  EMBERTABLE_UNROLL
  for (int i = 0; i < 16; ++i) sum[i] = zero16();
  std::int64_t column = 0;
  for (; dim - column >= 16; column += 16) {
    EMBERTABLE_UNROLL
    for (int i = 0; i < 16; ++i)
      sum[i] = sum[i] + load(p.left[i] + column) * load(p.right[i] + column);
  }
  if (column < dim) {
    const int tail = static_cast<int>(dim - column);
    EMBERTABLE_UNROLL
    for (int i = 0; i < 16; ++i)
      sum[i] = sum[i] + load_part(p.left[i] + column, tail) * load_part(p.right[i] + column, tail);
  }
  return sum16_each(sum);
}

/// Adds the losses of the products in progress and writes their slopes.
inline void settle(Products& p, std::int64_t dim) {
  if (p.size == 0) return;
  for (int i = p.size; i < 16; ++i) {
    p.left[i] = p.left[0];
    p.right[i] = p.right[0];
    p.sign[i] = p.weight[i] = 0;
    p.slope[i] = &p.unused;
  }
  const F16 sign = load(p.sign), weight = load(p.weight);
  const F16 y = sign * multiply(p, dim);
  const F16 e = falling_exp(abs(y));
  const F16 above = at_least(y, zero16());
  p.loss += static_cast<double>(sum16(weight * (above + log_of_one_plus(e))));
  const F16 of_greater = set1(1.0f) / (set1(1.0f) + e);
  const F16 sigmoid = select(less(y, zero16()), e * of_greater, of_greater);
  float slopes[16];
  store(slopes, weight * sign * sigmoid);
  for (int i = 0; i < 16; ++i) *p.slope[i] = slopes[i];
  p.size = 0;
}

EMBERTABLE_INLINE void add(Products& p, std::int64_t dim, const float* left, const float* right,
                           float sign, float weight, float* slope) {
  p.left[p.size] = left;
  p.right[p.size] = right;
  p.sign[p.size] = sign;
  p.weight[p.size] = weight;
  p.slope[p.size] = slope;
  if (++p.size == 16) settle(p, dim);
}

/// Derivatives of the loss by the scalar products.
struct Slopes {
  /// [centres, 2 * window + 1]: for centre i and row i + j of the contexts; 0 if they are not a
  /// pair.
  float context[Run::kMostCentres * (2 * Run::kMostWindow + 1)];
  float negative[Run::kMostCentres * Run::kMostNegatives];  ///< [centres, negatives]
};

/// Fills in the slopes and returns the loss.
inline double walk_pairs(const Run& run, Slopes& slopes) {
  Products products;
  const std::int64_t band = 2 * run.window + 1;
  for (std::int64_t i = 0; i < run.centres; ++i) {
    const float* centre = run.centre + i * run.dim;
    float* of_context = slopes.context + i * band;
    float* of_negative = slopes.negative + i * run.negatives;
    for (std::int64_t j = 0; j < band; ++j) of_context[j] = 0;
    const std::int64_t first = run.window - run.before[i], last = run.window + run.after[i];
    for (std::int64_t j = first; j <= last; ++j) {
      if (j == run.window) continue;
      add(products, run.dim, centre, run.context + (i + j) * run.dim, -1, 1, of_context + j);
    }
    const float weight = run.negative_weight * static_cast<float>(last - first);
    for (std::int64_t n = 0; n < run.negatives; ++n)
      add(products, run.dim, centre, run.negative + n * run.dim, 1, weight, of_negative + n);
  }
  settle(products, run.dim);
  return products.loss;
}

/// Computes sum[v] += slope * row's columns.
template <int V, bool kPart>
EMBERTABLE_INLINE void add_scaled(F16 (&sum)[V], float slope, const float* row, int tail) {
  F16 x[V];
  load_columns<V, kPart>(x, row, tail);
  const F16 factor = set1(slope);
  EMBERTABLE_UNROLL
  for (int v = 0; v < V; ++v) sum[v] = sum[v] + factor * x[v];
}

template <int V>
EMBERTABLE_INLINE void clear(F16 (&sum)[V]) {
  EMBERTABLE_UNROLL
  for (int v = 0; v < V; ++v) sum[v] = zero16();
}

/// Replaces some columns of all rows by their gradients.
struct TurnColumns {
  const Run& run;
  const Slopes& slopes;

  template <int V, bool kPart>
  void run_columns(std::int64_t column, int tail) const {
    float turned[Run::kMostCentres * V * 16];
    const std::int64_t dim = run.dim, band = 2 * run.window + 1;
    float* centre = run.centre + column;
    float* context = run.context + column;
    float* negative = run.negative + column;
    F16 sum[V];
    for (std::int64_t i = 0; i < run.centres; ++i) {
      clear(sum);
      for (std::int64_t j = run.window - run.before[i]; j <= run.window + run.after[i]; ++j)
        add_scaled<V, kPart>(sum, slopes.context[i * band + j], context + (i + j) * dim, tail);
      for (std::int64_t n = 0; n < run.negatives; ++n)
        add_scaled<V, kPart>(sum, slopes.negative[i * run.negatives + n], negative + n * dim, tail);
      store_columns<V, false>(turned + i * V * 16, sum, 16);
    }
    for (std::int64_t k = 0; k < run.centres + 2 * run.window; ++k) {
      clear(sum);
      const std::int64_t first = k < band ? 0 : k - band + 1;
      const std::int64_t last = k < run.centres ? k : run.centres - 1;
      for (std::int64_t i = first; i <= last; ++i)
        add_scaled<V, kPart>(sum, slopes.context[i * band + k - i], centre + i * dim, tail);
      store_columns<V, kPart>(context + k * dim, sum, tail);
    }
    for (std::int64_t n = 0; n < run.negatives; ++n) {
      clear(sum);
      for (std::int64_t i = 0; i < run.centres; ++i)
        add_scaled<V, kPart>(sum, slopes.negative[i * run.negatives + n], centre + i * dim, tail);
      store_columns<V, kPart>(negative + n * dim, sum, tail);
    }
    for (std::int64_t i = 0; i < run.centres; ++i) {
      load_columns<V, false>(sum, turned + i * V * 16, 16);
      store_columns<V, kPart>(centre + i * dim, sum, tail);
    }
  }
};

struct EachBlock {
  const TurnColumns& turn;
  template <int V, bool kPart>
  EMBERTABLE_INLINE void run(std::int64_t column, int tail) const {
    turn.run_columns<V, kPart>(column, tail);
  }
};

inline double loss(const Run& run) {
  Slopes slopes;
  return walk_pairs(run, slopes);
}

inline double gradients(const Run& run) {
  Slopes slopes;
  const double sum = walk_pairs(run, slopes);
  const TurnColumns turn{run, slopes};
  for_each_block(run.dim, EachBlock{turn});
  return sum;
}
