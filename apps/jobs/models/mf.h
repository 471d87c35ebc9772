#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/jobs/models/records_model.h"

namespace embertable::jobs {

/// [model] of kind "mf": biased matrix factorisation of labels with two ids each,
///   mean + user_bias + item_bias + <user, item + sides...>.
class MfSpec final : public RecordsModelSpec {
 public:
  void read_model(TomlSection& root, const Job& job) override;
  std::vector<std::string> metrics() const override { return {"rmse", "mae"}; }
  std::string compared_table() const override;
  PartsById parts_by_id() const override;

  /// With a number of items, ranks them for users.
  std::unique_ptr<Predictor> make_predictor(const SavedParts& saved,
                                            const NewRows& rows) const override;

  bool ranks_if_asked(const Job& job) const override { return side_of_others(job).empty(); }

  /// Returns the ids of a feature's table.
  const IdsSpec& ids_of(const std::string& feature, const Job& job) const;

  /// Returns the first of `sides` that is not of the items alone, so that they cannot be ranked;
  /// "": none is.
  std::string side_of_others(const Job& job) const;

  std::string user, item;            ///< features
  std::string user_bias, item_bias;  ///< tables of dim 1, or ""
  std::vector<std::string> sides;
  double regularization = 0;  ///< the looked up row times this is added to its gradient

  static constexpr std::size_t kMostSides = 64;

  /// Names of saved parts: the mean of the training labels, and by user the items that it has in
  /// what was trained on, which are not suggested to it.
  static constexpr const char* kSavedMean = "mean";
  static constexpr const char* kSavedKnown = "known";

 private:
  std::unique_ptr<RecordsModel> make_of(const Job& job, DataSet data) const override;
  void read_roles(TomlSection& section, const Job& job);

  std::string user_ids_, item_ids_;  ///< ids of the user's and the item's table

  void check_feature(const TomlSection& section, std::string_view key, const Job& job,
                     const std::string& feature, std::int32_t dim, bool one_id) const;
};

}  // namespace embertable::jobs
