#include "kernels/rounding.inl"

/// Rounds a number.
struct AnyHalf {
  EMBERTABLE_INLINE U16 round(F16 x, U16 carry) const { return rounded_with(x, carry); }
};

/// Rounds a number between two limits, which are halves.
struct LimitedHalf {
  F16 low, high;
  EMBERTABLE_INLINE U16 round(F16 x, U16 carry) const {
    const U16 upper = rounded_with(x, carry) & set1_bits(0xffff0000u);
    return bits_of(at_most(at_least(of_bits(upper), low), high));
  }
};

template <class Half>
EMBERTABLE_INLINE void round_row(const float* wide, std::uint16_t* half, std::uint64_t key,
                                 std::int64_t dim, const Half& to) {
  RoundingCarries carries(key);
  std::int64_t c = 0;
  for (; c + 32 <= dim; c += 32) {
    const U16 both = carries.take();
    store_upper(half + c, to.round(load(wide + c), lower_half(both)),
                to.round(load(wide + c + 16), shifted_right<16>(both)));
  }
  if (c == dim) return;
  const U16 both = carries.take();
  const int left = static_cast<int>(dim - c), first = left < 16 ? left : 16;
  store_upper_part(half + c, to.round(load_part(wide + c, first), lower_half(both)), first);
  if (left <= 16) return;
  store_upper_part(half + c + 16,
                   to.round(load_part(wide + c + 16, left - 16), shifted_right<16>(both)),
                   left - 16);
}

inline void widen_rows(const HalfTile& tile) {
  for (std::int32_t r = 0; r < tile.rows; ++r) {
    const std::uint16_t* half = tile.half[r];
    float* wide = tile.wide[r];
    std::int64_t c = 0;
    for (; c + 16 <= tile.dim; c += 16) store(wide + c, load(half + c));
    const int left = static_cast<int>(tile.dim - c);
    if (left > 0) store_part(wide + c, load_part(half + c, left), left);
  }
}

template <class Half>
void round_rows_to(const HalfTile& tile, const Half& to) {
  for (std::int32_t r = 0; r < tile.rows; ++r)
    round_row(tile.wide[r], tile.half[r], tile.key[r], tile.dim, to);
}

inline void round_rows(const HalfTile& tile) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (tile.low == -kInfinity && tile.high == kInfinity) return round_rows_to(tile, AnyHalf{});
  round_rows_to(tile, LimitedHalf{set1(half_above(tile.low)), set1(half_below(tile.high))});
}
