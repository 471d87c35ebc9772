// The body of mf_plain_loop.cc for one SIMD level.

EMBERTABLE_INLINE F16 load_n(const float* p, int n) { return n == 16 ? load(p) : load_part(p, n); }
EMBERTABLE_INLINE void store_n(float* p, F16 x, int n) { n == 16 ? store(p, x) : store_part(p, x, n); }

EMBERTABLE_INLINE float dot(const float* a, const float* b, std::int64_t dim) {
  F16 sum = zero16();
  std::int64_t column = 0;
  for (; dim - column >= 16; column += 16) sum = sum + load(a + column) * load(b + column);
  const int tail = static_cast<int>(dim - column);
  if (tail > 0) sum = sum + load_part(a + column, tail) * load_part(b + column, tail);
  return sum16(sum);
}

/// a -= rate * (error * b + regularization * a), and b likewise, of n columns.
EMBERTABLE_INLINE void move_columns(float* a, float* b, int n, F16 rate, F16 error, F16 regularization) {
  const F16 p = load_n(a, n);
  const F16 q = load_n(b, n);
  store_n(a, p - rate * (error * q + regularization * p), n);
  store_n(b, q - rate * (error * p + regularization * q), n);
}

inline double epoch(const jobs::PlainLoop& loop) {
  const F16 rate = set1(loop.learning_rate);
  const F16 regularization = set1(loop.regularization);
  double squares = 0;
  for (std::int64_t i = 0; i < loop.num_ratings; ++i) {
    const jobs::Rating& rating = loop.ratings[i];
    float* p = loop.user + rating.user * loop.dim;
    float* q = loop.item + rating.item * loop.dim;
    float& of_user = loop.user_bias[rating.user];
    float& of_item = loop.item_bias[rating.item];
    const float error = loop.mean + of_user + of_item + dot(p, q, loop.dim) - rating.value;
    squares += static_cast<double>(error) * static_cast<double>(error);
    of_user -= loop.learning_rate * (error + loop.regularization * of_user);
    of_item -= loop.learning_rate * (error + loop.regularization * of_item);
    const F16 all = set1(error);
    std::int64_t column = 0;
    for (; loop.dim - column >= 16; column += 16) move_columns(p + column, q + column, 16, rate, all, regularization);
    const int tail = static_cast<int>(loop.dim - column);
    if (tail > 0) move_columns(p + column, q + column, tail, rate, all, regularization);
  }
  return squares;
}
