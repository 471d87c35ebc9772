#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/jobs/models/histories_model.h"

namespace embertable::jobs {

/// [model] of kind "next_item": which item comes next. A sample is an item of a user with its last
/// ones before it and some that are drawn; the history's vector is the mean of its items', and the
/// loss that of one logistic regression for each candidate: is it the next? An item's vector is its
/// row and, where items have attributes, the mean of theirs; the history and the candidates may
/// have tables of their own or the same.
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
  std::string history_attributes;  ///< table for the items of the history, "": none
  std::string attributes;          ///< for the candidates
  std::int64_t dim = 0;            ///< dim of all tables
  std::int64_t last = 5;           ///< items of a history
  std::int64_t negatives = 50;     ///< negatives drawn for a sample
  double regularization = 0;       ///< times what is looked up is added to its gradient
};

}  // namespace embertable::jobs
