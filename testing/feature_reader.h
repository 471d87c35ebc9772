#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "embertable/errors.h"
#include "input/feature_reader.h"
#include "testing/refusal.h"

namespace embertable::input {

/// A plan as values to compare, for tests.
struct ReadPlan {
  std::int64_t outputs = 0;
  std::vector<std::int64_t> row;
  std::vector<std::int64_t> split;
  std::vector<float> weight;
  std::vector<float> denominator;
  std::vector<std::uint32_t> counts;
  Shape shape;
  std::int64_t dropped = 0;
  std::int64_t truncated = 0;
  friend bool operator==(const ReadPlan&, const ReadPlan&) = default;
};

template <class T>
auto copied(std::span<T> values) {
  return std::vector<std::remove_const_t<T>>(values.begin(), values.end());
}

/// What a reader's plan says after finish.
inline ReadPlan plan_of(FeatureReader& reader) {
  const LookupPlan& plan = reader.plan();
  ReadPlan read{.outputs = plan.outputs,
                .split = copied(plan.split),
                .weight = copied(plan.weight),
                .denominator = copied(plan.denominator),
                .counts = copied(plan.counts),
                .shape = reader.output_shape(),
                .dropped = reader.dropped_ids(),
                .truncated = reader.truncated_entries()};
  for (std::int64_t i = 0; i < plan.row.size; ++i) {
    read.row.push_back(plan.row.wide ? static_cast<std::int64_t>(plan.row.as<std::uint64_t>()[i])
                                     : static_cast<std::int64_t>(plan.row.as<std::uint32_t>()[i]));
  }
  return read;
}

struct ReadOptions {
  FeatureWeights weights = {};
  std::int32_t replica = 0;
  std::int32_t buckets = 0;
  SimdLevel level = SimdLevel::kScalar;
  bool backwards = false;  ///< tiles from the last to the first
};

/// One batch, by a reader of its own.
inline ReadPlan read(const FeatureSpec& spec, const FeatureIds& ids,
                     const ReadOptions& options = {}) {
  Arena arena;
  FeatureReader reader;
  reader.start(spec, ids, options.weights, options.replica, options.buckets, arena);
  const std::int64_t tiles = reader.tiles();
  for (std::int64_t t = 0; t < tiles; ++t) {
    reader.read_tile(options.backwards ? tiles - 1 - t : t, options.level);
  }
  reader.finish();
  return plan_of(reader);
}

/// The message of the error that a batch is refused with, "" if it is not.
inline std::string refusal(const FeatureSpec& spec, const FeatureIds& ids,
                           const ReadOptions& options = {}) {
  return embertable::refusal<ValueError>([&] { read(spec, ids, options); });
}

}  // namespace embertable::input
