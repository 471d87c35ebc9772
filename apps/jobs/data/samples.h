#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

namespace embertable::jobs {

/// Samples as rows of cells, so that everything a step needs of one sample is in one place in
/// memory: ids, numbers of two cells each, then the bits of the label.
struct Samples {
  std::int64_t stride = 1;          ///< cells per sample
  std::vector<std::int32_t> cells;  ///< [size, stride]

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(cells.size()) / stride; }
  const std::int32_t* row(std::int64_t sample) const noexcept {
    return cells.data() + sample * stride;
  }
  std::int32_t id(std::int64_t sample, std::int32_t cell) const noexcept {
    return row(sample)[cell];
  }
  double number(std::int64_t sample, std::int64_t cell) const noexcept {
    double number;
    std::memcpy(&number, row(sample) + cell, sizeof(number));
    return number;
  }
  float label(std::int64_t sample) const noexcept {
    return std::bit_cast<float>(row(sample)[stride - 1]);
  }
};

/// Returns the mean of the labels; NaN without samples.
double mean_label(const Samples& samples);

/// Sets `order` to the samples in the order of one epoch, which depends only on their number, the
/// seed and the epoch. Every order is equally likely: samples are dealt to buckets by random bytes,
/// and each bucket, which fits into the cache, is shuffled by exchanges. Source: Rao, Generation of
/// random permutation of given number of elements using random sampling numbers (1961); Sandelius
/// (1962).
void shuffle_epoch(const Samples& samples, std::uint64_t seed, std::int64_t epoch, Samples& order);

/// Returns how many of the measured samples have a pair of ids, in cells `first` and `second`, that
/// a training sample has too.
std::int64_t count_repeated_pairs(const Samples& training, const Samples& measured,
                                  std::int32_t first, std::int32_t second);

}  // namespace embertable::jobs
