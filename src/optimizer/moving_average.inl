// Part of the bodies of rules: see formula.inl.

/// beta*a + (1-beta)*x, where 1-beta is rounded to binary32.
struct MovingAverage {
  F16 beta, rest;

  explicit MovingAverage(float share) : beta(set1(share)), rest(set1(1 - share)) {}

  EMBERTABLE_INLINE F16 next(F16 a, F16 x) const { return beta * a + rest * x; }
  EMBERTABLE_INLINE F16 next_of_square(F16 a, F16 x) const { return beta * a + rest * x * x; }
};
