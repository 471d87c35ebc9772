#include "apps/jobs/models/pairwise.h"

#include <algorithm>
#include <utility>

#include "apps/jobs/data/samples.h"
#include "apps/jobs/math/candidates.h"
#include "apps/jobs/math/item_vectors.h"
#include "apps/jobs/math/negatives.h"
#include "apps/jobs/spec/named.h"
#include "apps/jobs/spec/state_tensors.h"
#include "base/random.h"

namespace embertable::jobs {
namespace {

class Pairwise final : public Model {
 public:
  Pairwise(const Job& job, const PairwiseSpec& spec, Histories histories)
      : spec_(spec),
        seed_(job.seed),
        histories_(std::move(histories)),
        trained_(item_sets(histories_, spec.first_trained(), Part::kTraining)),
        sampler_(histories_.items.size(), spec.avoid_known ? trained_.view() : ListsView()) {
    const HistoriesSpec& data = spec.histories().data;
    key_spaces_.push_back({data.users.name, histories_.users.id_map(), 0, histories_.empty_users});
    key_spaces_.push_back({data.items.name, histories_.items.id_map(), 0, histories_.empty_items});
    pairs_.stride = 2;
    for (std::int32_t user = 0; user < histories_.num_users(); ++user) {
      for (auto i = begin_of(user); i < begin_of(user + 1); ++i) {
        if (histories_.part[i] < spec.first_trained()) continue;
        pairs_.cells.push_back(user);
        pairs_.cells.push_back(histories_.events[i]);
      }
    }
  }

  std::vector<ModelFeature> features() const override {
    return {{.name = "user", .table = spec_.user},
            {.name = "items", .table = spec_.item, .width = 1 + spec_.negatives}};
  }
  const std::vector<KeySpace>& key_spaces() const override { return key_spaces_; }

  std::int64_t samples(Part part) const override {
    return std::count(histories_.part.begin(), histories_.part.end(), part);
  }

  LeftOut left_out() const override { return histories_.left_out; }

  std::int64_t repeated_pairs(Part part) const override {
    return count_repeated(histories_, part, trained_);
  }

  std::map<std::string, std::string> data_digests() const override {
    return jobs::data_digests(histories_);
  }

  std::int64_t begin_epoch(std::int32_t epoch) override {
    shuffle_epoch(pairs_, seed_, epoch, epoch_);
    stream_ = stream_of(mix_seeds(seed_, static_cast<std::uint64_t>(epoch)), "negatives");
    return epoch_.size();
  }

  void fill(std::int64_t first, std::int64_t count, std::span<StepIds> ids) override {
    ids[0].ids.resize(count);
    ids[1].ids.resize(count * (1 + spec_.negatives));
    std::int32_t* const parts[] = {ids[0].ids.data(), ids[1].ids.data()};
    fill_part(first, count, parts);
  }

  bool fills_parts() const override { return true; }

  void fill_part(std::int64_t first, std::int64_t count,
                 std::span<std::int32_t* const> ids) const override {
    constexpr std::int64_t kAhead = 8;  // samples
    const auto negatives = static_cast<std::size_t>(spec_.negatives);
    const std::size_t width = 1 + negatives;
    const auto random = [&](std::int64_t s) {
      return RandomRow(stream_, static_cast<std::uint64_t>(first + s));
    };
    std::int32_t* next = ids[1];
    for (std::int64_t s = 0; s < count; ++s, next += width) {
      if (s + kAhead < count) sampler_.prefetch(epoch_.id(first + s + kAhead, 0));
      const std::int32_t* const pair = epoch_.row(first + s);
      ids[0][s] = pair[0];
      next[0] = pair[1];
      sampler_.propose(random(s), pair[0], {next + 1, negatives});
    }
    next = ids[1];
    for (std::int64_t s = 0; s < count; ++s, next += width) {
      const std::span<std::int32_t> drawn(next + 1, negatives);
      if (!sampler_.fits(ids[0][s], next[0], drawn))
        sampler_.settle(random(s), ids[0][s], next[0], drawn);
    }
  }

