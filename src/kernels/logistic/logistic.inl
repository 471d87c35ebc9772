// The logistic function and its loss for 16 lanes of binary32, within 1 ulp. Computes in binary64,
// as power.inl does, which it includes. Part of a level body: see for_each_level.inl.

#include "kernels/power.inl"

/// Returns log(1 + e) for 0 <= e <= 1: 2 atanh(s) with s = e / (2 + e) <= 1/3, by its series up to
/// s^17/17; the omitted terms are below 2^-32 of the sum.
EMBERTABLE_INLINE Doubles log_of_one_plus(Doubles e) {
  const Doubles s = e / (doubles(2) + e);
  const Doubles z = s * s;
  Doubles sum = doubles(1.0 / 17);
  EMBERTABLE_UNROLL
  for (int k = 15; k > 0; k -= 2) sum = doubles(1.0 / k) + z * sum;
  return doubles(2) * (s * sum);
}

/// Returns e^-|x|, in [0, 1].
EMBERTABLE_INLINE Doubles fading(Doubles x) {
  return exp2(select(x < doubles(0), x, doubles(0) - x) * doubles(kLog2E));
}

/// Returns 1 / (1 + e^-x): 0 at -inf, 1 at inf.
[[gnu::noinline]] inline F16 logistic(const F16& x) {
  D16 all = widen(x);
  EMBERTABLE_UNROLL
  for (int i = 0; i < kParts; ++i) {
    const Doubles e = fading(all.part[i]);
    const Doubles above = doubles(1) / (doubles(1) + e);
    all.part[i] = select(all.part[i] < doubles(0), e * above, above);
  }
  return rounded(all);
}

/// Computes both from one exponential: `softplus` is log(1 + e^x), the loss of logit x for label 0;
/// the loss for label 1 is that of -x.
[[gnu::noinline]] inline F16 logistic(const F16& x, F16& softplus) {
  D16 all = widen(x), loss;
  EMBERTABLE_UNROLL
  for (int i = 0; i < kParts; ++i) {
    const Doubles v = all.part[i], e = fading(v);
    const Doubles above = doubles(1) / (doubles(1) + e);
    all.part[i] = select(v < doubles(0), e * above, above);
    const Doubles linear = select(v < doubles(0), doubles(0), v);
    loss.part[i] = linear + log_of_one_plus(e);
  }
  softplus = rounded(loss);
  return rounded(all);
}
