#include "apps/jobs/models/skipgram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <utility>

#include "apps/jobs/math/alias_table.h"
#include "apps/jobs/math/word_similarity.h"
#include "apps/jobs/models/skipgram_run.h"
#include "apps/jobs/spec/job.h"
#include "apps/jobs/spec/named.h"
#include "apps/jobs/spec/toml_section.h"
#include "base/math.h"
#include "base/random.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

/// The features, in the order of Skipgram::features.
enum Feature : std::size_t { kCentre, kContext, kNegative };

/// A text cut into runs of centre words.
class Runs {
 public:
  static constexpr std::int32_t kNoWord = -1;

  Runs(std::int64_t run, std::int64_t window) : run_(run), window_(window) {}

  std::int64_t size() const noexcept { return (words_ + run_ - 1) / run_; }
  std::int64_t words() const noexcept { return words_; }

  /// Takes the words of `text` for which keep(i) is true. Memory is kept for the next text.
  template <class Keep>
  void take(std::span<const std::int32_t> text, const Keep& keep) {
    padded_.resize(text.size() + static_cast<std::size_t>(2 * window_ + run_));
    std::int32_t* next = padded_.data();
    next = std::fill_n(next, window_, kNoWord);
    std::int32_t* const first = next;
    for (std::size_t i = 0; i < text.size(); ++i) {
      *next = text[i];
      next += keep(i) ? 1 : 0;
    }
    words_ = next - first;
    std::fill_n(next, window_ + run_, kNoWord);
  }

  /// Returns the contexts of a run, [run + 2 * window], from `window` words before it on. Beyond
  /// the text there is no word.
  const std::int32_t* contexts(std::int64_t index) const noexcept {
    return padded_.data() + index * run_;
  }

  /// Returns how far the contexts of a word of the text reach before and after it, `reach` at most.
  std::int64_t before(std::int64_t word, std::int64_t reach) const noexcept {
    return word < words_ ? std::min(reach, word) : 0;
  }
  std::int64_t after(std::int64_t word, std::int64_t reach) const noexcept {
    return word < words_ ? std::min(reach, words_ - 1 - word) : 0;
  }

 private:
  std::int64_t run_, window_;
  std::int64_t words_ = 0;
  std::vector<std::int32_t> padded_;
};

/// Random draws for the runs of one pass over a text.
struct Draws {
  explicit Draws(std::uint64_t seed)
      : order(stream_of(seed, "order of runs")),
        reach(stream_of(seed, "reach of words"), 0),
        negative(stream_of(seed, "negatives"), 0) {}

  /// Returns 1 .. window for a word of the text.
  std::int64_t reach_of(std::int64_t word, std::int64_t window) const noexcept {
    const std::uint64_t bits = reach.bits(static_cast<std::uint64_t>(word) / 4);
    const std::uint64_t quarter = (bits >> (word % 4 * 16)) & 0xffff;
    return 1 + static_cast<std::int64_t>((quarter * static_cast<std::uint64_t>(window)) >> 16);
  }

  std::uint64_t order;
  RandomRow reach;
  RandomRow negative;
};

class Skipgram final : public Model {
 public:
  Skipgram(const Job& job, const SkipgramSpec& spec, Corpus corpus, WordPairs pairs)
      : spec_(spec),
        seed_(job.seed),
        dim_(named(job.tables, spec.word).dim),
        corpus_(std::move(corpus)),
        pairs_(std::move(pairs.pairs)),
        left_out_(corpus_.left_out()),
        key_spaces_{{.name = spec.ids, .keys = corpus_.words()}},
        negatives_(negative_weights()),
        keep_(keep_shares()),
        runs_(spec.run, spec.window),
        draws_(0) {
    left_out_ += pairs.left_out;
  }

  std::vector<ModelFeature> features() const override {
    return {{.name = "centre", .table = spec_.word, .width = spec_.run},
            {.name = "context", .table = spec_.context, .width = spec_.run + 2 * spec_.window},
            {.name = "negative", .table = spec_.context, .width = spec_.run_negatives}};
  }
  const std::vector<KeySpace>& key_spaces() const override { return key_spaces_; }
  std::int64_t samples(Part part) const override { return corpus_.tokens(part); }
  /// A word alone is in no pair.
  bool can_measure(Part part) const override { return corpus_.text(part).size() > 1; }
  LeftOut left_out() const override { return left_out_; }
  std::map<std::string, std::string> data_digests() const override { return corpus_.digests(); }

  bool leaves_rows_out() const override { return true; }

  /// Makes blocks small, because a run is as much work as dozens of other models' samples.
  std::int64_t block_samples() const override { return std::max<std::int64_t>(1, 128 / spec_.run); }

