#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/jobs/models/histories_model.h"

namespace embertable::jobs {

/// Section [model] of kind "next_item": predicts which item comes next. A sample is an item of a
/// user, the last items before it and some drawn items. The history's vector is the mean of its
/// items'; the loss is that of one logistic regression for each candidate: is it the next? An
/// item's vector is its row plus, if items have attributes, the mean of theirs; the history and the
/// candidates may have tables of their own or the same.
class NextItemSpec final : public HistoriesModelSpec {
 public:
  std::vector<std::string> read_data(TomlSection& root) override;
  void read_model(TomlSection& root, const Job& job) override;
  std::unique_ptr<Model> make(const Job& job, const DataOptions& options) const override;
  RankedVectors ranked_vectors() const override {
    return {.user = "", .history = history, .item = item, .last = last};
  }

  bool has_attributes() const noexcept { return !attributes.empty(); }

  std::string history, item;       ///< tables of items
  std::string history_attributes;  ///< table for the attributes of items of the history, "": none
  std::string attributes;          ///< table for the attributes of candidates, "": none
  std::int64_t dim = 0;            ///< dim of all tables
  std::int64_t last = 5;           ///< items of a history
  std::int64_t negatives = 50;     ///< negatives drawn for a sample
  double regularization = 0;       ///< what is looked up times this is added to its gradient
};

}  // namespace embertable::jobs
