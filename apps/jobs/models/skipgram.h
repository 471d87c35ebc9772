#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/jobs/data/corpus.h"
#include "apps/jobs/spec/model.h"

namespace embertable::jobs {

/// Section [model] of kind "skipgram": learns vectors of words from the words near them in a text
/// (skip-gram with negative sampling). Source: Mikolov et al., Distributed representations of words
/// and phrases and their compositionality (2013).
class SkipgramSpec final : public ModelSpec {
 public:
  std::string compared_table() const override { return word; }
  bool scores_rows() const override { return false; }
  std::vector<std::string> read_data(TomlSection& root) override;
  void read_model(TomlSection& root, const Job& job) override;
  std::vector<std::string> metrics() const override;
  bool trains_on_validation() const override { return corpus.train_on_validation; }
  std::unique_ptr<Model> make(const Job& job, const DataOptions& options) const override;
  PartsById parts_by_id() const override;
  std::unique_ptr<Predictor> make_predictor(const SavedParts& saved,
                                            const NewRows& rows) const override;

  std::vector<std::string> files;
  std::string ids;
  CorpusSpec corpus;
  std::string word, context;   ///< tables
  std::int64_t window = 5;     ///< maximum number of contexts of a word on each side
  std::int64_t negatives = 5;  ///< drawn words for each pair
  std::int64_t run = 16;       ///< neighbouring words that share drawn words
  /// Words drawn for a run, each counting negatives / run_negatives.
  std::int64_t run_negatives = 8;
  double subsample = 1e-4;       ///< share of the text from which words are left out; 0: none
  double negative_power = 0.75;  ///< exponent of a word's count in the probability to be drawn
  std::string similarity;        ///< file of word pairs with scores, or ""
};

}  // namespace embertable::jobs
