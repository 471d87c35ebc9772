// The body of mf_block.cc for one SIMD level.

EMBERTABLE_INLINE F16 load_n(const float* p, int n) { return n == 16 ? load(p) : load_part(p, n); }
EMBERTABLE_INLINE void store_n(float* p, F16 x, int n) {
  n == 16 ? store(p, x) : store_part(p, x, n);
}

/// Returns q of one sample, columns [column, column + n).
EMBERTABLE_INLINE F16 item_columns(const jobs::MfBlock& b, std::int64_t at, int n) {
  F16 q = load_n(b.item + at, n);
  for (std::int64_t k = 0; k < b.num_sides; ++k) q = q + load_n(b.sides[k] + at, n);
  return q;
}

EMBERTABLE_INLINE float prediction(const jobs::MfBlock& b, std::int64_t sample) {
  const std::int64_t row = sample * b.dim;
  F16 sum = zero16();
  std::int64_t column = 0;
  for (; b.dim - column >= 16; column += 16)
    sum = sum + load_n(b.user + row + column, 16) * item_columns(b, row + column, 16);
  if (column < b.dim) {
    const int tail = static_cast<int>(b.dim - column);
    sum = sum + load_n(b.user + row + column, tail) * item_columns(b, row + column, tail);
  }
  float bias = b.mean;
  if (b.user_bias != nullptr) bias = bias + b.user_bias[sample];
  if (b.item_bias != nullptr) bias = bias + b.item_bias[sample];
  return bias + sum16(sum);
}

/// Replaces n columns of rows by their gradients.
EMBERTABLE_INLINE void turn_columns(const jobs::MfBlock& b, std::int64_t at, int n, F16 error,
                                    F16 regularization) {
  const F16 p = load_n(b.user + at, n);
  const F16 q = item_columns(b, at, n);
  const F16 by_p = error * p;
  store_n(b.item + at, by_p + regularization * load_n(b.item + at, n), n);
  for (std::int64_t k = 0; k < b.num_sides; ++k)
    store_n(b.sides[k] + at, by_p + regularization * load_n(b.sides[k] + at, n), n);
  store_n(b.user + at, error * q + regularization * p, n);
}

inline void predict(const jobs::MfBlock& b, float* out) {
  for (std::int64_t s = 0; s < b.samples; ++s) out[s] = prediction(b, s);
}

inline double gradients(const jobs::MfBlock& b) {
  const F16 regularization = set1(b.regularization);
  double squares = 0;
  for (std::int64_t s = 0; s < b.samples; ++s) {
    const float error = prediction(b, s) - b.label[s];
    squares += static_cast<double>(error) * static_cast<double>(error);
    const F16 all = set1(error);
    const std::int64_t row = s * b.dim;
    std::int64_t column = 0;
    for (; b.dim - column >= 16; column += 16)
      turn_columns(b, row + column, 16, all, regularization);
    if (column < b.dim)
      turn_columns(b, row + column, static_cast<int>(b.dim - column), all, regularization);
    if (b.user_bias != nullptr) b.user_bias[s] = error + b.regularization * b.user_bias[s];
    if (b.item_bias != nullptr) b.item_bias[s] = error + b.regularization * b.item_bias[s];
  }
  return squares;
}
