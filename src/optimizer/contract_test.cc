// What must hold for every registered rule.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <regex>
#include <set>

#include "embertable/errors.h"
#include "optimizer/tested_rows.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;
using testing::ElementsAre;
using testing::Pointwise;

class EveryRule : public testing::TestWithParam<std::string> {
 protected:
  const Rule& rule() const { return find_rule(GetParam()); }
  Optimizer optimizer() const { return Optimizer(GetParam(), rule().default_learning_rate()); }

  /// With its defaults, and with the settings that its reference names.
  std::vector<Optimizer> variants(const OptimizerOptions& options = {}) const {
    std::vector<Optimizer> all;
    const auto add = [&](const Optimizer::Settings& settings) {
      all.emplace_back(GetParam(), rule().default_learning_rate(), settings, options);
    };
    add({});
    for (const Optimizer::Settings& settings : reference().variants) add(settings);
    return all;
  }

  const Reference& reference() const { return references()[GetParam()]; }

  /// Those of `wanted` that the rule can step.
  std::vector<std::int32_t> dims(std::vector<std::int32_t> wanted) const {
    std::erase_if(wanted, [this](std::int32_t dim) {
      try {
        rule().check_dim(dim);
        return false;
      } catch (const ValueError&) {
        return true;
      }
    });
    return wanted;
  }

  bool allows_decay() const {
    try {
      Optimizer(GetParam(), 0.1, {}, {.weight_decay_factor = 0.125});
      return true;
    } catch (const ValueError&) {
      return false;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Rules, EveryRule, testing::ValuesIn(optimizer_rules()),
                         [](const auto& rule) { return rule.param; });

/// Without those that only hand gradients on.
class EverySteppingRule : public EveryRule {
 public:
  static std::vector<std::string> names() {
    std::vector<std::string> names = optimizer_rules();
    std::erase_if(names, [](const std::string& name) { return find_rule(name).gives_sums(); });
    return names;
  }
};

INSTANTIATE_TEST_SUITE_P(Rules, EverySteppingRule, testing::ValuesIn(EverySteppingRule::names()),
                         [](const auto& rule) { return rule.param; });

std::vector<std::int32_t> tested_dims() {
  std::vector<std::int32_t> dims = {128, 256, 1000};
  for (std::int32_t dim = 1; dim <= 70; ++dim) dims.push_back(dim);
  return dims;
}

/// Numbers of every kind: a fifth are zeros of both signs, denormals, huge or tiny.
class AnyNumbers {
 public:
  explicit AnyNumbers(unsigned seed) : random_(seed) {}

  float operator()() {
    static constexpr float kSpecial[] = {0.0f,   -0.0f, 1e-45f, -3e-39f,  1e-30f,
                                         -1e19f, 1e30f, -3e38f, 0x1p-63f, 1.0f};
    if (random_() % 5 == 0) return kSpecial[random_() % std::size(kSpecial)];
    return std::uniform_real_distribution<float>(-2, 2)(random_);
  }
  Floats row(std::int32_t dim) {
    Floats row(static_cast<std::size_t>(dim));
    std::ranges::generate(row, std::ref(*this));
    return row;
  }

 private:
  std::mt19937 random_;
};

/// Any number that slot s may hold: those that add up squares or count are not negative.
float any_slot_number(const TestedRows& rows, std::int32_t s, AnyNumbers& numbers) {
  static const std::set<std::string> kSigned = {"linears", "m",       "mg",      "mom",
                                                "momenta", "weights", "benefits"};
  const float number = numbers();
  return kSigned.contains(rows.slot_name(s)) ? number : std::abs(number);
}

/// Rows and slots of any numbers.
void fill(TestedRows& rows, AnyNumbers& numbers) {
  for (std::int64_t r = 0; r < rows.rows(); ++r) {
    std::generate_n(rows.row(r), rows.dim(), std::ref(numbers));
    for (std::int32_t s = 0; s < rows.num_slots(); ++s) {
      std::generate_n(rows.slot(s, r), rows.slot_width(s),
                      [&] { return any_slot_number(rows, s, numbers); });
    }
  }
}

std::vector<std::int64_t> first_rows(std::int64_t n) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(n));
  for (std::int64_t r = 0; r < n; ++r) rows[static_cast<std::size_t>(r)] = r;
  return rows;
}

