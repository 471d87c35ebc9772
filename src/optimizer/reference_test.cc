// Every rule beside the reference of its own test, which is written from the formula.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>

#include "testing/any_numbers.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;
using testing::Pointwise;

class RuleReference : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(references().contains(GetParam())) << "its test has no AddReference";
  }
  const Rule& rule() const { return find_rule(GetParam()); }
  Optimizer optimizer() const { return Optimizer(GetParam(), rule().default_learning_rate()); }
  const Reference& reference() const { return references()[GetParam()]; }
};

INSTANTIATE_TEST_SUITE_P(Rules, RuleReference, testing::ValuesIn(optimizer_rules()),
                         [](const auto& rule) { return rule.param; });

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

/// What a number at `column` of the gradient of row `r` of a tile of 16 may change when it is none,
/// infinite, or so large that its square is.
struct SpoiltTile {
  static constexpr std::int32_t kDim = 40;
  std::int64_t r;
  std::size_t column;
  float wild;

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
    g[r][column] = wild;
    const std::vector<double> want = after_reference(reference, rows, r, g[r]);
    rows.update(level, first_rows(16), g, 0.3f, 1);
    if (std::isnan(wild)) {
      EXPECT_EQ(std::isnan(rows.row(r)[column]), std::isnan(want[column]));
    }
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

TEST_P(RuleReference, KeepsWhatIsNotFiniteInItsElementOrInItsRow) {
  static constexpr std::pair<int, std::size_t> kPlaces[] = {
      {0, 0}, {1, 39}, {7, 15}, {8, 16}, {15, 33}};
  if (dims_of(rule(), {SpoiltTile::kDim}).empty()) return;  // rows of one column
  for (const Optimizer& optimizer : tested_optimizers(rule())) {
    TestedRows rows(optimizer, 16, SpoiltTile::kDim);
    for (std::int64_t r = 0; r < 16; ++r) std::fill_n(rows.row(r), SpoiltTile::kDim, 0.25f);
    for (const float wild : {std::nanf(""), HUGE_VALF, -3e38f}) {
      for (const auto& [r, column] : kPlaces) {
        for (const SimdLevel level : usable_levels()) {
          SCOPED_TRACE(fmt::format("{} {} row {} column {}: {}", optimizer.to_string(),
                                   to_string(level), r, column, wild));
          SpoiltTile{r, column, wild}.expect_kept(reference(), rows, level);
        }
      }
    }
  }
}

MATCHER(IsNear, "") {
  return std::abs(std::get<0>(arg) - std::get<1>(arg)) <= 1e-6 + 1e-5 * std::abs(std::get<1>(arg));
}

TEST_P(RuleReference, AgreesWithAReferenceInDouble) {
  for (const std::int32_t dim : dims_of(rule(), {1, 3, 16, 33, 70, 256})) {
    std::mt19937 random(static_cast<unsigned>(dim));
    std::uniform_real_distribution<float> number(-1, 1);
    TestedRows rows(optimizer(), 1, dim);
    std::generate_n(rows.row(0), dim, [&] { return number(random); });
    std::vector<double> row = doubles(rows.row_values(0));
    std::vector<std::vector<double>> slots;
    for (int s = 0; s < rows.num_slots(); ++s) slots.push_back(doubles(rows.slot_values(s, 0)));

    for (int step = 1; step <= 5; ++step) {
      Floats g(dim);
      std::ranges::generate(g, [&] { return number(random); });
      rows.update(simd_level(), {0}, {g}, 0.125f, step);
      reference()(optimizer(), 0.125, step, row, slots, doubles(g));
      EXPECT_THAT(rows.row_values(0), Pointwise(IsNear(), row))
          << "dim " << dim << " step " << step;
      for (int s = 0; s < rows.num_slots(); ++s) {
        EXPECT_THAT(rows.slot_values(s, 0), Pointwise(IsNear(), slots[s]));
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
        compare(rows_.slot_values(s, 0), slots[s], rows_.slot_name(s), step);
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
        if (is_old(x)) x = any_slot_number(is_signed_slot(rows_, s), numbers_);
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

TEST_P(RuleReference, StaysWithinTheRoundingOfItsFormulaForAnyNumbers) {
  if (!reference().bounded) return;  // a reference in double has no bounds
  for (const Optimizer& optimizer : tested_optimizers(rule())) {
    for (const std::int32_t dim : dims_of(rule(), {1, 3, 16, 33, 70, 256})) {
      EXPECT_GT(BoundedSteps(reference(), optimizer, dim).run(60), 0.4)
          << optimizer.to_string() << " dim " << dim;
    }
  }
}

}  // namespace
}  // namespace embertable
