// The body of candidates.cc for one SIMD level.

#include "kernels/logistic/logistic.inl"

EMBERTABLE_INLINE F16 load_n(const float* p, int n) { return n == 16 ? load(p) : load_part(p, n); }

/// Returns columns [column, column + n) of a sample's query.
EMBERTABLE_INLINE F16 query_columns(const jobs::Candidates& b, std::int64_t sample,
                                    std::int64_t column, int n) {
  const std::int64_t at = sample * b.dim + column;
  const F16 own = load_n(b.query + at, n);
  if (b.query_side == nullptr) return own;
  const F16 side = load_n(b.query_side + at, n);
  return own + (b.side_share == nullptr ? side : set1(b.side_share[sample]) * side);
}

EMBERTABLE_INLINE F16 item_columns(const jobs::Candidates& b, std::int64_t at, int n) {
  const F16 own = load_n(b.items + at, n);
  return b.item_side == nullptr ? own : own + load_n(b.item_side + at, n);
}

EMBERTABLE_INLINE F16 score_lanes(const jobs::Candidates& b, std::int64_t sample,
                                  std::int64_t candidate) {
  F16 sum = zero16();
  const std::int64_t row = candidate * b.dim;
  std::int64_t column = 0;
  for (; b.dim - column >= 16; column += 16)
    sum = sum + query_columns(b, sample, column, 16) * item_columns(b, row + column, 16);
  if (column < b.dim) {
    const int tail = static_cast<int>(b.dim - column);
    sum = sum + query_columns(b, sample, column, tail) * item_columns(b, row + column, tail);
  }
  return sum;
}

/// Sets out[k] to the score of candidate k of the `count` samples from `first` on.
EMBERTABLE_INLINE void score(const jobs::Candidates& b, std::int64_t first, std::int64_t count,
                             float* out) {
  std::int64_t sample = first, left = b.width;
  for (std::int64_t k = 0; k < count; k += 16) {
    const int n = count - k < 16 ? static_cast<int>(count - k) : 16;
    F16 sums[16];
    for (int i = 0; i < n; ++i) {
      sums[i] = score_lanes(b, sample, first * b.width + k + i);
      if (--left == 0) {
        left = b.width;
        ++sample;
      }
    }
    for (int i = n; i < 16; ++i) sums[i] = zero16();
    store_part(out + k, sum16_each(sums), n);
  }
}

/// Turns scores into the logits for which log(1 + e^logit) is the loss.
EMBERTABLE_INLINE void turn_to_logits(const jobs::Candidates& b, std::int64_t samples, float* y) {
  for (; samples > 0; --samples, y += b.width) {
    const float chosen = y[0];
    y[0] = b.pairs ? -__builtin_inff() : -chosen;
    if (!b.pairs) continue;
    for (std::int64_t k = 1; k < b.width; ++k) y[k] = y[k] - chosen;
  }
}

/// Turns logits into the slopes of the loss by the scores, and adds the losses to `sum`.
EMBERTABLE_INLINE double turn_to_slopes(const jobs::Candidates& b, std::int64_t samples, float* y,
                                        double sum) {
  const std::int64_t count = samples * b.width;
  float losses[16];
  for (std::int64_t k = 0; k < count; k += 16) {
    const int n = count - k < 16 ? static_cast<int>(count - k) : 16;
    F16 loss;
    store_part(y + k, logistic(load_part(y + k, n), loss), n);
    store(losses, loss);
    for (int i = 0; i < n; ++i) sum += static_cast<double>(losses[i]);
  }
  for (; samples > 0; --samples, y += b.width) {
    float others = y[0];
    for (std::int64_t k = 1; b.pairs && k < b.width; ++k) others = others + y[k];
    y[0] = -others;
  }
  return sum;
}

/// Replaces some columns of one sample's rows by their gradients.
struct TurnColumns {
  const jobs::Candidates& b;
  std::int64_t sample;
  const float* slopes;  ///< [width]
  F16 regularization;

  template <int V, bool kPart>
  EMBERTABLE_INLINE void run(std::int64_t column, int tail) const {
    const std::int64_t at = sample * b.dim + column;
    F16 own[V], side[V], query[V], sum[V];
    load_columns<V, kPart>(own, b.query + at, tail);
    const bool sides = b.query_side != nullptr;
    if (sides) load_columns<V, kPart>(side, b.query_side + at, tail);
    const F16 share = set1(b.side_share == nullptr ? 1.0f : b.side_share[sample]);
    EMBERTABLE_UNROLL
    for (int v = 0; v < V; ++v) {
      query[v] = sides ? own[v] + share * side[v] : own[v];
      sum[v] = zero16();
    }
    for (std::int64_t k = 0; k < b.width; ++k)
      turn_item<V, kPart>((sample * b.width + k) * b.dim + column, tail, set1(slopes[k]), query,
                          sum);
    EMBERTABLE_UNROLL
    for (int v = 0; v < V; ++v) {
      own[v] = sum[v] + regularization * own[v];
      if (sides) side[v] = share * sum[v] + regularization * side[v];
    }
    store_columns<V, kPart>(b.query + at, own, tail);
    if (sides) store_columns<V, kPart>(b.query_side + at, side, tail);
  }

  template <int V, bool kPart>
  EMBERTABLE_INLINE void turn_item(std::int64_t at, int tail, F16 slope, const F16 (&query)[V],
                                   F16 (&sum)[V]) const {
    F16 own[V], side[V];
    load_columns<V, kPart>(own, b.items + at, tail);
    const bool sides = b.item_side != nullptr;
    if (sides) load_columns<V, kPart>(side, b.item_side + at, tail);
    EMBERTABLE_UNROLL
    for (int v = 0; v < V; ++v) {
      sum[v] = sum[v] + slope * (sides ? own[v] + side[v] : own[v]);
      const F16 gradient = slope * query[v];
      own[v] = gradient + regularization * own[v];
      if (sides) side[v] = gradient + regularization * side[v];
    }
    store_columns<V, kPart>(b.items + at, own, tail);
    if (sides) store_columns<V, kPart>(b.item_side + at, side, tail);
  }
};

/// Returns the number of samples that are processed at once, so that the first-level cache still
/// has their rows when gradients replace them.
inline std::int64_t samples_at_once(const jobs::Candidates& b) {
  constexpr std::int64_t kFloats = 6 << 10;
  const std::int64_t floats = (1 + b.width) * b.dim * (b.item_side == nullptr ? 1 : 2);
  const std::int64_t near = kFloats / floats, most = jobs::Candidates::kMostWidth / b.width;
  return near < 1 ? 1 : near < most ? near : most;
}

inline double gradients(const jobs::Candidates& b) {
  float y[jobs::Candidates::kMostWidth];
  double sum = 0;
  const std::int64_t most = samples_at_once(b);
  for (std::int64_t first = 0; first < b.samples; first += most) {
    const std::int64_t samples = b.samples - first < most ? b.samples - first : most;
    score(b, first, samples * b.width, y);
    turn_to_logits(b, samples, y);
    sum = turn_to_slopes(b, samples, y, sum);
    for (std::int64_t s = 0; s < samples; ++s)
      for_each_block(b.dim, TurnColumns{b, first + s, y + s * b.width, set1(b.regularization)});
  }
  return sum;
}