std::vector<Floats> gradients(AnyNumbers& numbers, std::int64_t n, std::int32_t dim) {
  std::vector<Floats> all;
  for (std::int64_t i = 0; i < n; ++i) all.push_back(numbers.row(dim));
  return all;
}

TEST(Rules, HaveNamesThatAreSortedAndDiffer) {
  const std::vector<std::string> names = optimizer_rules();
  EXPECT_EQ(std::ranges::adjacent_find(names, std::greater_equal{}), names.end());
}

TEST_P(EveryRule, TakesItsDefaultsAndRefusesWhatLiesOutside) {
  EXPECT_EQ(optimizer().parameters().size(), rule().parameters().size());
  for (const RuleParameter& parameter : rule().parameters()) {
    EXPECT_TRUE(parameter.allows(parameter.default_value)) << parameter.name;
    EXPECT_EQ(parameter.allows(parameter.low), std::isfinite(parameter.low) && !parameter.low_open);
    EXPECT_EQ(parameter.allows(parameter.high),
              std::isfinite(parameter.high) && !parameter.high_open);
    EXPECT_THROW(Optimizer(GetParam(), 1, {{std::string(parameter.name), std::nan("")}}),
                 ValueError);
  }
}

TEST_P(EveryRule, HasFewSlotsWithNamesThatDiffer) {
  std::set<std::string_view> names;
  const std::vector<RuleSlot> slots = rule().slots(optimizer());
  for (const RuleSlot& slot : slots) {
    EXPECT_TRUE(names.insert(slot.name).second) << slot.name;
    EXPECT_TRUE(std::isfinite(slot.initial_value)) << slot.name;
  }
  EXPECT_LE(slots.size(), std::size_t{kMaxSlots});
  EXPECT_LE(rule().parameters().size(), std::size_t{StepScalars::kMaxValues});
}

/// The bits after three steps of 17 of 19 rows; none if something beside them was touched.
std::vector<std::uint32_t> bits_after_steps(const Optimizer& optimizer, SimdLevel level,
                                            std::int32_t dim) {
  AnyNumbers numbers(static_cast<unsigned>(dim));
  TestedRows rows(optimizer, 19, dim);
  fill(rows, numbers);
  for (int step = 1; step <= 3; ++step) {
    rows.update(level, first_rows(17), gradients(numbers, 17, dim), 0.3f, step);
  }
  return rows.gaps_are_intact() ? rows.bits() : std::vector<std::uint32_t>{};
}

TEST_P(EveryRule, GivesTheSameBitsAtEveryLevelAndTouchesNothingBeyondDim) {
  for (const Optimizer& optimizer : variants()) {
    for (const std::int32_t dim : dims(tested_dims())) {
      const auto bits = bits_after_steps(optimizer, SimdLevel::kScalar, dim);
      for (const SimdLevel level : usable_levels()) {
        const auto at_level = bits_after_steps(optimizer, level, dim);
        EXPECT_TRUE(!at_level.empty() && at_level == bits)
            << optimizer.to_string() << " dim " << dim << ' ' << to_string(level);
      }
    }
  }
}

TEST_P(EveryRule, GivesARowTheSameBitsAloneAndInATile) {
  for (const SimdLevel level : usable_levels()) {
    AnyNumbers numbers(7);
    TestedRows tile(optimizer(), 16, 37);
    fill(tile, numbers);
    TestedRows alone = tile;
    const std::vector<Floats> g = gradients(numbers, 16, 37);
    tile.update(level, first_rows(16), g, 0.3f, 1);
    for (std::int64_t r = 0; r < 16; ++r)
      alone.update(level, {r}, {g[static_cast<std::size_t>(r)]}, 0.3f, 1);
    EXPECT_TRUE(tile.bits() == alone.bits()) << to_string(level);
  }
}

std::vector<double> doubles(const Floats& floats) { return {floats.begin(), floats.end()}; }

