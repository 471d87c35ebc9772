EMBERTABLE_INLINE bool all_zero(F16 x) {
  float lane[16];
  store(lane, x);
  bool zero = true;
  for (int l = 0; l < 16; ++l) zero = zero && lane[l] == 0;
  return zero;
}

/// Gives 0 for a finite x, else NaN.
EMBERTABLE_INLINE F16 difference(const float* p) {
  const F16 x = load(p);
  return x - x;
}

std::int64_t first_not_finite(const float* values, std::int64_t count) {
  constexpr std::int64_t kBlock = 1024;
  std::int64_t first = 0;
  for (; first + kBlock <= count; first += kBlock) {
    F16 sum[4] = {zero16(), zero16(), zero16(), zero16()};
    for (std::int64_t i = first; i < first + kBlock; i += 64) {
      for (int k = 0; k < 4; ++k) sum[k] = sum[k] + difference(values + i + k * 16);
    }
    if (!all_zero((sum[0] + sum[1]) + (sum[2] + sum[3]))) break;
  }
  for (; first < count; ++first) {
    if (!(values[first] - values[first] == 0)) return first;
  }
  return count;
}
