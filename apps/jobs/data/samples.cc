#include "apps/jobs/data/samples.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/random.h"

namespace embertable::jobs {
namespace {

constexpr std::size_t kMostBuckets = 256;
constexpr std::int64_t kBucketSamples = 4096;

/// Exchanges two rows, which may be the same one.
void swap_rows(std::int32_t* a, std::int32_t* b, std::int64_t cells) {
  using Run = std::array<std::int32_t, 8>;
  constexpr std::int64_t kRun = std::tuple_size_v<Run>;
  std::int64_t i = 0;
  for (; i + kRun <= cells; i += kRun) {
    Run x, y;
    std::memcpy(&x, a + i, sizeof(Run));
    std::memcpy(&y, b + i, sizeof(Run));
    std::memcpy(a + i, &y, sizeof(Run));
    std::memcpy(b + i, &x, sizeof(Run));
  }
  std::swap_ranges(a + i, a + cells, b + i);
}

/// Exchanges rows until each order is equally likely. Two exchanges, among the remaining 2 n and
/// then 2 n - 1 rows, use the two halves of one number.
void shuffle_rows(std::int32_t* rows, std::int64_t count, std::int64_t stride,
                  const RandomRow& random) {
  std::uint64_t bits = random.bits(static_cast<std::uint64_t>(count + 1) / 2);
  for (std::int64_t left = count; left > 1; --left) {
    if (left % 2 == 0) bits = random.bits(static_cast<std::uint64_t>(left) / 2);
    const std::uint64_t half = left % 2 == 0 ? bits >> 32 : bits & 0xffffffffu;
    const auto chosen = static_cast<std::int64_t>((half * static_cast<std::uint64_t>(left)) >> 32);
    swap_rows(rows + (left - 1) * stride, rows + chosen * stride, stride);
  }
}

}  // namespace

double mean_label(const Samples& samples) {
  double sum = 0;
  for (std::int64_t s = 0; s < samples.size(); ++s) sum += samples.label(s);
  return sum / static_cast<double>(samples.size());
}

void shuffle_epoch(const Samples& samples, std::uint64_t seed, std::int64_t epoch, Samples& order) {
  const std::uint64_t stream =
      stream_of(mix_seeds(seed, static_cast<std::uint64_t>(epoch)), "epoch order");
  const std::int64_t count = samples.size();
  const std::int64_t stride = samples.stride;
  const std::size_t buckets =
      std::min(kMostBuckets, std::bit_ceil(static_cast<std::size_t>(count / kBucketSamples + 1)));

  // Eight samples share one random number, a byte each.
  const RandomRow dealt(stream, kMostBuckets);
  std::vector<std::uint8_t> bucket(count);
  std::int64_t begin[kMostBuckets + 1] = {};
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < bucket.size(); ++i) {
    bits = i % 8 == 0 ? dealt.bits(i / 8) : bits >> 8;
    bucket[i] = static_cast<std::uint8_t>(bits & (buckets - 1));
    ++begin[bucket[i] + 1];
  }
  for (std::size_t b = 0; b < buckets; ++b) begin[b + 1] += begin[b];

  order.stride = stride;
  order.cells.resize(samples.cells.size());
  std::int64_t next[kMostBuckets];
  std::copy_n(begin, kMostBuckets, next);
  for (std::size_t i = 0; i < bucket.size(); ++i) {
    const std::int32_t* from = samples.row(static_cast<std::int64_t>(i));
    std::copy_n(from, stride, order.cells.data() + next[bucket[i]]++ * stride);
  }
  for (std::size_t b = 0; b < buckets; ++b) {
    shuffle_rows(order.cells.data() + begin[b] * stride, begin[b + 1] - begin[b], stride,
                 RandomRow(stream, b));
  }
}

std::int64_t count_repeated_pairs(const Samples& training, const Samples& measured,
                                  std::int32_t first, std::int32_t second) {
  const auto pair = [&](const Samples& samples, std::int64_t s) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(samples.id(s, first))) << 32 |
           static_cast<std::uint32_t>(samples.id(s, second));
  };
  // Most training pairs are told apart by a bit of their hash, without a search.
  const std::uint64_t mask =
      std::bit_ceil(static_cast<std::uint64_t>(16 * measured.size() + 64)) - 1;
  std::vector<std::uint64_t> is_measured(mask / 64 + 1);
  for (std::int64_t s = 0; s < measured.size(); ++s) {
    const std::uint64_t bit = mix_bits(pair(measured, s)) & mask;
    is_measured[bit / 64] |= std::uint64_t{1} << bit % 64;
  }
  std::vector<std::uint64_t> trained;
  for (std::int64_t s = 0; s < training.size(); ++s) {
    const std::uint64_t key = pair(training, s), bit = mix_bits(key) & mask;
    if ((is_measured[bit / 64] >> bit % 64 & 1) != 0) trained.push_back(key);
  }
  std::sort(trained.begin(), trained.end());
  std::int64_t repeated = 0;
  for (std::int64_t s = 0; s < measured.size(); ++s)
    repeated += std::binary_search(trained.begin(), trained.end(), pair(measured, s)) ? 1 : 0;
  return repeated;
}

}  // namespace embertable::jobs