/// A row of `rows` with its slots after a step of the reference.
std::vector<double> after_reference(const Reference& reference, TestedRows& rows, std::int64_t r,
                                    const Floats& gradient) {
  std::vector<double> row = doubles(rows.row_values(r));
  std::vector<std::vector<double>> slots;
  for (int s = 0; s < rows.num_slots(); ++s) slots.push_back(doubles(rows.slot_values(s, r)));
  reference(rows.optimizer(), 0.3f, 1, row, slots, doubles(gradient));
  return row;
}

/// What a NaN at `column` of the gradient of row `r` of a tile of 16 may change.
struct SpoiltTile {
  static constexpr std::int32_t kDim = 40;
  std::int64_t r;
  std::size_t column;

  /// Where the reference's row does not only change in this column, the rule goes by the whole row.
  bool is_elementwise(const Reference& reference, TestedRows& rows) const {
    Floats g(kDim, 0.5f);
    std::vector<double> before = after_reference(reference, rows, r, g);
    g[column] = 0.75f;
    std::vector<double> after = after_reference(reference, rows, r, g);
    before[column] = after[column] = 0;
    return before == after;
  }

  void expect_kept(const Reference& reference, TestedRows rows, SimdLevel level) const {
    TestedRows clean = rows;
    std::vector<Floats> g(16, Floats(kDim, 0.5f));
    clean.update(level, first_rows(16), g, 0.3f, 1);
    const bool elementwise = is_elementwise(reference, rows);
    g[static_cast<std::size_t>(r)][column] = std::nanf("");
    const std::vector<double> want =
        after_reference(reference, rows, r, g[static_cast<std::size_t>(r)]);
    rows.update(level, first_rows(16), g, 0.3f, 1);
    EXPECT_EQ(std::isnan(rows.row(r)[column]), std::isnan(want[column]));
    for (std::int64_t other = 0; other < 16; ++other) {
      if (other == r && !elementwise) continue;
      if (other == r) hide(rows), hide(clean);
      EXPECT_EQ(rows.row_values(other), clean.row_values(other)) << "row " << other;
      for (std::int32_t s = 0; s < rows.num_slots(); ++s)
        EXPECT_EQ(rows.slot_values(s, other), clean.slot_values(s, other)) << "row " << other;
    }
  }

  void hide(TestedRows& rows) const {
    rows.row(r)[column] = 0;
    for (std::int32_t s = 0; s < rows.num_slots(); ++s) {
      if (rows.slot_width(s) > 1) rows.slot(s, r)[column] = 0;
    }
  }
};

TEST_P(EveryRule, KeepsANanGradientInItsElementOrInItsRow) {
  if (dims({SpoiltTile::kDim}).empty()) return;  // rows of one column
  for (const Optimizer& optimizer : variants()) {
    for (const SimdLevel level : usable_levels()) {
      TestedRows rows(optimizer, 16, SpoiltTile::kDim);
      for (std::int64_t r = 0; r < 16; ++r) std::fill_n(rows.row(r), SpoiltTile::kDim, 0.25f);
      for (const SpoiltTile& spoilt : {SpoiltTile{0, 0}, SpoiltTile{1, 39}, SpoiltTile{7, 15},
                                       SpoiltTile{8, 16}, SpoiltTile{15, 33}}) {
        SCOPED_TRACE(optimizer.to_string() + " " + std::string(to_string(level)) + " row " +
                     std::to_string(spoilt.r) + " column " + std::to_string(spoilt.column));
        spoilt.expect_kept(reference(), rows, level);
      }
    }
  }
}

