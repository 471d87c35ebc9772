#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "apps/jobs/run/ranks.h"
#include "apps/jobs/spec/model.h"

namespace embertable::jobs {

/// Numbers begin <= n < end.
struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const noexcept { return end - begin; }
};

/// The blocks of a step whose samples lie in several processes. Each process looks up the samples
/// of its replicas; a block is computed by the process that has its first sample. What a block
/// needs and gives travels between them, so that every process sums losses and dense gradients in
/// the order of the blocks.
class SharedBlocks {
 public:
  /// Steps of up to `batch` samples, in blocks of `block_samples`. Borrows the memory of a step:
  /// `rows` by feature, [batch, floats of the feature].
  SharedBlocks(Ranks& ranks, std::int64_t batch, std::int64_t block_samples,
               std::vector<std::vector<float>>& rows, const std::vector<std::int64_t>& floats);

  /// Returns the samples of a step of `size` that this process looks up, and the blocks that it
  /// computes.
  Range samples(std::int64_t size) const noexcept { return samples_of(ranks_.host(), size); }
  Range blocks(std::int64_t size) const noexcept;

  /// Sets the step that messages belong to from now on. Errors name it.
  void set_step(std::int64_t step) noexcept { step_ = step; }

  // All processes call these together.

  /// Gets the rows of this process's blocks that others have looked up.
  void fetch_rows(std::int64_t size);

  /// Passes on what the blocks gave: their losses and dense gradients to all processes, gradients
  /// of rows to those that looked them up, and whether a process is asked to stop.
  void share(std::int64_t size, std::span<double> losses, Model& model);

  /// Gets the rows of all samples to host 0.
  void gather_rows(std::int64_t size);

  /// Completes the values of `samples` samples, taken in steps of the batch, of which each process
  /// has those of its blocks.
  void complete(std::int64_t samples, std::span<std::byte> values);

  /// Lets each process compute a range of `count` values, and completes them.
  void divide(std::int64_t count, std::span<std::byte> values, const Lookups::Compute& compute);

 private:
  template <class ForEachPart>
  void swap_values(const ForEachPart& for_each_part);
  Range samples_of(std::int32_t host, std::int64_t size) const noexcept;
  Range computed_by(std::int32_t host, std::int64_t size) const noexcept;
  bool any_shared(std::int64_t size) const noexcept;
  std::int64_t blocks_begin(std::int32_t host, std::int64_t size) const noexcept;
  void append_rows(Range samples, std::vector<std::byte>& message) const;
  void take_rows(Range samples, ByteSpan message);
  void swap(std::string_view what);
  void swap_sent(std::string_view what);

  Ranks& ranks_;
  std::int64_t batch_;
  std::int64_t block_samples_;
  std::int64_t step_ = -1;
  std::vector<std::vector<float>>& rows_;
  const std::vector<std::int64_t>& floats_;
  std::vector<std::vector<std::byte>> messages_;  ///< by host
  std::vector<std::byte> to_all_;
  std::vector<ByteSpan> send_, received_;  ///< by host
};

}  // namespace embertable::jobs
