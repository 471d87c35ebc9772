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

/// Number of values that are read while the next ones are prefetched. A batch comes from memory in
/// arrays too short for the processor's own prefetcher.
inline constexpr std::int64_t kRunLength = 256;

/// Prefetches the run after the one at `from`, unless that run is cut short. `left` values start at
/// `from`.
template <class T>
EMBERTABLE_INLINE void fetch_next_run(const T* from, std::int64_t left) {
  if (left < 2 * kRunLength) return;
  for (std::int64_t i = 0; i < kRunLength; i += 64 / static_cast<std::int64_t>(sizeof(T)))
    __builtin_prefetch(from + kRunLength + i, 0, 3);
}

/// Returns `outside` and more bits, the top one if an id is below 0 or above `last`.
template <class Id, class Index, class Unsigned>
EMBERTABLE_INLINE Unsigned narrow_run(const Id* ids, Index* row, std::int64_t count, Unsigned last,
                                      Unsigned outside) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto id = static_cast<Unsigned>(ids[i]);
    outside |= id | (last - id);
    row[i] = static_cast<Index>(id);
  }
  return outside;
}

template <class Id, class Index>
bool narrow(const Narrow<Id, Index>& args) {
  using Unsigned = typename UnsignedOf<sizeof(Id)>::type;
  constexpr Unsigned kTop = Unsigned{1} << (sizeof(Id) * 8 - 1);
  const Id* ids = args.ids;
  Index* row = args.row;
  const std::int64_t count = args.count, most = args.limit - 1;
  const Unsigned last =
      static_cast<std::uint64_t>(most) >= kTop ? kTop - 1 : static_cast<Unsigned>(most);
  Unsigned outside = 0;
  std::int64_t i = 0;
  for (; i + kRunLength <= count; i += kRunLength) {
    fetch_next_run(ids + i, count - i);
    outside = narrow_run(ids + i, row + i, kRunLength, last, outside);
  }
  outside = narrow_run(ids + i, row + i, count - i, last, outside);
  return (outside & kTop) == 0;
}

/// Bits that the splits seen so far have had.
template <class Unsigned>
struct SplitBits {
  Unsigned falling;  ///< top bit: one was below 0, or below the one before it
  Unsigned other;    ///< not 0: one did not rise by 1
};

template <bool kCopies, class Split, class Unsigned>
EMBERTABLE_INLINE SplitBits<Unsigned> look_at_run(const Split* splits, std::int64_t* split,
                                                  std::int64_t outputs, SplitBits<Unsigned> bits) {
  Unsigned falling = bits.falling, other = bits.other;
  for (std::int64_t i = 0; i < outputs; ++i) {
    const auto next = static_cast<Unsigned>(splits[i + 1]);
    const Unsigned step = next - static_cast<Unsigned>(splits[i]);
    falling |= next | step;
    other |= step ^ 1;
    if (kCopies) split[i + 1] = splits[i + 1];
  }
  return {falling, other};
}

template <bool kCopies, class Split>
SplitsSeen look_at_splits(const CopySplits<Split>& args) {
  using Unsigned = typename UnsignedOf<sizeof(Split)>::type;
  constexpr Unsigned kTop = Unsigned{1} << (sizeof(Split) * 8 - 1);
  const Split* splits = args.splits;
  std::int64_t* split = args.split;
  const std::int64_t outputs = args.outputs;
  // Where no value is below 0, no difference overflows.
  SplitBits<Unsigned> bits = {static_cast<Unsigned>(splits[0]), 0};
  if (kCopies) split[0] = splits[0];
  std::int64_t i = 0;
  for (; i + kRunLength <= outputs; i += kRunLength) {
    fetch_next_run(splits + i, outputs - i);
    bits = look_at_run<kCopies>(splits + i, kCopies ? split + i : nullptr, kRunLength, bits);
  }
  bits = look_at_run<kCopies>(splits + i, kCopies ? split + i : nullptr, outputs - i, bits);
  return {(bits.falling & kTop) == 0, bits.other == 0};
}

template <class Split>
SplitsSeen copy_splits(const CopySplits<Split>& args) {
  return args.split == nullptr ? look_at_splits<false>(args) : look_at_splits<true>(args);
}

/// Number of rows whose buckets are computed before they are counted.
inline constexpr std::int64_t kCounted = 512;

template <class Index>
void count_few_buckets(const CountBuckets<Index>& args) {
  alignas(64) std::uint32_t bucket[kCounted];
  FewCounts counts;
  const std::uint32_t buckets = args.buckets;
  for (std::int64_t begin = 0; begin < args.count; begin += kCounted) {
    const Index* row = args.row + begin;
    const std::int64_t n = args.count - begin < kCounted ? args.count - begin : kCounted;
    for (std::int64_t i = 0; i < n; ++i) bucket[i] = bucket_of(row[i], buckets);
    counts.add(bucket, n);
  }
  for (std::uint32_t b = 0; b < buckets; ++b) args.counts[b] = counts.of(b);
}

template <class Index>
void count_buckets(const CountBuckets<Index>& args) {
  alignas(64) std::uint32_t bucket[kCounted];
  const std::uint32_t buckets = args.buckets;
  std::uint32_t* counts = args.counts;
  if (buckets <= FewCounts::kFew) return count_few_buckets(args);
  __builtin_memset(counts, 0, std::size_t{buckets} * sizeof *counts);
  for (std::int64_t begin = 0; begin < args.count; begin += kCounted) {
    const Index* row = args.row + begin;
    const std::int64_t n = args.count - begin < kCounted ? args.count - begin : kCounted;
    for (std::int64_t i = 0; i < n; ++i) bucket[i] = bucket_of(row[i], buckets);
    for (std::int64_t i = 0; i < n; ++i) ++counts[bucket[i]];
  }
}

template <class Index>
void number_buckets(const NumberBuckets<Index>& args) {
  const Index* row = args.row;
  const std::uint32_t buckets = args.buckets;
  std::uint16_t* bucket = args.bucket;
  for (std::int64_t i = 0; i < args.count; ++i)
    bucket[i] = static_cast<std::uint16_t>(bucket_of(row[i], buckets));
}