TEST_P(EverySteppingRule, ClipsAndDecaysAroundTheFormula) {
  const OptimizerOptions options = {.clip_gradient_min = -0.25,
                                    .clip_gradient_max = 0.5,
                                    .weight_decay_factor = allows_decay() ? 0.125 : 0,
                                    .clip_weight_min = -1,
                                    .clip_weight_max = 0.75};
  for (const SimdLevel level : usable_levels()) {
    for (const std::int32_t dim : dims({1, 16, 37, 64})) {
      AnyNumbers numbers(static_cast<unsigned>(dim));
      TestedRows limited(Optimizer(GetParam(), 0.1, {}, options), 19, dim);
      fill(limited, numbers);
      TestedRows by_hand(optimizer(), 19, dim);
      for (std::int64_t r = 0; r < 19; ++r) {
        std::ranges::copy(limited.row_values(r), by_hand.row(r));
        for (std::int32_t s = 0; s < limited.num_slots(); ++s)
          std::ranges::copy(limited.slot_values(s, r), by_hand.slot(s, r));
      }
      std::vector<Floats> g = gradients(numbers, 17, dim);
      limited.update(level, first_rows(17), g, 0.3f, 1);

      const auto decay = static_cast<float>(options.weight_decay_factor);
      for (std::int64_t r = 0; r < 17; ++r) {
        for (float& x : g[static_cast<std::size_t>(r)]) x = std::clamp(x, -0.25f, 0.5f);
        for (float* w = by_hand.row(r); w != by_hand.row(r) + dim && decay != 0; ++w) {
          const float loss = decay * *w;
          *w = *w - loss;
        }
      }
      by_hand.update(level, first_rows(17), g, 0.3f, 1);
      for (std::int64_t r = 0; r < 17; ++r) {
        for (float* w = by_hand.row(r); w != by_hand.row(r) + dim; ++w)
          *w = *w < -1 ? -1 : *w > 0.75f ? 0.75f : *w;
      }
      EXPECT_TRUE(limited.bits() == by_hand.bits()) << "dim " << dim << ' ' << to_string(level);
    }
  }
}

MATCHER(IsNear, "") {
  return std::abs(std::get<0>(arg) - std::get<1>(arg)) <= 1e-6 + 1e-5 * std::abs(std::get<1>(arg));
}

TEST_P(EveryRule, AgreesWithAReferenceInDouble) {
  ASSERT_TRUE(references().contains(GetParam())) << "its test has no AddReference";
  for (const std::int32_t dim : dims({1, 3, 16, 33, 70, 256})) {
    std::mt19937 random(static_cast<unsigned>(dim));
    std::uniform_real_distribution<float> number(-1, 1);
    TestedRows rows(optimizer(), 1, dim);
    std::generate_n(rows.row(0), dim, [&] { return number(random); });
    std::vector<double> row = doubles(rows.row_values(0));
    std::vector<std::vector<double>> slots;
    for (int s = 0; s < rows.num_slots(); ++s) slots.push_back(doubles(rows.slot_values(s, 0)));

    for (int step = 1; step <= 5; ++step) {
      Floats g(static_cast<std::size_t>(dim));
      std::ranges::generate(g, [&] { return number(random); });
      rows.update(simd_level(), {0}, {g}, 0.125f, step);
      reference()(optimizer(), 0.125, step, row, slots, doubles(g));
      EXPECT_THAT(rows.row_values(0), Pointwise(IsNear(), row))
          << "dim " << dim << " step " << step;
      for (int s = 0; s < rows.num_slots(); ++s) {
        EXPECT_THAT(rows.slot_values(s, 0),
                    Pointwise(IsNear(), slots[static_cast<std::size_t>(s)]));
      }
    }
  }
}

/// Steps of one row of any numbers, each compared with a step of the reference from the same bits.
class BoundedSteps {
 public:
  BoundedSteps(const Reference& reference, const Optimizer& optimizer, std::int32_t dim)
      : reference_(reference), rows_(optimizer, 1, dim), numbers_(static_cast<unsigned>(dim)) {}

