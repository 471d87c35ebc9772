#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/jobs/math/mlp.h"
#include "apps/jobs/models/records_model.h"

namespace embertable::jobs {

/// Section [model] of kind "ctr": predicts whether a record's label is 1, by its logit
///   bias + sum of the linear features' values + MLP(deep features' rows and numbers side by side).
/// One of the two sums may be left out.
class CtrSpec final : public RecordsModelSpec {
 public:
  void read_model(TomlSection& root, const Job& job) override;
  std::vector<std::string> metrics() const override { return {"auc", "logloss"}; }

  std::vector<std::string> linear;   ///< features of tables of dim 1
  std::vector<std::string> deep;     ///< features
  std::vector<std::int64_t> hidden;  ///< outputs of the MLP's hidden layers
  double regularization = 0;         ///< a looked up row times this is added to its gradient
  double linear_regularization = 0;  ///< the same for the linear features
  MlpOptimizer dense;                ///< optimizer of the bias and the MLP

  static constexpr std::size_t kMostFeatures = 256;  ///< in each of the two sums
  static constexpr std::int64_t kMostOutputs = 4096;

 private:
  std::unique_ptr<RecordsModel> make_of(const Job& job, DataSet data) const override;
  void check_parameters(const SavedParts& saved) const override;
  void read_roles(TomlSection& section, const Job& job);
  void read_hidden(TomlSection& section);
  void read_dense(TomlSection section);
};

}  // namespace embertable::jobs
