// Rounds numbers to bfloat16 by the carries of a row's key: see base/bfloat16.h, which it needs.
// Part of a level body: see for_each_level.inl.

/// Multiples of kRoundingStep.
inline constexpr std::uint32_t kRoundingSteps[16] = {
    0,
    kRoundingStep,
    2 * kRoundingStep,
    3 * kRoundingStep,
    4 * kRoundingStep,
    5 * kRoundingStep,
    6 * kRoundingStep,
    7 * kRoundingStep,
    8 * kRoundingStep,
    9 * kRoundingStep,
    10 * kRoundingStep,
    11 * kRoundingStep,
    12 * kRoundingStep,
    13 * kRoundingStep,
    14 * kRoundingStep,
    15 * kRoundingStep,
};

/// The carries of a row, 32 columns at a time.
struct RoundingCarries {
  U16 next, factor;

  explicit RoundingCarries(std::uint64_t key)
      : next(load_bits(kRoundingSteps) + set1_bits(static_cast<std::uint32_t>(key))),
        factor(set1_bits(static_cast<std::uint32_t>(key >> 32) | 1u)) {}

  /// Returns the next 32: the lower halves are those of 16 columns, the upper ones of the 16 after.
  EMBERTABLE_INLINE U16 take() {
    U16 x = next ^ shifted_right<16>(next);
    next = next + set1_bits(16 * kRoundingStep);
    x = x * factor;
    return x ^ shifted_right<15>(x);
  }
};
EMBERTABLE_INLINE U16 lower_half(U16 x) { return x & set1_bits(0xffff); }

/// Reads a row of 16 * V columns.
template <int V>
EMBERTABLE_INLINE void widen_columns(float* wide, const std::uint16_t* half) {
  EMBERTABLE_UNROLL
  for (int v = 0; v < V; ++v) store(wide + v * 16, load(half + v * 16));
}

/// Rounds a row of 16 * V columns.
template <int V>
EMBERTABLE_INLINE void round_columns(const float* wide, std::uint16_t* half, std::uint64_t key) {
  RoundingCarries carries(key);
  if constexpr (V == 1) {
    store_upper(half, rounded_with(load(wide), lower_half(carries.take())));
  } else {
    // One branch for the row is less work than a choice in each column.
    F16 x[V];
    bool nan = false;
    EMBERTABLE_UNROLL
    for (int v = 0; v < V; v += 2) {
      x[v] = load(wide + v * 16);
      x[v + 1] = load(wide + v * 16 + 16);
      nan = nan | any_nan(x[v], x[v + 1]);
    }
    if (__builtin_expect(nan, false))
      for (int v = 0; v < V; ++v) x[v] = with_half_nan(x[v]);
    EMBERTABLE_UNROLL
    for (int v = 0; v < V; v += 2) {
      const U16 both = carries.take();
      store_upper(half + v * 16, bits_of(x[v]) + lower_half(both),
                  bits_of(x[v + 1]) + shifted_right<16>(both));
    }
  }
}
