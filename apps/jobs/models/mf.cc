#include "apps/jobs/models/mf.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "apps/jobs/math/item_vectors.h"
#include "apps/jobs/math/metrics.h"
#include "apps/jobs/math/rating_baselines.h"
#include "apps/jobs/models/mf_block.h"
#include "apps/jobs/models/mf_recommender.h"
#include "apps/jobs/spec/state_tensors.h"

namespace embertable::jobs {
namespace {

/// Returns, back to back, the distinct items of each user, rising.
SavedLists items_of_users(const Samples& samples, std::int32_t user, std::int32_t item,
                          std::int64_t users) {
  SavedLists lists;
  lists.splits.assign(static_cast<std::size_t>(users) + 1, 0);
  for (std::int64_t s = 0; s < samples.size(); ++s) ++lists.splits[samples.id(s, user) + 1];
  std::partial_sum(lists.splits.begin(), lists.splits.end(), lists.splits.begin());
  lists.ids.resize(samples.size());
  std::vector<std::int64_t> next = lists.splits;
  for (std::int64_t s = 0; s < samples.size(); ++s)
    lists.ids[next[samples.id(s, user)]++] = samples.id(s, item);
  std::int64_t kept = 0;
  for (std::int64_t u = 0; u < users; ++u) {
    const auto begin = lists.ids.begin() + lists.splits[u], end = lists.ids.begin() + next[u];
    lists.splits[u] = kept;
    std::sort(begin, end);
    kept = std::unique_copy(begin, end, lists.ids.begin() + kept) - lists.ids.begin();
  }
  lists.splits[users] = kept;
  lists.ids.resize(kept);
  return lists;
}

class Mf final : public RecordsModel {
 public:
  Mf(const Job& job, const MfSpec& spec, DataSet data)
      : RecordsModel(job, spec, std::move(data)),
        job_(job),
        spec_(spec),
        mean_(mean_label(samples_of(Part::kTraining))),
        user_(index_of(spec.user)),
        item_(index_of(spec.item)),
        user_bias_(index_of(spec.user_bias)),
        item_bias_(index_of(spec.item_bias)),
        dim_(table_of(spec.user).dim) {
    for (const std::string& side : spec.sides)
      sides_.push_back(static_cast<std::size_t>(index_of(side)));
  }

  double gradients(const Block& block) override {
    float* sides[kMostSides];
    return mf_gradients(rows_of(block, labels().data() + block.first, sides), level_);
  }

  Measure training_measure(double losses, std::int64_t samples) const override {
    return {"rmse", std::sqrt(losses / static_cast<double>(samples))};
  }

  std::vector<Baseline> baselines(Part part) const override {
    return rating_baselines(samples_of(Part::kTraining), samples_of(part), cell_of(spec_.user),
                            cell_of(spec_.item), range().lowest, range().highest);
  }

  /// Rows that several keys share say nothing of a pair.
  std::int64_t repeated_pairs(Part part) const override {
    for (const std::string& feature : {spec_.user, spec_.item}) {
      const KeyRules& rules = named(spec_.records().ids, table_of(feature).ids).rules;
      if (rules.min_count > 0 || rules.hash_rows > 0) return 0;
    }
    return count_repeated_pairs(samples_of(Part::kTraining), samples_of(part), cell_of(spec_.user),
                                cell_of(spec_.item));
  }

  /// Saves the mean, and the vectors that the model compares with a user's row: an item's row plus
  /// its sides.
  void save(const Embedding& engine, CallerState& state) const override {
    RecordsModel::save(engine, state);
    if (!known_) {
      known_ = items_of_users(samples_of(Part::kTraining), cell_of(spec_.user), cell_of(spec_.item),
                              data().column(table_of(spec_.user).ids).keys.num_rows());
    }
    save_lists(MfSpec::kSavedKnown, known_->splits, known_->ids, state);
    state.tensors[MfSpec::kSavedMean] = saved_tensor(std::vector<double>{mean_}, {});
    const TableSpec& table = table_of(spec_.item);
    const IdColumn& items = data().column(table.ids);
    std::vector<float> vectors;
    for (const std::string& side : spec_.sides) {
      const TableSpec& of_side = table_of(side);
      const IdColumn& column = data().column(of_side.ids);
      if (column.owner != items.cell) continue;
      if (vectors.empty()) vectors = all_rows(engine, table.name);
      add_combined(column.lists.splits, column.lists.ids, all_rows(engine, of_side.name), table.dim,
                   of_side.combiner, vectors);
    }
    if (vectors.empty()) return;
    state.tensors["vectors." + table.name] =
        saved_tensor(vectors, {items.keys.num_rows(), table.dim});
  }

  void predict(const Block& block, const Samples& /*samples*/, float* out) const override {
    float* sides[kMostSides];
    mf_predict(rows_of(block, nullptr, sides), out, level_);
  }

  std::vector<std::string> score_names() const override { return {"prediction"}; }

  void scores(std::span<const float> predictions, std::span<float> out) const override {
    for (std::size_t s = 0; s < predictions.size(); ++s) {
      out[s] = static_cast<float>(
          std::clamp(static_cast<double>(predictions[s]), range().lowest, range().highest));
    }
  }

  void restore(const SavedParts& saved) override {
    const DenseTensor& mean =
        saved_parameter(saved.state, MfSpec::kSavedMean, "F64", {}, saved.directory());
    std::memcpy(&mean_, mean.bytes.data(), sizeof mean_);
  }

 private:
  static constexpr std::size_t kMostSides = MfSpec::kMostSides;

