#include "apps/jobs/models/histories_predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "apps/jobs/math/item_vectors.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

constexpr std::int64_t kUsersAtOnce = 1024;

std::vector<float> rows_of(const SavedTableRows& table) {
  return {table.row(0), table.row(table.rows())};
}

/// Sums in the order of `rank_items`.
float product(const float* query, const float* item, std::int64_t dim) {
  float sum = 0;
  for (std::int64_t k = 0; k < dim; ++k) sum += query[k] * item[k];
  return sum;
}

}  // namespace

HistoriesPredictor::HistoriesPredictor(const SavedParts& saved, const HistoriesModelSpec& spec,
                                       const NewRows& rows)
    : from_(spec.ranked_vectors()),
      user_ids_(spec.histories().data.users.name),
      item_ids_(spec.histories().data.items.name),
      most_(rows.ranked_items()),
      user_map_(saved.ids.at(user_ids_)),
      reader_(open_histories(spec.histories().data, saved.ids.at(item_ids_), !from_.user.empty(),
                             rows)),
      items_(saved.reader, from_.item) {
  history_ =
      rows_of(from_.history == from_.item ? items_ : SavedTableRows(saved.reader, from_.history));
  const std::vector<float> popularity = saved_numbers(saved, spec.popularity_part());
  for (std::int64_t item = 0; item < items_.rows(); ++item) {
    vectors_.insert(vectors_.end(), items_.row(item), items_.row(item + 1));
    vectors_.push_back(popularity[item]);
  }
  counts_.unseen[item_ids_] = 0;
  if (from_.user.empty()) return;
  known_ = saved_lists(saved, spec.known_part());
  users_.emplace(saved.serve());
  counts_.unseen[user_ids_] = 0;
}

std::vector<ScoreColumn> HistoriesPredictor::columns() const {
  std::vector<ScoreColumn> columns = {{user_ids_}, {"rank"}, {item_ids_}};
  if (items_.has_names()) columns.push_back({"name"});
  columns.insert(columns.end(), {{.name = "score", .score = true}, {"basis"}});
  return columns;
}

bool HistoriesPredictor::next(Executor& executor, ScoreSink& sink) {
  if (!reader_->read(kUsersAtOnce, read_)) {
    counts_.left_out = reader_->left_out().total();
    counts_.absent = reader_->absent();
    return false;
  }
  take_bases();
  make_queries();
  make_excluded();
  count();
  const std::vector<std::int32_t> ranked = rank_items({.queries = queries_.data(),
                                                       .num_queries = read_.size(),
                                                       .items = vectors_.data(),
                                                       .num_items = items_.rows(),
                                                       .dim = items_.dim() + 1,
                                                       .excluded = {excluded_splits_, excluded_},
                                                       .most = most_},
                                                      executor, simd_level());
  for (std::int64_t user = 0; user < read_.size(); ++user) {
    give_lines(user, std::span(ranked).subspan(user * most_, most_), sink);
  }
  return true;
}

std::optional<std::int64_t> HistoriesPredictor::row_of_user(const std::string& key) const {
  if (user_map_.kind() == KeyKind::kString) return user_map_.find(std::string_view(key));
  std::int64_t number = 0;
  std::from_chars(key.data(), key.data() + key.size(), number);  // the reader has checked it
  return user_map_.find(number);
}

void HistoriesPredictor::take_bases() {
  user_rows_.clear();
  bases_.clear();
  for (std::int64_t user = 0; user < read_.size(); ++user) {
    const std::string& key = read_.keys[user];
    user_rows_.push_back(users_ ? row_of_user(key).value_or(-1) : -1);
    bases_.push_back(user_rows_.back() >= 0            ? Basis::kOfUser
                     : read_.histories()[user].empty() ? Basis::kOfPopularity
                                                       : Basis::kOfHistory);
  }
}

/// The last number of a query chooses popularity instead of the product with a vector.
void HistoriesPredictor::make_queries() {
  const auto dim = static_cast<std::size_t>(items_.dim());
  queries_.assign(static_cast<std::size_t>(read_.size()) * (dim + 1), 0.0f);
  for (std::int64_t user = 0; user < read_.size(); ++user) {
    const std::span<float> query =
        std::span(queries_).subspan(static_cast<std::size_t>(user) * (dim + 1), dim + 1);
    switch (bases_[user]) {
      case Basis::kOfUser:
        users_->read_rows(from_.user, std::span<const std::int64_t>(&user_rows_[user], 1),
                          query.first(dim));
        break;
      case Basis::kOfHistory: {
        std::span<const std::int32_t> items = read_.histories()[user];
        if (from_.last > 0 && std::ssize(items) > from_.last) items = items.last(from_.last);
        const std::int64_t splits[] = {0, std::ssize(items)};
        add_combined(splits, items, history_, static_cast<std::int32_t>(dim), Combiner::kMean,
                     query.first(dim));
        break;
      }
      case Basis::kOfPopularity:
        query[dim] = 1;
        break;
    }
  }
}

/// Collects the items that a user has: those in the trained data for the user's row, and those that
/// were read.
void HistoriesPredictor::make_excluded() {
  excluded_splits_.assign(1, 0);
  excluded_.clear();
  for (std::int64_t user = 0; user < read_.size(); ++user) {
    const auto begin = std::ssize(excluded_);
    const std::span<const std::int32_t> items = read_.histories()[user];
    excluded_.insert(excluded_.end(), items.begin(), items.end());
    if (const std::int64_t row = user_rows_[user]; row >= 0) {
      const std::span<const std::int32_t> known = ListsView{known_.splits, known_.ids}[row];
      excluded_.insert(excluded_.end(), known.begin(), known.end());
    }
    std::sort(excluded_.begin() + begin, excluded_.end());
    excluded_.erase(std::unique(excluded_.begin() + begin, excluded_.end()), excluded_.end());
    excluded_splits_.push_back(std::ssize(excluded_));
  }
}

void HistoriesPredictor::count() {
  counts_.rows += read_.size();
  counts_.left_out = reader_->left_out().total();
  for (std::size_t user = 0; user < read_.keys.size(); ++user) {
    const bool unseen_user = users_ && user_rows_[user] < 0;
    if (unseen_user) ++counts_.unseen[user_ids_];
    counts_.unseen[item_ids_] += read_.unseen[user];
    if (unseen_user || read_.unseen[user] > 0) ++counts_.with_unseen;
  }
}

void HistoriesPredictor::give_lines(std::int64_t user, std::span<const std::int32_t> ranked,
                                    ScoreSink& sink) const {
  constexpr std::string_view kShown[] = {"user", "history", "popularity"};
  const std::int64_t dim = items_.dim() + 1;
  const auto u = static_cast<std::size_t>(user);
  std::vector<ScoreCell> cells;
  for (std::size_t place = 0; place < ranked.size() && ranked[place] >= 0; ++place) {
    const std::string key = items_.key(ranked[place]);
    const float score =
        product(queries_.data() + user * dim, vectors_.data() + ranked[place] * dim, dim);
    cells = {read_.keys[u], static_cast<std::int64_t>(place) + 1, std::string_view(key)};
    if (items_.has_names()) cells.emplace_back(items_.display_name(ranked[place]));
    cells.emplace_back(score);
    cells.emplace_back(kShown[static_cast<std::size_t>(bases_[u])]);
    sink.line(cells);
  }
}

}  // namespace embertable::jobs
