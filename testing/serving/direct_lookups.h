#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "testing/serving/lookups.h"

namespace embertable::engine_fixture {

/// Direct tables of the cases; two replicas unless said otherwise.
inline DirectEmbedding direct_with(StrategyPtr strategy, Nested<FeatureConfig> of = features(),
                                   const std::optional<Optimizer>& optimizer = sgd(0.1)) {
  return DirectEmbedding(std::move(of), optimizer, std::move(strategy));
}

/// One gradient for each activation of each replica, made of it and kept; an empty one is a null
/// gradient.
class DirectGradients {
 public:
  template <class Make>
  DirectGradients(std::span<const LookupOutput> lookups, Make make) {
    for (std::size_t r = 0; r < lookups.size(); ++r) {
      std::vector<Gradient> leaves;
      for (std::int64_t i = 0; i < lookups[r].size(); ++i) {
        const Activation& of = lookups[r](i);
        storage_.push_back(std::make_unique<F>(make(of, i, static_cast<std::int32_t>(r))));
        leaves.push_back(storage_.back()->empty() ? Gradient::none()
                                                  : Gradient{*storage_.back(), of.shape});
      }
      trees_.emplace_back(lookups[r].structure(), std::move(leaves));
    }
  }
  std::span<const Nested<Gradient>> all() const { return trees_; }

 private:
  std::vector<std::unique_ptr<F>> storage_;
  std::vector<Nested<Gradient>> trees_;
};

/// A lookup of all replicas and a step with its gradients.
template <class Make>
std::vector<LookupOutput> train(DirectEmbedding& direct, std::span<const Batch> batches,
                                Make make) {
  std::vector<LookupOutput> lookups = direct.embedding_lookup(batches);
  direct.apply_gradients(lookups, DirectGradients(lookups, make).all());
  return lookups;
}

/// A whole variable, row-major.
inline F variable(DirectEmbedding& direct, std::string_view name, std::int64_t rows,
                  std::int64_t width) {
  F out(rows * width);
  Ids ids;
  for (std::int64_t i = 0; i < rows; ++i) ids.push_back(i);
  direct.read_rows(name, ids, out);
  return out;
}

}  // namespace embertable::engine_fixture