  std::int64_t begin_epoch(std::int32_t epoch) override {
    const std::uint64_t seed = mix_seeds(seed_, static_cast<std::uint64_t>(epoch));
    draws_ = Draws(seed);
    const std::span<const std::int32_t> text = corpus_.trained_text();
    const RandomRow random(stream_of(seed, "words kept"), 0);
    std::uint64_t bits = 0;
    runs_.take(text, [&](std::size_t i) {
      bits = i % 2 == 0 ? random.bits(i / 2) : bits >> 32;
      return (bits & 0xffffffffu) < keep_[text[i]];
    });
    if (runs_.size() == 0) {
      throw ValueError(fmt::format(
          "model.subsample must leave words of the text in every epoch, got none of {} in epoch {}",
          text.size(), epoch));
    }
    order_ = Permutation(runs_.size(), draws_.order);
    return runs_.size();
  }

  void fill(std::int64_t first, std::int64_t count, std::span<StepIds> ids) override {
    fill(
        runs_, draws_, [this](std::int64_t i) { return order_[i]; },
        [this](std::int64_t word) { return draws_.reach_of(word, spec_.window); }, first, count,
        ids);
  }

  /// Weights a run's loss by its pairs, so that the sum over runs is one of means over pairs.
  double gradients(const Block& block) override {
    double sum = 0;
    for (std::int64_t s = 0; s < block.samples; ++s) {
      Reach reach;
      const std::int64_t index = order_[block.first + s];
      const std::int64_t pairs = reach_of(runs_, index, reach, [&](std::int64_t word) {
        return draws_.reach_of(word, spec_.window);
      });
      const double loss = skipgram_gradients(run_of(block, s, reach), level_);
      if (pairs > 0) sum += loss / static_cast<double>(pairs);
    }
    return sum;
  }

  Measure training_measure(double losses, std::int64_t samples) const override {
    return {"loss", losses / static_cast<double>(samples)};
  }

  Measures measure(Part part, Lookups& lookups) override {
    Measures measures = {{"loss", loss_of(part, lookups)}};
    if (!spec_.similarity.empty()) measures.push_back({"spearman", agreement(lookups.engine())});
    return measures;
  }

 private:
  struct Reach {
    std::uint8_t before[SkipgramRun::kMostCentres];
    std::uint8_t after[SkipgramRun::kMostCentres];
  };

  std::vector<double> negative_weights() const {
    std::vector<double> weights;
    for (const std::int64_t count : corpus_.counts())
      weights.push_back(math::pow(static_cast<double>(count), spec_.negative_power));
    return weights;
  }

  /// Returns, by word and in units of 2^-32, the share of its occurrences that an epoch trains on.
  /// Source: word2vec.c, sqrt(t / f) + t / f for a word that is the share f of the text.
  std::vector<std::uint64_t> keep_shares() const {
    const std::span<const std::int64_t> counts = corpus_.counts();
    const auto all = static_cast<double>(std::accumulate(counts.begin(), counts.end(), 0LL));
    std::vector<std::uint64_t> shares;
    for (const std::int64_t count : counts) {
      const double rare = spec_.subsample * all / static_cast<double>(count);
      const double share = spec_.subsample > 0 ? std::min(1.0, std::sqrt(rare) + rare) : 1.0;
      shares.push_back(static_cast<std::uint64_t>(share * 0x1p32));
    }
    return shares;
  }

  /// Names the words of runs, order(first) and so on, whose centres reach reach(word) at most.
  template <class Order, class MostReach>
  void fill(const Runs& runs, const Draws& draws, const Order& order, const MostReach& most,
            std::int64_t first, std::int64_t count, std::span<StepIds> ids) const {
    const std::int64_t contexts = spec_.run + 2 * spec_.window, negatives = spec_.run_negatives;
    ids[kCentre].ids.resize(count * spec_.run);
    ids[kContext].ids.resize(count * contexts);
    ids[kNegative].ids.resize(count * negatives);
    std::int32_t* centre = ids[kCentre].ids.data();
    std::int32_t* context = ids[kContext].ids.data();
    std::int32_t* negative = ids[kNegative].ids.data();
    for (std::int64_t s = 0; s < count; ++s) {
      const std::int64_t index = order(first + s);
      const std::int32_t* text = runs.contexts(index);
      centre = std::copy_n(text + spec_.window, spec_.run, centre);
      Reach reach;
      reach_of(runs, index, reach, most);
      context = copy_used(text, reach, context);
      for (std::int64_t n = 0; n < negatives; ++n) {
        *negative++ =
            negatives_(draws.negative.bits(static_cast<std::uint64_t>(index * negatives + n)));
      }
    }
  }

