#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/jobs/data/histories_spec.h"
#include "apps/jobs/data/ranking.h"
#include "apps/jobs/spec/job.h"
#include "apps/jobs/spec/model.h"

namespace embertable::jobs {

/// Names of what `predict` needs, as checkpoints have them.
inline constexpr const char* kSavedPopularity = "popularity";
inline constexpr const char* kSavedKnown = "known";

/// The vectors by which a model ranks items: rows of tables or, if the model saved them, their
/// "vectors".
struct RankedVectors {
  std::string user;       ///< table of users, or "": none
  std::string history;    ///< table of items, whose mean stands for a user without a row
  std::string item;       ///< table of the items that are ranked
  std::int64_t last = 0;  ///< items of a history that count, from its end; 0: all
};

/// Common part of the kinds that learn from users' items and are measured by ranking all items.
class HistoriesModelSpec : public ModelSpec {
 public:
  std::vector<std::string> ids_without_tables() const override;
  std::vector<std::string> metrics() const override;
  bool trains_on_validation() const override { return histories_.split.train_on_validation; }

  PartsById parts_by_id() const override;
  std::unique_ptr<Predictor> make_predictor(const SavedParts& saved,
                                            const NewRows& rows) const override;
  virtual RankedVectors ranked_vectors() const = 0;
  std::string compared_table() const override { return ranked_vectors().item; }

  /// Saved parts that `predict` needs: how often each item occurs in the trained data, and the
  /// items of each user there, which are not suggested to that user.
  PartsById::Numbers popularity_part() const {
    return {kSavedPopularity, histories_.data.items.name};
  }
  PartsById::Lists known_part() const {
    return {kSavedKnown, histories_.data.users.name, histories_.data.items.name};
  }

  const HistoriesJob& histories() const noexcept { return histories_; }
  const std::vector<RankingMetric>& ranking_metrics() const noexcept { return metrics_; }

  /// Returns the first of the parts that are trained on, as Part numbers them.
  Part first_trained() const noexcept {
    return trains_on_validation() ? Part::kValidation : Part::kTraining;
  }

 protected:
  /// Reads data, ids and split, and the names of ranking metrics that the job wants besides
  /// `usual`.
  void read_histories_data(TomlSection& root, const std::vector<std::string>& rules,
                           const std::vector<std::string>& usual);

  /// Reads the name of a table, whose rows must be these ids with `dim` floats; 0 accepts any dim.
  static std::string read_table(TomlSection& section, std::string_view key, const Job& job,
                                const std::string& ids, std::int32_t dim);

 private:
  HistoriesJob histories_;
  std::vector<RankingMetric> metrics_;
};

/// Ranks for every query as far as the metrics look; of several processes each ranks for a range of
/// them. Returns the value of each metric: NaN if a vector is not finite, since such scores have no
/// order.
Measures measure_ranking(Ranking ranking, const ListsView& wanted,
                         const std::vector<RankingMetric>& metrics, Lookups& lookups);

/// Returns [items]: the number of events in the parts from `first` on.
std::vector<float> popularity(const Histories& histories, Part first);

/// Measures the ranking that shows everybody the items with most events in the parts from `first`
/// on.
Measures measure_popularity(const Histories& histories, Part first, std::int64_t queries,
                            const ListsView& excluded, const ListsView& wanted,
                            const std::vector<RankingMetric>& metrics);

}  // namespace embertable::jobs