  /// The share of the numbers that could be compared.
  double run(int steps) {
    std::generate_n(rows_.row(0), rows_.dim(), std::ref(numbers_));
    for (int step = 1; step <= steps; ++step) {
      const float rate = kRate[static_cast<std::size_t>(step) % std::size(kRate)];
      const Floats g = numbers_.row(rows_.dim());
      Numbers row = bounded(rows_.row_values(0));
      std::vector<Numbers> slots;
      for (int s = 0; s < rows_.num_slots(); ++s) slots.push_back(bounded(rows_.slot_values(s, 0)));
      reference_.bounded(rows_.optimizer(), rate, step, row, slots, bounded(g));
      rows_.update(simd_level(), {0}, {g}, rate, step);
      compare(rows_.row_values(0), row, "row", step);
      for (int s = 0; s < rows_.num_slots(); ++s)
        compare(rows_.slot_values(s, 0), slots[static_cast<std::size_t>(s)], rows_.slot_name(s),
                step);
      renew();
    }
    return static_cast<double>(known_) / static_cast<double>(all_);
  }

 private:
  static constexpr float kRate[] = {0.125f, 0.3f, 1e-3f, 7};

  /// A reference may take its operations in another order than the rule; that costs no more than a
  /// few times the bound.
  static constexpr double kSlack = 4;

  static Numbers bounded(const Floats& floats) { return {floats.begin(), floats.end()}; }

  void compare(const Floats& got, const Numbers& want, const std::string& what, int step) {
    for (std::size_t i = 0; i < got.size(); ++i) {
      ++all_;
      if (!want[i].is_known()) continue;
      ++known_;
      EXPECT_LE(std::abs(got[i] - want[i].value()), kSlack * want[i].error())
          << rows_.optimizer().to_string() << " dim " << rows_.dim() << " step " << step << ' '
          << what << '[' << i << "]: " << got[i] << " instead of " << want[i].value();
    }
  }

  /// Other numbers for every eighth, and for what is finite no more.
  void renew() {
    for (int i = 0; i < rows_.dim(); ++i) {
      float& x = rows_.row(0)[i];
      if (is_old(x)) x = numbers_();
    }
    for (int s = 0; s < rows_.num_slots(); ++s) {
      for (int i = 0; i < rows_.slot_width(s); ++i) {
        float& x = rows_.slot(s, 0)[i];
        if (is_old(x)) x = any_slot_number(rows_, s, numbers_);
      }
    }
  }
  bool is_old(float x) { return !std::isfinite(x) || ++age_ % 8 == 0; }

  const Reference& reference_;
  TestedRows rows_;
  AnyNumbers numbers_;
  std::int64_t known_ = 0, all_ = 0;
  int age_ = 0;
};

TEST_P(EveryRule, StaysWithinTheRoundingOfItsFormulaForAnyNumbers) {
  if (!reference().bounded) return;  // a reference in double has no bounds
  for (const Optimizer& optimizer : variants()) {
    for (const std::int32_t dim : dims({1, 3, 16, 33, 70, 256})) {
      EXPECT_GT(BoundedSteps(reference(), optimizer, dim).run(60), 0.4)
          << optimizer.to_string() << " dim " << dim;
    }
  }
}

/// Entries of one bucket: row 4 alone, row 0 by three, row 2 by two of which one lies in a later
/// piece, row 5 alone.
struct Bucket {
  std::vector<std::uint32_t> single_row = {4, 5}, single_out = {1, kLater + 1};
  std::vector<std::uint32_t> multi_row = {0, 2}, start = {0, 3, 5};
  std::vector<std::uint32_t> order = {0, 2, 3, 4, kLater};
  Floats single_gain = {0.5f, 3}, order_gain = {1, 0.25f, 7, -1, 0.75f};
  static constexpr std::uint32_t kLater = kPieceRows;

  GroupedEntries<std::uint32_t> entries(bool gains) const {
    return {.single_row = single_row.data(),
            .single_out = single_out.data(),
            .singles = 2,
            .multi_row = multi_row.data(),
            .multi_start = start.data(),
            .multis = 2,
            .order = order.data(),
            .single_gain = gains ? single_gain.data() : nullptr,
            .order_gain = gains ? order_gain.data() : nullptr};
  }

