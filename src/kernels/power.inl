// pow, exp and log of 16 lanes of binary32, within 1 ulp. They compute in binary64 with arithmetic
// and bit operations alone, in one order, and round once at the end, so that every level gives the
// same bits; those of libm differ between CPUs. Part of a level body: see for_each_level.inl.

using Longs = std::uint64_t __attribute__((vector_size(sizeof(Doubles))));

EMBERTABLE_INLINE Doubles doubles(double x) { return x - Doubles{}; }
EMBERTABLE_INLINE Longs longs(std::uint64_t x) { return x - Longs{}; }

/// Returns m ? a : b; m is what a comparison gives.
template <class Mask>
EMBERTABLE_INLINE Doubles select(Mask m, Doubles a, Doubles b) {
  const Longs all = reinterpret_cast<Longs>(m);
  return reinterpret_cast<Doubles>((all & reinterpret_cast<Longs>(a)) |
                                   (~all & reinterpret_cast<Longs>(b)));
}

inline constexpr double kLn2 = 0x1.62e42fefa39efp-1;
inline constexpr double kLog2E = 0x1.71547652b82fep+0;
inline constexpr double kMostBits = 0x1.8p+52;  ///< added to a small number, leaves it whole
inline constexpr double kInfinite = __builtin_inf();

/// Returns the logarithm to base 2 of what was binary32: -inf for a zero, NaN for less.
///
/// x = 2^e * m with m in [sqrt(1/2), sqrt(2)); log2(m) = 2/ln2 * atanh(s) with s = (m-1)/(m+1), by
/// its series up to s^17/17; the omitted terms are below 2^-49 of the sum.
EMBERTABLE_INLINE Doubles log2(Doubles x) {
  constexpr std::uint64_t kOne = 0x3ff0000000000000, kRootHalf = 0x3fe6a09e667f3bcd;
  constexpr std::uint64_t kFraction = 0x000fffffffffffff, kExponent = 0x7ff;
  constexpr std::uint64_t kWhole = 0x4330000000000000;  // 2^52, whose last bit counts ones
  const Longs bits = reinterpret_cast<Longs>(x) + longs(kOne - kRootHalf);
  const Longs exponent = ((bits >> 52) & longs(kExponent)) | longs(kWhole);
  const Doubles e = reinterpret_cast<Doubles>(exponent) - doubles(0x1p52 + 1023);
  const Doubles m = reinterpret_cast<Doubles>((bits & longs(kFraction)) + longs(kRootHalf));
  const Doubles s = (m - doubles(1)) / (m + doubles(1));
  const Doubles z = s * s;
  Doubles sum = doubles(1.0 / 17);
  EMBERTABLE_UNROLL
  for (int k = 15; k > 0; k -= 2) sum = doubles(1.0 / k) + z * sum;
  const Doubles log = e + doubles(2 / kLn2) * (s * sum);
  const Doubles below = select(x == doubles(0), doubles(-kInfinite), doubles(__builtin_nan("")));
  return select(x > doubles(0), select(x < doubles(kInfinite), log, x), below);
}

/// Returns 2^t for a result that is rounded to binary32 afterwards: infinity from 2^200 on, zero
/// below 2^-200.
///
/// t = n + f with n whole and |f| <= 1/2; 2^f = e^(f*ln2), by its series up to f^11; the omitted
/// terms are below 2^-46.
EMBERTABLE_INLINE Doubles exp2(Doubles t) {
  t = select(t < doubles(-200), doubles(-200), t);
  t = select(t > doubles(200), doubles(200), t);
  const Doubles whole = t + doubles(kMostBits);  // n in the last bits
  const Doubles x = (t - (whole - doubles(kMostBits))) * doubles(kLn2);
  constexpr double kTerm[] = {
      1,         1,          1.0 / 2,     1.0 / 6,      1.0 / 24,      1.0 / 120,
      1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800};
  Doubles sum = doubles(kTerm[11]);
  EMBERTABLE_UNROLL
  for (int k = 10; k >= 0; --k) sum = doubles(kTerm[k]) + x * sum;
  const Longs power = (reinterpret_cast<Longs>(whole) + longs(1023)) << 52;
  return sum * reinterpret_cast<Doubles>(power);
}

inline constexpr int kParts = static_cast<int>(sizeof(D16) / sizeof(Doubles));

/// Returns x^y as C99 defines it, for x >= 0; -0 counts as +0, and a negative x gives NaN (1 if y =
/// 0).
[[gnu::noinline]] inline F16 pow(const F16& x, const F16& y) {
  const D16 base = widen(x), exponent = widen(y);
  D16 result;
  EMBERTABLE_UNROLL
  for (int i = 0; i < kParts; ++i) {
    const Doubles a = base.part[i], b = exponent.part[i];
    const Doubles power = exp2(b * log2(a));
    result.part[i] = select((a == doubles(1)) | (b == doubles(0)), doubles(1), power);
  }
  return rounded(result);
}

[[gnu::noinline]] inline F16 exp(const F16& x) {
  D16 all = widen(x);
  EMBERTABLE_UNROLL
  for (int i = 0; i < kParts; ++i) all.part[i] = exp2(all.part[i] * doubles(kLog2E));
  return rounded(all);
}

/// Returns the natural logarithm: -inf for a zero, NaN for less.
[[gnu::noinline]] inline F16 log(const F16& x) {
  D16 all = widen(x);
  EMBERTABLE_UNROLL
  for (int i = 0; i < kParts; ++i) all.part[i] = log2(all.part[i]) * doubles(kLn2);
  return rounded(all);
}

/// x^p for one p and many x >= 0. If p in binary32 is a multiple of 1/4 up to 1, it takes a few
/// square roots, each an operation of binary32; otherwise `pow`.
class Power {
 public:
  explicit Power(float p) : exponent_(p), kind_(kind(p)) {}

  EMBERTABLE_INLINE F16 operator()(F16 x) const {
    switch (kind_) {
      case kZero:
        return set1(1.0f);
      case kQuarter:
        return sqrt(sqrt(x));
      case kHalf:
        return sqrt(x);
      case kThreeQuarters: {
        const F16 root = sqrt(x);
        return root * sqrt(root);
      }
      case kOne:
        return x;
      default:
        return pow(x, set1(exponent_));
    }
  }

 private:
  enum Kind : std::int32_t { kZero, kQuarter, kHalf, kThreeQuarters, kOne, kAny };

  static Kind kind(float p) {
    return p == 0       ? kZero
           : p == 0.25f ? kQuarter
           : p == 0.5f  ? kHalf
           : p == 0.75f ? kThreeQuarters
           : p == 1     ? kOne
                        : kAny;
  }

  float exponent_;
  Kind kind_;
};
