#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/jobs/models/histories_model.h"

namespace embertable::jobs {

/// Section [model] of kind "pairwise": users prefer the items that they have to those that they
/// lack. A sample is a user with one of the user's items i and some drawn items j. Its loss is the
/// sum of -log of the probability 1 / (1 + e^-<u, i - j>) that the user prefers i to j. Source:
/// Rendle, Freudenthaler, Gantner, Schmidt-Thieme, BPR: Bayesian personalized ranking from implicit
/// feedback (UAI 2009).
class PairwiseSpec final : public HistoriesModelSpec {
 public:
  std::vector<std::string> read_data(TomlSection& root) override;
  void read_model(TomlSection& root, const Job& job) override;
  std::unique_ptr<Model> make(const Job& job, const DataOptions& options) const override;
  RankedVectors ranked_vectors() const override {
    return {.user = user, .history = item, .item = item};
  }

  std::string user, item;      ///< tables
  std::int64_t dim = 0;        ///< dim of both tables
  std::int64_t negatives = 1;  ///< negatives drawn for a sample
  bool avoid_known = true;     ///< no item that the user has is drawn
  double regularization = 0;   ///< the looked up row times this is added to its gradient
};

}  // namespace embertable::jobs