  /// Copies the contexts of a run, but no word for those that are in none of its pairs: a row that
  /// is looked up would be stepped, also with a gradient of zeros.
  std::int32_t* copy_used(const std::int32_t* text, const Reach& reach, std::int32_t* out) const {
    std::int8_t change[SkipgramRun::kMostCentres + 2 * SkipgramRun::kMostWindow + 2] = {};
    for (std::int64_t i = 0; i < spec_.run; ++i) {
      const std::int64_t centre = spec_.window + i;
      ++change[centre - reach.before[i]];
      --change[centre];
      ++change[centre + 1];
      --change[centre + 1 + reach.after[i]];
    }
    std::int64_t pairs = 0;
    for (std::int64_t i = 0; i < spec_.run + 2 * spec_.window; ++i) {
      pairs += change[i];
      *out++ = pairs > 0 ? text[i] : Runs::kNoWord;
    }
    return out;
  }

  /// Fills in the reach of a run's centres, reach(word) at most, and returns the number of its
  /// pairs.
  template <class MostReach>
  std::int64_t reach_of(const Runs& runs, std::int64_t index, Reach& reach,
                        const MostReach& most) const {
    std::int64_t pairs = 0;
    for (std::int64_t i = 0; i < spec_.run; ++i) {
      const std::int64_t word = index * spec_.run + i, reached = most(word);
      const std::int64_t before = runs.before(word, reached), after = runs.after(word, reached);
      reach.before[i] = static_cast<std::uint8_t>(before);
      reach.after[i] = static_cast<std::uint8_t>(after);
      pairs += before + after;
    }
    return pairs;
  }

  SkipgramRun run_of(const Block& block, std::int64_t sample, const Reach& reach) const {
    const std::int64_t contexts = spec_.run + 2 * spec_.window;
    return {.dim = dim_,
            .centres = spec_.run,
            .window = spec_.window,
            .negatives = spec_.run_negatives,
            .centre = block.rows[kCentre] + sample * spec_.run * dim_,
            .context = block.rows[kContext] + sample * contexts * dim_,
            .negative = block.rows[kNegative] + sample * spec_.run_negatives * dim_,
            .before = reach.before,
            .after = reach.after,
            .negative_weight = static_cast<float>(static_cast<double>(spec_.negatives) /
                                                  static_cast<double>(spec_.run_negatives))};
  }

  /// Returns the mean over all pairs of a part, with full windows and every word. The drawn words
  /// are always the same, whatever the model's seed.
  double loss_of(Part part, Lookups& lookups) {
    Runs runs(spec_.run, spec_.window);
    runs.take(corpus_.text(part), [](std::size_t) { return true; });
    const Draws draws(0);
    std::vector<double> losses(runs.size());
    std::vector<std::int64_t> pairs(losses.size());
    lookups.for_each(
        runs.size(),
        [&](std::int64_t first, std::int64_t count, std::span<StepIds> ids) {
          fill(
              runs, draws, [](std::int64_t i) { return i; },
              [this](std::int64_t) { return spec_.window; }, first, count, ids);
        },
        [&](const Block& block) {
          for (std::int64_t s = 0; s < block.samples; ++s) {
            Reach reach;
            const auto index = static_cast<std::size_t>(block.first + s);
            pairs[index] =
                reach_of(runs, block.first + s, reach, [&](std::int64_t) { return spec_.window; });
            losses[index] = skipgram_loss(run_of(block, s, reach), level_);
          }
        },
        [](std::int64_t, std::int64_t) {});
    lookups.complete(runs.size(), std::as_writable_bytes(std::span(losses)));
    lookups.complete(runs.size(), std::as_writable_bytes(std::span(pairs)));
    const double sum = std::accumulate(losses.begin(), losses.end(), 0.0);
    return sum / static_cast<double>(std::accumulate(pairs.begin(), pairs.end(), 0LL));
  }

  /// Returns the rank correlation of people's scores with the cosines of the words' vectors.
  double agreement(const Embedding& engine) const {
    const auto dim = static_cast<std::size_t>(dim_);
    std::vector<std::int64_t> rows;
    std::vector<double> scores, cosines;
    for (const WordPair& pair : pairs_) {
      rows.insert(rows.end(), {pair.first, pair.second});
      scores.push_back(pair.score);
    }
    std::vector<float> vectors(rows.size() * dim);
    engine.read_rows(spec_.word, rows, vectors);
    for (std::size_t i = 0; i < rows.size(); i += 2)
      cosines.push_back(cosine(vectors.data() + i * dim, vectors.data() + (i + 1) * dim, dim_));
    return spearman(cosines, scores);
  }

