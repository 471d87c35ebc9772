#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace embertable::jobs {

/// Maximum number of runs of a sweep.
inline constexpr std::int64_t kMostSweptRuns = 100'000;

/// A key of a job with the values that a sweep tries: some, or any of a range.
struct SweptKey {
  std::string key;                  ///< "model.dim"
  std::vector<std::string> values;  ///< written like the value of a Change
  struct Range {
    double low = 0, high = 0;  ///< low < high
    bool integers = false;
  };
  std::optional<Range> range;  ///< set: `values` is empty

  /// Parses "model.dim=16,32", where commas within brackets, braces and quotes part nothing, or
  /// "optimizer.learning_rate=0.001..0.1". Throws ValueError naming the rule.
  static SweptKey parse(const std::string& text);
};

/// Values of the swept keys, in their order: what one run changes in its job.
using SweepSetting = std::vector<std::pair<std::string, std::string>>;

/// Returns every combination of values, the last key changing fastest. Throws ValueError for a
/// range, for a key that is given twice, and for none.
std::vector<SweepSetting> grid_of(const std::vector<SweptKey>& keys);

/// Returns `count` different combinations, or all if there are fewer, drawn by a seed: each value
/// is equally likely. Numbers of a range are drawn evenly on a logarithmic scale if it is above 0,
/// else evenly, and have four digits, more where the ends of the range agree in some. Throws as
/// grid_of but for a range.
std::vector<SweepSetting> random_settings(const std::vector<SweptKey>& keys, std::int64_t count,
                                          std::uint64_t seed);

}  // namespace embertable::jobs
