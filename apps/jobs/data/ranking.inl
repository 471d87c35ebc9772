// The body of ranking.cc for one SIMD level.

// The registers hold sums of kQueries x kPanels vectors, besides the items' vectors.
inline constexpr int kQueries = EMBERTABLE_LEVEL == 2 ? 4 : 2;
inline constexpr int kPanels = EMBERTABLE_LEVEL == 2 ? 4 : EMBERTABLE_LEVEL == 1 ? 2 : 1;

/// Computes the scores of Q queries and P panels of 16 items.
template <int Q, int P>
EMBERTABLE_INLINE void score_tile(const jobs::ScoreTile& t, std::int64_t query,
                                  std::int64_t panel) {
  const float* const queries = t.queries + query * t.dim;
  const float* const items = t.panels + panel * 16 * t.dim;
  F16 sum[Q][P];
  for (auto& row : sum) {
    for (F16& x : row) x = zero16();
  }
  for (std::int64_t k = 0; k < t.dim; ++k) {
    F16 x[P];
    EMBERTABLE_UNROLL
    for (int p = 0; p < P; ++p) x[p] = load(items + (p * t.dim + k) * 16);
    EMBERTABLE_UNROLL
    for (int q = 0; q < Q; ++q) {
      const F16 factor = set1(queries[q * t.dim + k]);
      EMBERTABLE_UNROLL
      for (int p = 0; p < P; ++p) sum[q][p] = sum[q][p] + factor * x[p];
    }
  }
  float* const out = t.scores + query * t.num_panels * 16 + panel * 16;
  EMBERTABLE_UNROLL
  for (int q = 0; q < Q; ++q) {
    EMBERTABLE_UNROLL
    for (int p = 0; p < P; ++p) store(out + q * t.num_panels * 16 + p * 16, sum[q][p]);
  }
}

template <int Q>
EMBERTABLE_INLINE void score_queries(const jobs::ScoreTile& t, std::int64_t query) {
  std::int64_t panel = 0;
  for (; t.num_panels - panel >= kPanels; panel += kPanels) score_tile<Q, kPanels>(t, query, panel);
  for (; panel < t.num_panels; ++panel) score_tile<Q, 1>(t, query, panel);
}

inline void score(const jobs::ScoreTile& t) {
  std::int64_t query = 0;
  for (; t.num_queries - query >= kQueries; query += kQueries) score_queries<kQueries>(t, query);
  for (; query < t.num_queries; ++query) score_queries<1>(t, query);
}

EMBERTABLE_INLINE bool any(M16 m) {
#if EMBERTABLE_LEVEL == 2
  return m.all != 0;
#elif EMBERTABLE_LEVEL == 1
  return _mm256_movemask_ps(_mm256_or_ps(m.low, m.high)) != 0;
#else
  const Int4 some = m.part[0] | m.part[1] | m.part[2] | m.part[3];
  return _mm_movemask_ps(reinterpret_cast<Float4>(some)) != 0;
#endif
}

/// Returns the first i >= from with scores[i] > bound; count if there is none.
inline std::int64_t next_above(const float* scores, std::int64_t from, std::int64_t count,
                               float bound) {
  const F16 all = set1(bound);
  std::int64_t i = from;
  while (count - i >= 16 && !any(less(all, load(scores + i)))) i += 16;
  while (i < count && !(scores[i] > bound)) ++i;
  return i;
}