  /// The gradients of the rows in the order of `rows`.
  std::vector<Floats> sums(const std::vector<Floats>& output, bool gains) const {
    const auto entry = [&](std::uint32_t out, float gain) {
      Floats g = output[out < kLater ? out : 5 + out - kLater];
      for (float& x : g) x = gains ? gain * x : x;
      return g;
    };
    std::vector<Floats> sums;
    for (std::size_t i = 0; i < 2; ++i) sums.push_back(entry(single_out[i], single_gain[i]));
    for (std::size_t i = 0; i < 2; ++i) {
      sums.push_back(entry(order[start[i]], order_gain[start[i]]));
      for (std::uint32_t k = start[i] + 1; k < start[i + 1]; ++k) {
        const Floats term = entry(order[k], order_gain[k]);
        std::ranges::transform(sums.back(), term, sums.back().begin(), std::plus{});
      }
    }
    return sums;
  }
  std::vector<std::int64_t> rows() const { return {4, 5, 0, 2}; }
};

TEST_P(EveryRule, GivesTheSameBitsFusedWithTheSumAndApart) {
  const Bucket bucket;
  for (const std::int32_t dim : kFusedDims) {
    for (const SimdLevel level : usable_levels()) {
      for (const bool gains : {false, true}) {
        const auto fused_form = rule().update_groups(level, optimizer(), dim);
        if (fused_form == nullptr) continue;
        AnyNumbers numbers(static_cast<unsigned>(dim));
        TestedRows fused(optimizer(), 6, dim);
        fill(fused, numbers);
        TestedRows apart = fused;
        const std::vector<Floats> output = gradients(numbers, 7, dim);
        Floats memory;
        for (const Floats& g : output) memory.insert(memory.end(), g.begin(), g.end());
        const GradientPiece pieces[] = {{memory.data(), dim, 0}, {memory.data() + 5 * dim, dim, 1}};

        fused_form(bucket.entries(gains), {.piece = pieces}, fused.block(),
                   fused.begin_step(0.3f, 1));
        apart.update(level, bucket.rows(), bucket.sums(output, gains), 0.3f, 1);
        EXPECT_TRUE(fused.bits() == apart.bits()) << "dim " << dim << ' ' << to_string(level);
        EXPECT_TRUE(fused.gaps_are_intact()) << "dim " << dim << ' ' << to_string(level);
      }
    }
  }
}

TEST_P(EveryRule, HasNoFusedFormForOtherDims) {
  for (const std::int32_t dim : {1, 15, 17, 48, 255, 512}) {
    EXPECT_EQ(rule().update_groups(simd_level(), optimizer(), dim), nullptr) << dim;
  }
}

/// "registry.cc" once for each of its lines that names the rule, and so on; without the
/// files of rules, whose parameters may be called like one, tests, and the names that other systems
/// have for it. A name is quoted, a file, a function or a line of the registry: some are words of
/// comments too.
std::vector<std::string> places_that_name(const std::string& rule) {
  namespace fs = std::filesystem;
  const fs::path source = EMBERTABLE_SOURCE_DIR;
  std::vector<fs::path> files = {source / "include/embertable/optimizer.h"};
  for (const auto& file : fs::directory_iterator(source / "src/optimizer")) {
    const std::string name = file.path().filename();
    const bool own = std::ranges::any_of(optimizer_rules(), [&](const std::string& of) {
      return name == of + ".h" || name == of + ".cc" || name == of + ".inl";
    });
    const bool test =
        name.ends_with("_test.cc") || name == "tested_rows.h" || name == "reference.h";
    if (file.is_regular_file() && !own && !test && name != "variants.cc")
      files.push_back(file.path());
  }
  std::vector<std::string> places;
  const std::regex word("(^|[^a-z_])(\"" + rule + "\"|" + rule +
                        "(_rule|(_test)?\\.cc|\\.inl|\\.h)|RULE\\(" + rule + "\\))($|[^a-z_])");
  for (const fs::path& path : files) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      if (std::regex_search(line, word)) places.push_back(path.filename());
    }
  }
  std::ranges::sort(places);
  return places;
}

TEST_P(EveryRule, IsNamedOnlyByItsFilesTheBuildAndOneLineOfTheRegistry) {
  EXPECT_THAT(places_that_name(GetParam()),
              ElementsAre("CMakeLists.txt", "CMakeLists.txt", "registry.cc"));
}

}  // namespace
}  // namespace embertable
