// The body of logistic.cc for one SIMD level.

#include "kernels/logistic/logistic.inl"

EMBERTABLE_INLINE void run_part(const Logistic& a, std::int64_t at, int n) {
  const F16 x = n == 16 ? load(a.logit + at) : load_part(a.logit + at, n);
  F16 loss;
  const F16 probability = a.loss != nullptr ? logistic(x, loss) : logistic(x);
  n == 16 ? store(a.probability + at, probability) : store_part(a.probability + at, probability, n);
  if (a.loss == nullptr) return;
  n == 16 ? store(a.loss + at, loss) : store_part(a.loss + at, loss, n);
}

inline void run(const Logistic& a) {
  std::int64_t at = 0;
  for (; a.count - at >= 16; at += 16) run_part(a, at, 16);
  if (at < a.count) run_part(a, at, static_cast<int>(a.count - at));
}
