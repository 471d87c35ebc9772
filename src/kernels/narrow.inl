// Loops without branches, which both compilers turn into vectors of each level.

/// The unsigned type of an id.
template <int kBytes>
struct UnsignedOf {
  using type = std::uint64_t;
};
template <>
struct UnsignedOf<4> {
  using type = std::uint32_t;
};

template <class Id, class Index>
bool narrow(const Narrow<Id, Index>& args) {
  using Unsigned = typename UnsignedOf<sizeof(Id)>::type;
  constexpr Unsigned kTop = Unsigned{1} << (sizeof(Id) * 8 - 1);
  const Id* ids = args.ids;
  Index* row = args.row;
  const std::int64_t count = args.count, most = args.limit - 1;
  const Unsigned last =
      static_cast<std::uint64_t>(most) >= kTop ? kTop - 1 : static_cast<Unsigned>(most);
  Unsigned outside = 0;  // top bit: an id was below 0, or `last - id` was
  for (std::int64_t i = 0; i < count; ++i) {
    const auto id = static_cast<Unsigned>(ids[i]);
    if constexpr (kChecksInput) outside |= id | (last - id);
    row[i] = static_cast<Index>(id);
  }
  return (outside & kTop) == 0;
}

template <bool kCopies, class Split>
SplitsSeen look_at_splits(const CopySplits<Split>& args) {
  using Unsigned = typename UnsignedOf<sizeof(Split)>::type;
  constexpr Unsigned kTop = Unsigned{1} << (sizeof(Split) * 8 - 1);
  const Split* splits = args.splits;
  std::int64_t* split = args.split;
  const std::int64_t outputs = args.outputs;
  // Where no value is below 0, no difference overflows.
  auto falling = kChecksInput ? static_cast<Unsigned>(splits[0]) : Unsigned{0};
  Unsigned other = 0;
  if (kCopies) split[0] = splits[0];
  for (std::int64_t i = 0; i < outputs; ++i) {
    const auto next = static_cast<Unsigned>(splits[i + 1]);
    const Unsigned step = next - static_cast<Unsigned>(splits[i]);
    if constexpr (kChecksInput) falling |= next | step;
    other |= step ^ 1;
    if (kCopies) split[i + 1] = splits[i + 1];
  }
  return {(falling & kTop) == 0, other == 0};
}

template <class Split>
SplitsSeen copy_splits(const CopySplits<Split>& args) {
  return args.split == nullptr ? look_at_splits<false>(args) : look_at_splits<true>(args);
}

inline constexpr std::uint32_t kFewBuckets = 64;

/// Few counters would wait for each other: each is kept fourfold.
template <class Index>
void count_few_buckets(const CountBuckets<Index>& args) {
  constexpr std::int64_t kRun = 512;
  alignas(64) std::uint32_t bucket[kRun];
  alignas(64) std::uint32_t counts[4][kFewBuckets] = {};
  const std::uint32_t buckets = args.buckets;
  for (std::int64_t begin = 0; begin < args.count; begin += kRun) {
    const Index* row = args.row + begin;
    const std::int64_t n = args.count - begin < kRun ? args.count - begin : kRun;
    for (std::int64_t i = 0; i < n; ++i) bucket[i] = bucket_of(row[i], buckets);
    std::int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
      ++counts[0][bucket[i]];
      ++counts[1][bucket[i + 1]];
      ++counts[2][bucket[i + 2]];
      ++counts[3][bucket[i + 3]];
    }
    for (; i < n; ++i) ++counts[0][bucket[i]];
  }
  for (std::uint32_t b = 0; b < buckets; ++b)
    args.counts[b] = counts[0][b] + counts[1][b] + counts[2][b] + counts[3][b];
}

template <class Index>
void count_buckets(const CountBuckets<Index>& args) {
  constexpr std::int64_t kRun = 512;
  alignas(64) std::uint32_t bucket[kRun];
  const std::uint32_t buckets = args.buckets;
  std::uint32_t* counts = args.counts;
  if (buckets <= kFewBuckets) return count_few_buckets(args);
  __builtin_memset(counts, 0, std::size_t{buckets} * sizeof *counts);
  for (std::int64_t begin = 0; begin < args.count; begin += kRun) {
    const Index* row = args.row + begin;
    const std::int64_t n = args.count - begin < kRun ? args.count - begin : kRun;
    for (std::int64_t i = 0; i < n; ++i) bucket[i] = bucket_of(row[i], buckets);
    for (std::int64_t i = 0; i < n; ++i) ++counts[bucket[i]];
  }
}
