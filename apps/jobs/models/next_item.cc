#include "apps/jobs/models/next_item.h"

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

/// Positions of the features.
enum : std::uint8_t { kHistory, kItems, kHistoryAttributes, kItemAttributes };

class NextItem final : public Model {
 public:
  NextItem(const Job& job, const NextItemSpec& spec, Histories histories, ItemLists attributes)
      : spec_(spec),
        seed_(job.seed),
        histories_(std::move(histories)),
        attributes_(std::move(attributes)),
        sampler_(histories_.items.size(), {}) {
    const HistoriesSpec& data = spec.histories().data;
    key_spaces_.push_back({data.users.name, histories_.users.id_map(), 0, histories_.empty_users});
    key_spaces_.push_back({data.items.name, histories_.items.id_map(), 0, histories_.empty_items});
    if (spec.has_attributes()) {
      key_spaces_.push_back({spec.histories().attributes.front().keys.name,
                             attributes_.keys.id_map(), attributes_.without});
      for (std::int32_t item = 0; item < histories_.items.size(); ++item)
        some_lack_attributes_ = some_lack_attributes_ || attributes_.view()[item].empty();
    }
    training_ = targets(spec.first_trained(), Part::kTraining);
  }

  std::vector<ModelFeature> features() const override {
    const std::int64_t width = 1 + spec_.negatives;
    std::vector<ModelFeature> all = {{.name = "history", .table = spec_.history, .lists = true},
                                     {.name = "items", .table = spec_.item, .width = width}};
    if (spec_.has_attributes()) {
      all.push_back(
          {.name = "history_attributes", .table = spec_.history_attributes, .lists = true});
      all.push_back(
          {.name = "item_attributes", .table = spec_.attributes, .width = width, .lists = true});
    }
    return all;
  }
  const std::vector<KeySpace>& key_spaces() const override { return key_spaces_; }

  std::int64_t samples(Part part) const override { return targets(part, part).size(); }

  LeftOut left_out() const override {
    LeftOut both = histories_.left_out;
    both += attributes_.left_out;
    return both;
  }

  std::int64_t repeated_pairs(Part part) const override {
    return count_repeated(histories_, part,
                          item_sets(histories_, spec_.first_trained(), Part::kTraining));
  }

  std::map<std::string, std::string> data_digests() const override {
    std::map<std::string, std::string> digests = jobs::data_digests(histories_);
    if (spec_.has_attributes()) digests["attributes"] = data_digest(attributes_);
    return digests;
  }

  std::int64_t begin_epoch(std::int32_t epoch) override {
    shuffle_epoch(training_, seed_, epoch, epoch_);
    stream_ = stream_of(mix_seeds(seed_, static_cast<std::uint64_t>(epoch)), "negatives");
    return epoch_.size();
  }

  void fill(std::int64_t first, std::int64_t count, std::span<StepIds> ids) override {
    fill_history(first, count, ids[kHistory]);
    fill_items(first, count, ids[kItems].ids);
    if (!spec_.has_attributes()) return;
    fill_history_attributes(ids[kHistory], ids[kHistoryAttributes]);
    fill_item_attributes(ids[kItems].ids, ids[kItemAttributes]);
  }

  double gradients(const Block& block) override {
    const bool attributes = spec_.has_attributes();
    float share[kBlockSamples];
    if (attributes && some_lack_attributes_) {
      for (std::int64_t s = 0; s < block.samples; ++s)
        share[s] = share_with_attributes(history(epoch_.row(block.first + s)));
    }
    return candidate_gradients({.samples = block.samples,
                                .dim = spec_.dim,
                                .width = 1 + spec_.negatives,
                                .query = block.rows[kHistory],
                                .query_side = attributes ? block.rows[kHistoryAttributes] : nullptr,
                                .side_share = attributes && some_lack_attributes_ ? share : nullptr,
                                .items = block.rows[kItems],
                                .item_side = attributes ? block.rows[kItemAttributes] : nullptr,
                                .pairs = false,
                                .regularization = static_cast<float>(spec_.regularization)},
                               level_);
  }

  Measure training_measure(double losses, std::int64_t samples) const override {
    return {"loss", losses / static_cast<double>(samples)};
  }

  /// Ranks all items except those of the user's history; the next item may be one of them.
  Measures measure(Part part, Lookups& lookups) override {
    const Samples asked = targets(part, part);
    const ItemSets wanted = next_items(asked), known = difference(items_before(asked), wanted);
    const std::vector<float> queries =
        history_vectors(asked, vectors(lookups.engine(), spec_.history, spec_.history_attributes));
    const std::vector<float> items = vectors(lookups.engine(), spec_.item, spec_.attributes);
    return measure_ranking({.queries = queries.data(),
                            .num_queries = asked.size(),
                            .items = items.data(),
                            .num_items = histories_.items.size(),
                            .dim = spec_.dim,
                            .excluded = known.view()},
                           wanted.view(), spec_.ranking_metrics(), lookups);
  }