  std::int64_t index_of(const std::string& feature) const {
    const std::vector<ModelFeature> all = features();
    for (std::size_t f = 0; f < all.size(); ++f)
      if (all[f].name == feature) return static_cast<std::int64_t>(f);
    return -1;
  }
  const TableSpec& table_of(const std::string& feature) const {
    return named(job_.tables, named(spec_.features(), feature).table);
  }
  std::int32_t cell_of(const std::string& feature) const {
    return data().column(table_of(feature).ids).cell;
  }
  const DataSpec& range() const { return spec_.records().data; }

  MfBlock rows_of(const Block& block, const float* label, float** sides) const {
    const auto rows = [&](std::int64_t feature) {
      return feature < 0 ? nullptr : block.rows[feature];
    };
    for (std::size_t i = 0; i < sides_.size(); ++i) sides[i] = block.rows[sides_[i]];
    return {.samples = block.samples,
            .dim = dim_,
            .user = rows(user_),
            .item = rows(item_),
            .sides = sides,
            .num_sides = static_cast<std::int64_t>(sides_.size()),
            .user_bias = rows(user_bias_),
            .item_bias = rows(item_bias_),
            .label = label,
            .mean = static_cast<float>(mean_),
            .regularization = static_cast<float>(spec_.regularization)};
  }

  Measures judge(std::span<const float> predictions, std::span<const float> labels) const override {
    RatingMetrics metrics(range().lowest, range().highest);
    metrics.add(predictions, labels);
    return {{"rmse", metrics.rmse()}, {"mae", metrics.mae()}};
  }

  const Job& job_;
  const MfSpec& spec_;
  double mean_;
  std::int64_t user_, item_, user_bias_, item_bias_;  ///< features; -1: none
  std::int64_t dim_;
  std::vector<std::size_t> sides_;
  mutable std::optional<SavedLists> known_;  ///< items by user, once they are saved
  SimdLevel level_ = simd_level();
};

}  // namespace

const IdsSpec& MfSpec::ids_of(const std::string& feature, const Job& job) const {
  return named(records().ids, named(job.tables, named(features(), feature).table).ids);
}

std::string MfSpec::side_of_others(const Job& job) const {
  const std::string& items = ids_of(item, job).name;
  const auto other = std::ranges::find_if(sides, [&](const std::string& side) {
    const IdsSpec& ids = ids_of(side, job);
    return !ids.joined() || ids.of != items;
  });
  return other == sides.end() ? "" : *other;
}

/// Refuses a feature that the model cannot use under this key.
void MfSpec::check_feature(const TomlSection& section, std::string_view key, const Job& job,
                           const std::string& feature, std::int32_t dim, bool one_id) const {
  if (dim_of(job, feature) != dim) {
    section.refuse(key, fmt::format("must name a feature of dim {}, got \"{}\" of dim {}", dim,
                                    feature, dim_of(job, feature)));
  }
  if (one_id && !is_one_id(job, feature)) {
    section.refuse(
        key,
        fmt::format("must name a feature with one id a sample, got \"{}\" with a list", feature));
  }
}

void MfSpec::read_roles(TomlSection& section, const Job& job) {
  const std::vector<std::string> known = names_of(features());
  user = section.choice("user", known);
  item = section.choice("item", known);
  user_ids_ = named(job.tables, named(features(), user).table).ids;
  item_ids_ = named(job.tables, named(features(), item).table).ids;
  const std::int32_t dim = dim_of(job, user);
  check_feature(section, "user", job, user, dim, true);
  check_feature(section, "item", job, item, dim, true);
  if (section.has("user_bias")) {
    user_bias = section.choice("user_bias", known);
    check_feature(section, "user_bias", job, user_bias, 1, true);
  }
  if (section.has("item_bias")) {
    item_bias = section.choice("item_bias", known);
    check_feature(section, "item_bias", job, item_bias, 1, true);
  }
  sides = section.texts("sides", {});
  if (sides.size() > kMostSides)
    section.refuse_value("sides", fmt::format("at most {} features", kMostSides));
  for (const std::string& side : sides) {
    if (std::find(known.begin(), known.end(), side) == known.end())
      section.refuse_value("sides", fmt::format("a list of features ({})", fmt::join(known, ", ")));
    check_feature(section, "sides", job, side, dim, false);
  }
}

std::string MfSpec::compared_table() const {
  for (const FeatureSpec& feature : features()) {
    if (feature.name == item) return feature.table;
  }
  return "";
}

void MfSpec::read_model(TomlSection& root, const Job& job) {
  read_features(root, job);
  if (!records().data.numbers.empty())
    root.section("data").refuse("numbers", "must be left out: mf predicts from ids alone");
  TomlSection section = root.section("model");
  section.text("kind");
  read_roles(section, job);
  std::vector<std::string> roles = sides;
  for (const std::string& role : {user, item, user_bias, item_bias}) {
    if (!role.empty()) roles.push_back(role);
  }
  check_roles(section, "kind", roles);
  regularization = section.number("regularization", 0);
  if (!(regularization >= 0)) section.refuse_value("regularization", "at least 0");
  section.finish();
}

PartsById MfSpec::parts_by_id() const {
  PartsById parts = RecordsModelSpec::parts_by_id();
  parts.lists.push_back({.name = kSavedKnown, .of = user_ids_, .ids = item_ids_, .optional = true});
  return parts;
}

std::unique_ptr<Predictor> MfSpec::make_predictor(const SavedParts& saved,
                                                  const NewRows& rows) const {
  if (!rows.items) return RecordsModelSpec::make_predictor(saved, rows);
  return std::make_unique<MfRecommender>(saved, *this, rows);
}

std::unique_ptr<RecordsModel> MfSpec::make_of(const Job& job, DataSet data) const {
  return std::make_unique<Mf>(job, *this, std::move(data));
}

}  // namespace embertable::jobs