  double gradients(const Block& block) override {
    return candidate_gradients({.samples = block.samples,
                                .dim = spec_.dim,
                                .width = 1 + spec_.negatives,
                                .query = block.rows[0],
                                .items = block.rows[1],
                                .pairs = true,
                                .regularization = static_cast<float>(spec_.regularization)},
                               level_);
  }

  Measure training_measure(double losses, std::int64_t samples) const override {
    return {"loss", losses / static_cast<double>(samples)};
  }

  /// Ranks all items except those that the user has in an earlier part.
  Measures measure(Part part, Lookups& lookups) override {
    const ItemSets wanted = item_sets(histories_, part, part), known = known_before(part, wanted);
    const std::vector<float> users = all_rows(lookups.engine(), spec_.user);
    const std::vector<float> items = all_rows(lookups.engine(), spec_.item);
    return measure_ranking({.queries = users.data(),
                            .num_queries = histories_.num_users(),
                            .items = items.data(),
                            .num_items = histories_.items.size(),
                            .dim = spec_.dim,
                            .excluded = known.view()},
                           wanted.view(), spec_.ranking_metrics(), lookups);
  }

  std::vector<Baseline> baselines(Part part) const override {
    const ItemSets wanted = item_sets(histories_, part, part), known = known_before(part, wanted);
    return {
        {"popularity", measure_popularity(histories_, spec_.first_trained(), histories_.num_users(),
                                          known.view(), wanted.view(), spec_.ranking_metrics())}};
  }

  void save(const Embedding& /*engine*/, CallerState& state) const override {
    state.tensors[kSavedPopularity] = saved_tensor(popularity(histories_, spec_.first_trained()));
    save_lists(kSavedKnown, trained_.splits, trained_.items, state);
  }

 private:
  std::size_t begin_of(std::int32_t user) const {
    return static_cast<std::size_t>(histories_.splits[user]);
  }

  ItemSets known_before(Part part, const ItemSets& wanted) const {
    if (part == Part::kTraining)
      return {.splits = std::vector<std::int64_t>(histories_.splits.size()), .items = {}};
    const Part before = part == Part::kTest ? Part::kValidation : Part::kTraining;
    return difference(item_sets(histories_, before, Part::kTraining), wanted);
  }

  const PairwiseSpec& spec_;
  std::uint64_t seed_;
  Histories histories_;
  std::vector<KeySpace> key_spaces_;
  ItemSets trained_;
  Samples pairs_;  ///< user, item: everything that is trained on
  Samples epoch_;  ///< the same in the order of the epoch
  std::uint64_t stream_ = 0;
  NegativeSampler sampler_;
  SimdLevel level_ = simd_level();
};

}  // namespace

std::vector<std::string> PairwiseSpec::read_data(TomlSection& root) {
  read_histories_data(root, {"pairs", "last"}, {"recall@20", "ndcg@20"});
  if (!histories().attributes.empty()) {
    root.section("ids").refuse(histories().attributes.front().keys.name,
                               "must be of users or items: pairs know nothing else");
  }
  return histories().ids();
}

void PairwiseSpec::read_model(TomlSection& root, const Job& job) {
  TomlSection section = root.section("model");
  section.text("kind");
  user = read_table(section, "user", job, histories().data.users.name, 0);
  const std::int32_t columns = named(job.tables, user).dim;
  item = read_table(section, "item", job, histories().data.items.name, columns);
  dim = columns;
  negatives = section.integer("negatives", 1, Candidates::kMostWidth - 1, 1);
  avoid_known = section.flag("avoid_known", true);
  regularization = section.number("regularization", 0);
  if (!(regularization >= 0)) section.refuse_value("regularization", "at least 0");
  section.finish();
}

std::unique_ptr<Model> PairwiseSpec::make(const Job& job, const DataOptions& options) const {
  return std::make_unique<Pairwise>(job, *this,
                                    read_histories(histories().data, histories().split, options));
}

}  // namespace embertable::jobs