  std::vector<Baseline> baselines(Part part) const override {
    const Samples asked = targets(part, part);
    const ItemSets wanted = next_items(asked), known = difference(items_before(asked), wanted);
    return {
        {"popularity", measure_popularity(histories_, spec_.first_trained(), asked.size(),
                                          known.view(), wanted.view(), spec_.ranking_metrics())}};
  }

  /// Saves the popularity, and the sums of an item's row and its attributes.
  void save(const Embedding& engine, CallerState& state) const override {
    state.tensors[kSavedPopularity] = saved_tensor(popularity(histories_, spec_.first_trained()));
    if (!spec_.has_attributes()) return;
    save_vectors(engine, spec_.item, spec_.attributes, state);
    if (spec_.history != spec_.item)
      save_vectors(engine, spec_.history, spec_.history_attributes, state);
  }

 private:
  /// Cells of a sample: where the user's events begin, and the event that is predicted.
  enum Cell : std::uint8_t { kFirst, kEvent };

  /// Returns the events of some parts that have one before them.
  Samples targets(Part first, Part last) const {
    Samples found{.stride = 2, .cells = {}};
    for (std::size_t user = 0; user + 1 < histories_.splits.size(); ++user) {
      const std::int64_t begin = histories_.splits[user];
      for (std::int64_t i = begin + 1; i < histories_.splits[user + 1]; ++i) {
        const Part part = histories_.part[i];
        if (part < first || part > last) continue;
        found.cells.push_back(static_cast<std::int32_t>(begin));
        found.cells.push_back(static_cast<std::int32_t>(i));
      }
    }
    return found;
  }

  std::span<const std::int32_t> events(std::int64_t begin, std::int64_t end) const {
    return std::span(histories_.events).subspan(begin, end - begin);
  }

  /// Returns the last items before the one that a sample predicts.
  std::span<const std::int32_t> history(const std::int32_t* sample) const {
    return events(std::max(std::int64_t{sample[kFirst]}, sample[kEvent] - spec_.last),
                  sample[kEvent]);
  }

  std::int32_t next_item(const std::int32_t* sample) const {
    return histories_.events[sample[kEvent]];
  }

  float share_with_attributes(std::span<const std::int32_t> items) const {
    const auto with = std::count_if(items.begin(), items.end(), [&](std::int32_t item) {
      return !attributes_.view()[item].empty();
    });
    return static_cast<float>(with) / static_cast<float>(items.size());
  }

  void fill_history(std::int64_t first, std::int64_t count, StepIds& out) const {
    out.ids.clear();
    out.splits.assign(1, 0);
    for (std::int64_t s = 0; s < count; ++s) {
      const std::span<const std::int32_t> items = history(epoch_.row(first + s));
      out.ids.insert(out.ids.end(), items.begin(), items.end());
      out.splits.push_back(std::ssize(out.ids));
    }
  }

  void fill_items(std::int64_t first, std::int64_t count, std::vector<std::int32_t>& out) const {
    const auto negatives = static_cast<std::size_t>(spec_.negatives);
    out.resize(static_cast<std::size_t>(count) * (1 + negatives));
    std::int32_t* next = out.data();
    for (std::int64_t s = 0; s < count; ++s, next += 1 + negatives) {
      next[0] = next_item(epoch_.row(first + s));
      sampler_.draw(RandomRow(stream_, static_cast<std::uint64_t>(first + s)), 0, next[0],
                    {next + 1, negatives});
    }
  }

  /// Fills in weights that make each item of the history count once, however many attributes it
  /// has.
  void fill_history_attributes(const StepIds& items, StepIds& out) const {
    out.ids.clear();
    out.weights.clear();
    out.splits.assign(1, 0);
    for (std::size_t s = 0; s + 1 < items.splits.size(); ++s) {
      for (std::int64_t i = items.splits[s]; i < items.splits[s + 1]; ++i) {
        const auto list = attributes_.view()[items.ids[i]];
        out.ids.insert(out.ids.end(), list.begin(), list.end());
        out.weights.resize(out.ids.size(), 1.0f / static_cast<float>(list.size()));
      }
      out.splits.push_back(std::ssize(out.ids));
    }
  }

  void fill_item_attributes(const std::vector<std::int32_t>& items, StepIds& out) const {
    out.ids.clear();
    out.splits.resize(items.size() + 1);
    std::int64_t* split = out.splits.data();
    *split = 0;
    for (const std::int32_t item : items) {
      const auto list = attributes_.view()[item];
      out.ids.insert(out.ids.end(), list.begin(), list.end());
      *++split = std::ssize(out.ids);
    }
  }

  ItemSets next_items(const Samples& asked) const {
    ItemSets sets;
    for (std::int64_t s = 0; s < asked.size(); ++s) {
      sets.items.push_back(next_item(asked.row(s)));
      sets.splits.push_back(std::ssize(sets.items));
    }
    return sets;
  }