  const SkipgramSpec& spec_;
  std::uint64_t seed_;
  std::int64_t dim_;
  Corpus corpus_;
  std::vector<WordPair> pairs_;
  LeftOut left_out_;
  std::vector<KeySpace> key_spaces_;
  AliasTable negatives_;
  std::vector<std::uint64_t> keep_;
  Runs runs_;  ///< runs of the current epoch
  Draws draws_;
  Permutation order_{0, 0};
  SimdLevel level_ = simd_level();
};

std::vector<std::string> files_of(TomlSection& section) {
  if (!section.has("files")) return {section.text("file")};
  std::vector<std::string> files = section.texts("files", {});
  if (files.empty()) section.refuse_value("files", "a list of at least one file");
  return files;
}

double share_of(TomlSection& section, std::string_view key) {
  const double share = section.number(key, 0);
  if (!(share >= 0 && share < 1)) section.refuse_value(key, "at least 0 and below 1");
  return share;
}

}  // namespace

std::vector<std::string> SkipgramSpec::read_data(TomlSection& root) {
  TomlSection data = root.section("data");
  files = files_of(data);
  corpus.rule = data.choice("tokens", {"words", "blanks"}, "words") == "words" ? TokenRule::kWords
                                                                               : TokenRule::kBlanks;
  similarity = data.text("similarity", "");
  data.finish();

  TomlSection all = root.section("ids");
  const std::vector<std::string> names = all.keys();
  if (names.size() != 1)
    all.refuse_section(
        fmt::format("must name the ids of words and no others, got {} names", names.size()));
  ids = names.front();
  TomlSection section = all.section(ids);
  corpus.min_count = section.integer("min_count", 1, std::int64_t{1} << 40, 1);
  section.finish();

  TomlSection split = root.section("split", true);
  corpus.test_share = share_of(split, "test");
  corpus.validation_share = share_of(split, "validation");
  if (!(corpus.test_share + corpus.validation_share < 1))
    split.refuse_value("validation", "below 1 together with the test part");
  corpus.train_on_validation = split.flag("train_on_validation", false);
  split.finish();
  return names;
}

void SkipgramSpec::read_model(TomlSection& root, const Job& job) {
  TomlSection section = root.section("model");
  section.text("kind");
  const std::vector<std::string> tables = names_of(job.tables);
  word = section.choice("word", tables);
  context = section.choice("context", tables);
  if (word == context) section.refuse_value("context", "another table than that of the words");
  if (tables.size() != 2)
    section.refuse("kind", fmt::format("must use every table, got {} of them", tables.size()));
  if (named(job.tables, word).dim != named(job.tables, context).dim)
    section.refuse_value("context", "a table of the dim of that of the words");
  window = section.integer("window", 1, SkipgramRun::kMostWindow, window);
  negatives = section.integer("negatives", 1, 1024, negatives);
  run = section.integer("run", 1, SkipgramRun::kMostCentres, run);
  run_negatives = section.integer("run_negatives", 1, SkipgramRun::kMostNegatives, run_negatives);
  subsample = section.number("subsample", subsample);
  if (!(subsample >= 0)) section.refuse_value("subsample", "at least 0");
  negative_power = section.number("negative_power", negative_power);
  if (!(negative_power >= 0)) section.refuse_value("negative_power", "at least 0");
  section.finish();
}

std::vector<std::string> SkipgramSpec::metrics() const {
  if (similarity.empty()) return {"loss"};
  return {"loss", "spearman"};
}

std::unique_ptr<Model> SkipgramSpec::make(const Job& job, const DataOptions& options) const {
  const std::filesystem::path root = options.root;
  std::vector<std::string> paths;
  for (const std::string& file : files) paths.push_back((root / file).string());
  Corpus text = read_corpus(paths, corpus, options);
  if (text.counts().empty()) {
    throw ValueError(fmt::format("'{}' must have words that occur {} times or more, got none",
                                 paths.front(), corpus.min_count));
  }
  WordPairs pairs;
  if (!similarity.empty()) {
    pairs = read_word_pairs((root / similarity).string(), text.words(), corpus.rule,
                            options.skip_bad.most() - text.left_out().total());
  }
  return std::make_unique<Skipgram>(job, *this, std::move(text), std::move(pairs));
}

PartsById SkipgramSpec::parts_by_id() const {
  return {.keys = {{.ids = ids, .kind = KeyKind::kString}}, .lists = {}, .numbers = {}};
}

std::unique_ptr<Predictor> SkipgramSpec::make_predictor(const SavedParts& saved,
                                                        const NewRows& /*rows*/) const {
  throw NotImplemented(
      fmt::format("a model skipgram has no scores for new rows, got '{}'; `embertable neighbors` "
                  "gives the words that are nearest to one",
                  saved.directory().string()));
}

}  // namespace embertable::jobs
