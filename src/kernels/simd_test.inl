constexpr int kOperations = 23;

/// Applies every operation to two vectors; the result of each lane goes to out[operation * 16 +
/// lane].
inline void run_operations(const float* pa, const float* pb, float* out) {
  const F16 a = load(pa), b = load(pb);
  const F16 results[kOperations] = {a + b,
                                    a - b,
                                    a * b,
                                    a / b,
                                    sqrt(a),
                                    at_least(a, b),
                                    at_most(a, b),
                                    quotient(a, b),
                                    copysign(a, b),
                                    abs(a),
                                    negate(a),
                                    sgn(a),
                                    select(less(a, b), a, b),
                                    select(equal(a, b), zero16(), a),
                                    set1(sum16(a)),
                                    set1(sqrt(pa[0])),
                                    zero16(),
                                    load_part(pa, 0),
                                    load_part(pa, 1),
                                    load_part(pa, 8),
                                    load_part(pa, 9),
                                    load_part(pa, 15),
                                    load_part(pa, 16)};
  for (int i = 0; i < kOperations; ++i) store(out + i * 16, results[i]);
}

inline void run_sums(const float* rows, float* sums) {
  F16 q[16];
  for (int i = 0; i < 16; ++i) q[i] = load(rows + i * 16);
  store(sums, sum16_each(q));
}

inline void run_store_part(const float* from, float* to, int n) { store_part(to, load(from), n); }

/// Widens 32 numbers in pairs, and puts them in order.
inline void run_pairs(const std::uint16_t* halves, float* to) {
  F16 a, b;
  load_even_odd(a, b, halves);
  interleave(a, b);
  store(to, a);
  store(to + 16, b);
}

inline bool run_any_nan(const float* pa, const float* pb) { return any_nan(load(pa), load(pb)); }