  /// Returns everything that the user had before, not only the last items.
  ItemSets items_before(const Samples& asked) const {
    ItemSets sets;
    for (std::int64_t s = 0; s < asked.size(); ++s) {
      const auto before = events(asked.id(s, kFirst), asked.id(s, kEvent));
      std::vector<std::int32_t> items(before.begin(), before.end());
      std::sort(items.begin(), items.end());
      items.erase(std::unique(items.begin(), items.end()), items.end());
      sets.items.insert(sets.items.end(), items.begin(), items.end());
      sets.splits.push_back(std::ssize(sets.items));
    }
    return sets;
  }

  /// Returns [items, dim]: rows of a table, plus the means of their attributes' rows in another.
  std::vector<float> vectors(const Embedding& engine, const std::string& table,
                             const std::string& attributes) const {
    std::vector<float> all = all_rows(engine, table);
    if (!spec_.has_attributes()) return all;
    add_combined(attributes_.splits, attributes_.ids, all_rows(engine, attributes),
                 static_cast<std::int32_t>(spec_.dim), Combiner::kMean, all);
    return all;
  }

  /// Returns [samples, dim]: means of the items' vectors of each history.
  std::vector<float> history_vectors(const Samples& asked, const std::vector<float>& items) const {
    std::vector<std::int64_t> splits = {0};
    std::vector<std::int32_t> ids;
    for (std::int64_t s = 0; s < asked.size(); ++s) {
      const std::span<const std::int32_t> list = history(asked.row(s));
      ids.insert(ids.end(), list.begin(), list.end());
      splits.push_back(std::ssize(ids));
    }
    std::vector<float> means(asked.size() * spec_.dim);
    add_combined(splits, ids, items, static_cast<std::int32_t>(spec_.dim), Combiner::kMean, means);
    return means;
  }

  void save_vectors(const Embedding& engine, const std::string& table,
                    const std::string& attributes, CallerState& state) const {
    state.tensors["vectors." + table] =
        saved_tensor(vectors(engine, table, attributes), {histories_.items.size(), spec_.dim});
  }

  const NextItemSpec& spec_;
  std::uint64_t seed_;
  Histories histories_;
  ItemLists attributes_;
  bool some_lack_attributes_ = false;
  std::vector<KeySpace> key_spaces_;
  Samples training_;  ///< trained samples, in the order of the data
  Samples epoch_;     ///< the same in the order of the epoch
  std::uint64_t stream_ = 0;
  NegativeSampler sampler_;
  SimdLevel level_ = simd_level();
};

}  // namespace

std::vector<std::string> NextItemSpec::read_data(TomlSection& root) {
  read_histories_data(root, {"last"}, {"hr@10", "ndcg@10"});
  if (histories().attributes.size() > 1) {
    root.section("ids").refuse(histories().attributes[1].keys.name,
                               "must not be: items have attributes of one kind");
  }
  return histories().ids();
}

void NextItemSpec::read_model(TomlSection& root, const Job& job) {
  TomlSection section = root.section("model");
  section.text("kind");
  const std::string& items = histories().data.items.name;
  item = read_table(section, "item", job, items, 0);
  const std::int32_t columns = named(job.tables, item).dim;
  dim = columns;
  history = section.has("history") ? read_table(section, "history", job, items, columns) : item;
  if (!histories().attributes.empty()) {
    const std::string& ids = histories().attributes.front().keys.name;
    attributes = read_table(section, "attributes", job, ids, columns);
    history_attributes = section.has("history_attributes")
                             ? read_table(section, "history_attributes", job, ids, columns)
                             : attributes;
  }
  for (const auto& [key, table] : {std::pair("history", history),
                                   {"attributes", attributes},
                                   {"history_attributes", history_attributes}}) {
    if (!table.empty() && named(job.tables, table).combiner != Combiner::kMean)
      section.refuse(key, "must name a table whose combiner is \"mean\", got \"" + table + "\"");
  }
  last = section.integer("last", 1, 1 << 20, last);
  negatives = section.integer("negatives", 1, Candidates::kMostWidth - 1, negatives);
  regularization = section.number("regularization", 0);
  if (!(regularization >= 0)) section.refuse_value("regularization", "at least 0");
  section.finish();
}

std::unique_ptr<Model> NextItemSpec::make(const Job& job, const DataOptions& options) const {
  Histories read = read_histories(histories().data, histories().split, options);
  ItemLists lists;
  if (has_attributes()) {
    DataOptions rest = options;
    rest.skip_bad = options.skip_bad.after(read.left_out);
    lists = read_item_lists(histories().attributes.front(), read.items, rest);
  }
  return std::make_unique<NextItem>(job, *this, std::move(read), std::move(lists));
}

}  // namespace embertable::jobs
