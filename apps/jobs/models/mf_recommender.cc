#include "apps/jobs/models/mf_recommender.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "apps/jobs/data/new_records.h"
#include "apps/jobs/spec/job.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

constexpr std::int64_t kRankedAtOnce = 1024;

SavedTableRows saved_rows(const SavedParts& saved, const MfSpec& spec, const std::string& feature) {
  return {saved.reader, named(spec.features(), feature).table};
}

std::optional<SavedTableRows> saved_bias(const SavedParts& saved, const MfSpec& spec,
                                         const std::string& feature) {
  if (feature.empty()) return std::nullopt;
  return saved_rows(saved, spec, feature);
}

}  // namespace

MfRecommender::MfRecommender(const SavedParts& saved, const MfSpec& spec, const NewRows& rows)
    : spec_(spec),
      user_ids_(spec.ids_of(spec.user, saved.job)),
      item_ids_(spec.ids_of(spec.item, saved.job)),
      most_(rows.ranked_items()),
      users_(saved_rows(saved, spec, spec.user)),
      items_(saved_rows(saved, spec, spec.item)),
      user_bias_(saved_bias(saved, spec, spec.user_bias)),
      item_bias_(saved_bias(saved, spec, spec.item_bias)),
      num_items_(own_rows(item_ids_, saved.ids)),
      read_(read_raters(spec.records(), user_ids_, item_ids_, saved.ids, rows)) {
  make_items(saved);
  double mean = 0;
  const DenseTensor& tensor =
      saved_parameter(saved.state, MfSpec::kSavedMean, "F64", {}, saved.directory());
  std::memcpy(&mean, tensor.bytes.data(), sizeof mean);
  mean_ = static_cast<float>(mean);
  const PartsById parts = spec.parts_by_id();
  const PartsById::Lists& known = named(parts.lists, MfSpec::kSavedKnown);
  if (is_saved(saved, known)) known_ = saved_lists(saved, known);
  counts_.unseen = {{user_ids_.name, read_.unseen_users}, {item_ids_.name, read_.unseen_items}};
  counts_.with_unseen = read_.unseen_users;
  counts_.left_out = read_.left_out.total();
}

void MfRecommender::make_items(const SavedParts& saved) {
  if (num_items_ == 0) {
    throw ValueError(fmt::format(
        "ids.{} must have keys for its items to be ranked: hashed and rare ones have none",
        item_ids_.name));
  }
  if (const std::string side = spec_.side_of_others(saved.job); !side.empty()) {
    throw ValueError(
        fmt::format("model.sides must be of the items alone for these to be ranked, got \"{}\" "
                    "with ids '{}'",
                    side, spec_.ids_of(side, saved.job).name));
  }
  for (std::int64_t item = 0; item < num_items_; ++item) {
    vectors_.insert(vectors_.end(), items_.row(item), items_.row(item + 1));
    vectors_.push_back(item_bias_ ? *item_bias_->row(item) : 0);
  }
}

std::vector<ScoreColumn> MfRecommender::columns() const {
  std::vector<ScoreColumn> columns = {{user_ids_.name}, {"rank"}, {item_ids_.name}};
  if (items_.has_names()) columns.push_back({"name"});
  columns.insert(columns.end(), {{.name = "score", .score = true}, {"basis"}});
  return columns;
}

bool MfRecommender::next(Executor& executor, ScoreSink& sink) {
  const std::int64_t count = std::min(kRankedAtOnce, std::ssize(read_.users) - next_);
  if (count == 0) return false;
  const std::int64_t dim = items_.dim() + 1;
  std::vector<float> queries;
  std::vector<std::int64_t> splits = {0};
  std::vector<std::int32_t> excluded;
  for (std::int64_t u = next_; u < next_ + count; ++u) {
    NewRater& user = read_.users[u];
    const bool has_row = user.row >= 0;
    queries.resize(queries.size() + static_cast<std::size_t>(dim));
    float* const query = queries.data() + (u - next_) * dim;
    if (has_row) std::copy_n(users_.row(user.row), dim - 1, query);
    query[dim - 1] = 1;
    if (has_row && !user.shares_row) {
      const std::span<const std::int32_t> known = ListsView{known_.splits, known_.ids}[user.row];
      user.has.insert(user.has.end(), known.begin(), known.end());
    }
    std::sort(user.has.begin(), user.has.end());
    user.has.erase(std::unique(user.has.begin(), user.has.end()), user.has.end());
    excluded.insert(excluded.end(), user.has.begin(),
                    std::lower_bound(user.has.begin(), user.has.end(), num_items_));
    splits.push_back(std::ssize(excluded));
  }
  const std::vector<std::int32_t> ranked = rank_items({.queries = queries.data(),
                                                       .num_queries = count,
                                                       .items = vectors_.data(),
                                                       .num_items = num_items_,
                                                       .dim = dim,
                                                       .excluded = {splits, excluded},
                                                       .most = most_},
                                                      executor, simd_level());
  for (std::int64_t i = 0; i < count; ++i)
    give_lines(next_ + i, std::span(ranked).subspan(i * most_, most_), sink);
  next_ += count;
  counts_.rows = next_;
  return true;
}

/// Sums in the order of `rank_items`, then adds what all items of the user share.
float MfRecommender::score(const NewRater& user, std::int32_t item) const {
  const float* const vector = vectors_.data() + item * (items_.dim() + 1);
  float sum = 0;
  for (std::int64_t k = 0; user.row >= 0 && k < items_.dim(); ++k)
    sum += users_.row(user.row)[k] * vector[k];
  sum += vector[items_.dim()];
  const float bias = user.row >= 0 && user_bias_ ? *user_bias_->row(user.row) : 0;
  return mean_ + bias + sum;
}

void MfRecommender::give_lines(std::int64_t user, std::span<const std::int32_t> ranked,
                               ScoreSink& sink) const {
  std::vector<ScoreCell> cells;
  for (std::size_t place = 0; place < ranked.size() && ranked[place] >= 0; ++place) {
    const std::string key = items_.key(ranked[place]);
    cells = {key_cell(read_.users[user].key, has_integer_keys(user_ids_)),
             static_cast<std::int64_t>(place) + 1, key_cell(key, has_integer_keys(item_ids_))};
    if (items_.has_names()) cells.emplace_back(items_.display_name(ranked[place]));
    cells.emplace_back(score(read_.users[user], ranked[place]));
    cells.emplace_back(std::string_view(read_.users[user].row >= 0 ? "user" : "item"));
    sink.line(cells);
  }
}

}  // namespace embertable::jobs
