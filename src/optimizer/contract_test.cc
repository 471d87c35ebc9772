// What must hold for every registered rule.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <regex>
#include <set>
#include <utility>

#include "base/memory.h"
#include "embertable/errors.h"
#include "kernels/row_tile.h"
#include "kernels/tile_update.h"
#include "testing/any_numbers.h"
#include "testing/rule_rows.h"
#include "testing/sanitized.h"
#include "testing/slow_bfloat16.h"
#include "testing/source_path.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;
using testing::ElementsAre;

class EveryRule : public testing::TestWithParam<std::string> {
 protected:
  const Rule& rule() const { return find_rule(GetParam()); }
  Optimizer optimizer() const { return Optimizer(GetParam(), rule().default_learning_rate()); }

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
  if (kSanitized) return {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 130};
  std::vector<std::int32_t> dims = {128, 256, 1000};
  for (std::int32_t dim = 1; dim <= 70; ++dim) dims.push_back(dim);
  return dims;
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

TEST_P(EveryRule, GivesTheSameBitsAtEveryLevelAndTouchesNothingBeyondDim) {
  for (const Optimizer& optimizer : tested_optimizers(rule())) {
    for (const std::int32_t dim : dims_of(rule(), tested_dims())) {
      AnyNumbers numbers(static_cast<unsigned>(dim));
      TestedRows before(optimizer, 19, dim);
      fill(before, numbers);
      const std::vector<Floats> steps[3] = {
          gradients(numbers, 17, dim), gradients(numbers, 17, dim), gradients(numbers, 17, dim)};
      std::vector<std::uint32_t> bits;
      for (const SimdLevel level : usable_levels()) {
        TestedRows rows = before;
        for (int step = 1; step <= 3; ++step)
          rows.update(level, first_rows(17), steps[step - 1], 0.3f, step);
        if (bits.empty()) bits = rows.bits();
        EXPECT_TRUE(rows.gaps_are_intact() && rows.bits() == bits)
            << optimizer.to_string() << " dim " << dim << ' ' << to_string(level);
      }
    }
  }
}

TEST_P(EveryRule, RoundsItsParametersToNearestWhateverTheCallerRoundsTo) {
  for (const Optimizer& optimizer : tested_optimizers(rule())) {
    const StepScalars expected = rule().scalars(optimizer);
    std::fesetround(FE_UPWARD);
    const StepScalars found = rule().scalars(optimizer);
    std::fesetround(FE_TONEAREST);
    for (std::size_t i = 0; i < optimizer.parameters().size(); ++i)
      EXPECT_EQ(found.value[i], expected.value[i]) << optimizer.parameters()[i].first;
  }
  const Optimizer decays("sgd", 0.1, {}, {.weight_decay_factor = 0.7});
  std::fesetround(FE_UPWARD);
  const float decay = find_rule("sgd").scalars(decays).decay;
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(decay, 0.7f);
}

TEST_P(EveryRule, GivesARowTheSameBitsAloneAndInATile) {
  for (const SimdLevel level : usable_levels()) {
    AnyNumbers numbers(7);
    TestedRows tile(optimizer(), 16, 37);
    fill(tile, numbers);
    TestedRows alone = tile;
    const std::vector<Floats> g = gradients(numbers, 16, 37);
    tile.update(level, first_rows(16), g, 0.3f, 1);
    for (std::int64_t r = 0; r < 16; ++r) alone.update(level, {r}, {g[r]}, 0.3f, 1);
    EXPECT_TRUE(tile.bits() == alone.bits()) << to_string(level);
  }
}

TEST_P(EverySteppingRule, ClipsAndDecaysAroundTheFormula) {
  const OptimizerOptions options = {.clip_gradient_min = -0.25,
                                    .clip_gradient_max = 0.5,
                                    .weight_decay_factor = allows_decay() ? 0.125 : 0,
                                    .clip_weight_min = -1,
                                    .clip_weight_max = 0.75};
  for (const SimdLevel level : usable_levels()) {
    for (const std::int32_t dim : dims_of(rule(), {1, 16, 37, 64})) {
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
        for (float& x : g[r]) x = std::clamp(x, -0.25f, 0.5f);
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

/// A step of half rows, each named once, in tiles; and by hand: the same step of floats, each then
/// rounded as docs/optimizers.md says.
TEST_P(EveryRule, StepsRowsOfBfloat16AsFloatsAndRoundsThem) {
  for (const std::int32_t dim : dims_of(rule(), {1, 16, 37, 64})) {
    AnyNumbers numbers(static_cast<unsigned>(dim));
    TestedRows by_hand(optimizer(), 19, dim);
    fill(by_hand, numbers);
    std::vector<std::uint16_t> first;
    for (std::int64_t r = 0; r < 19; ++r)
      for (std::int32_t c = 0; c < dim; ++c) {
        float& x = by_hand.row(r)[c];
        x = slow::nearest_bfloat16(x);
        first.push_back(static_cast<std::uint16_t>(slow::bits_of(x) >> 16));
      }
    const TestedRows before = by_hand;
    const std::vector<Floats> g = gradients(numbers, 17, dim);
    const StepScalars step = by_hand.begin_step(0.3f, 2);
    by_hand.update(SimdLevel::kScalar, first_rows(17), g, 0.3f, 2);
    for (const SimdLevel level : usable_levels()) {
      TestedRows slots = before;
      std::vector<std::uint16_t> half = first;
      RowBlock block = slots.block();
      block.type = RowType::kBfloat16;
      block.row = nullptr;
      block.half = half.data();
      block.stride = dim;
      block.rounding = {stream_of(mix_seeds(7, 1), "t"), 100, 3};
      Floats wide(RowTile::kRows * padded(dim));
      TileInProgress tile(block, rule().update_rows(level, optimizer()), step, wide.data(), level);
      for (std::uint64_t r = 0; r < 17; ++r) tile.add(r, g[r].data());
      tile.finish();
      for (std::int64_t r = 0; r < 19; ++r) {
        const slow::Rounding rounding = {
            .seed = 7, .table = "t", .step = 2, .row = static_cast<std::uint64_t>(100 + r * 3)};
        for (std::int32_t c = 0; c < dim; ++c) {
          const float x = by_hand.row(r)[c];
          const float want = r < 17 ? rounding.of(x, static_cast<std::uint32_t>(c)) : x;
          const float got = slow::float_of(std::uint32_t{half[r * dim + c]} << 16);
          ASSERT_TRUE((std::isnan(got) && std::isnan(want)) ||
                      slow::bits_of(got) == slow::bits_of(want))
              << "dim " << dim << ' ' << to_string(level) << " row " << r << " column " << c;
        }
        for (std::int32_t s = 0; s < slots.num_slots(); ++s)
          for (std::int32_t c = 0; c < slots.slot_width(s); ++c) {
            const float got = slots.slot(s, r)[c], want = by_hand.slot(s, r)[c];
            ASSERT_TRUE((std::isnan(got) && std::isnan(want)) ||
                        slow::bits_of(got) == slow::bits_of(want))
                << slots.slot_name(s) << " of row " << r;
          }
      }
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

/// Rows and slots as tables have them: records one after the other on cache lines of their own, and
/// a row-wise slot as an array of one number a row.
class PackedRows {
 public:
  explicit PackedRows(TestedRows& from) : from_(from), block_(from.block()) {
    std::int64_t full = 0;
    for (std::int32_t s = 0; s < from.num_slots(); ++s) full += from.slot_width(s) > 1;
    block_.stride = from.dim() * (1 + full);
    memory_ = Mapping((block_.stride + from.num_slots()) * from.rows() * 4);
    block_.row = reinterpret_cast<float*>(memory_.data());
    float* apart = block_.row + block_.stride * from.rows();
    float* record = block_.row;
    for (std::int32_t s = 0; s < from.num_slots(); ++s) {
      const bool row_wise = from.slot_width(s) == 1;
      block_.slot[s] = row_wise ? std::exchange(apart, apart + from.rows()) : record += from.dim();
      block_.slot_stride[s] = row_wise ? 1 : block_.stride;
    }
    for (std::int64_t r = 0; r < from.rows(); ++r) {
      std::ranges::copy(from.row_values(r), row(r));
      for (std::int32_t s = 0; s < from.num_slots(); ++s)
        std::ranges::copy(from.slot_values(s, r), slot(s, r));
    }
  }
  const RowBlock& block() const { return block_; }

  /// Writes what the rows have become back to where they came from.
  void give_back() {
    for (std::int64_t r = 0; r < from_.rows(); ++r) {
      std::copy_n(row(r), from_.dim(), from_.row(r));
      for (std::int32_t s = 0; s < from_.num_slots(); ++s)
        std::copy_n(slot(s, r), from_.slot_width(s), from_.slot(s, r));
    }
  }

 private:
  float* row(std::int64_t r) const { return block_.row + r * block_.stride; }
  float* slot(std::int32_t s, std::int64_t r) const {
    return block_.slot[s] + r * block_.slot_stride[s];
  }
  TestedRows& from_;
  RowBlock block_;
  Mapping memory_;
};

/// A fused form against its rule in tiles, for one dim at one level.
void expect_bits_of_tiles(UpdateGroups<std::uint32_t> fused_form, const Optimizer& optimizer,
                          std::int32_t dim, SimdLevel level, bool packed, bool gains) {
  const Bucket bucket;
  AnyNumbers numbers(static_cast<unsigned>(dim));
  TestedRows fused(optimizer, 6, dim);
  fill(fused, numbers);
  TestedRows apart = fused;
  const std::vector<Floats> output = gradients(numbers, 7, dim);
  Floats memory;
  for (const Floats& g : output) memory.insert(memory.end(), g.begin(), g.end());
  const GradientPiece pieces[] = {{memory.data(), dim, 0}, {memory.data() + 5 * dim, dim, 1}};

  if (packed) {
    PackedRows rows(fused);
    ASSERT_TRUE(fused_form(bucket.entries(gains), {.piece = pieces}, rows.block(),
                           fused.begin_step(0.3f, 1)));
    rows.give_back();
  } else {
    const bool done = fused_form(bucket.entries(gains), {.piece = pieces}, fused.block(),
                                 fused.begin_step(0.3f, 1));
    if (!done) {  // slots of narrow rows apart from their records
      ASSERT_LT(dim, kFusedDims[0]);
      ASSERT_TRUE(fused.bits() == apart.bits()) << "nothing is done, dim " << dim;
      return;
    }
  }
  apart.update(level, bucket.rows(), bucket.sums(output, gains), 0.3f, 1);
  EXPECT_TRUE(fused.bits() == apart.bits())
      << (packed ? "packed, dim " : "dim ") << dim << ' ' << to_string(level);
  EXPECT_TRUE(fused.gaps_are_intact()) << "dim " << dim << ' ' << to_string(level);
}

TEST_P(EveryRule, GivesTheSameBitsFusedWithTheSumAndApart) {
  std::vector<std::int32_t> dims(15);
  std::iota(dims.begin(), dims.end(), 1);
  dims.insert(dims.end(), std::begin(kFusedDims), std::end(kFusedDims));
  for (const std::int32_t dim : dims) {
    for (const SimdLevel level : usable_levels()) {
      const auto fused_form = rule().update_groups(level, optimizer(), dim, RowType::kFloat32);
      if (fused_form == nullptr) continue;
      for (const bool packed : {false, true})
        for (const bool gains : {false, true})
          expect_bits_of_tiles(fused_form, optimizer(), dim, level, packed, gains);
    }
  }
}

/// Rows of bfloat16 and their slots as tables have them.
class PackedHalves {
 public:
  explicit PackedHalves(TestedRows& from) {
    const std::int64_t dim = from.dim();
    std::int64_t record = dim / 2, floats = record;
    for (std::int32_t s = 0; s < from.num_slots(); ++s) record += from.slot_width(s) > 1 ? dim : 0;
    memory_ = Mapping((record + from.num_slots()) * from.rows() * 4);
    auto* const first = reinterpret_cast<float*>(memory_.data());
    float* apart = first + record * from.rows();
    block_ = {.stride = 2 * record, .slots = from.num_slots(), .dim = from.dim()};
    block_.rows = from.rows();
    block_.type = RowType::kBfloat16;
    block_.half = reinterpret_cast<std::uint16_t*>(first);
    block_.rounding = {stream_of(mix_seeds(7, 1), "t"), 100, 3};
    for (std::int32_t s = 0; s < from.num_slots(); ++s) {
      const bool row_wise = from.slot_width(s) == 1;
      block_.slot[s] = row_wise ? std::exchange(apart, apart + from.rows())
                                : first + std::exchange(floats, floats + dim);
      block_.slot_stride[s] = row_wise ? 1 : record;
    }
    for (std::int64_t r = 0; r < from.rows(); ++r) {
      for (std::int32_t c = 0; c < dim; ++c)
        block_.half[r * block_.stride + c] =
            static_cast<std::uint16_t>(slow::bits_of(from.row(r)[c]) >> 16);
      for (std::int32_t s = 0; s < from.num_slots(); ++s)
        std::ranges::copy(from.slot_values(s, r), block_.slot[s] + r * block_.slot_stride[s]);
    }
  }
  const RowBlock& block() const { return block_; }

  /// Returns rows, then slots; every NaN is the same number.
  std::vector<std::uint32_t> numbers() const {
    std::vector<std::uint32_t> all;
    const auto add = [&](float x) { all.push_back(std::isnan(x) ? 0x7fc00000 : slow::bits_of(x)); };
    for (std::int64_t r = 0; r < block_.rows; ++r)
      for (std::int32_t c = 0; c < block_.dim; ++c)
        add(slow::float_of(std::uint32_t{block_.half[r * block_.stride + c]} << 16));
    for (std::int32_t s = 0; s < block_.slots; ++s)
      for (std::int64_t r = 0; r < block_.rows; ++r)
        for (std::int32_t c = 0; c < (block_.slot_stride[s] == 1 ? 1 : block_.dim); ++c)
          add(block_.slot[s][r * block_.slot_stride[s] + c]);
    return all;
  }

 private:
  RowBlock block_;
  Mapping memory_;
};

TEST_P(EveryRule, GivesTheSameBitsOfBfloat16FusedWithTheSumAndInTiles) {
  for (const std::int32_t dim : kFusedDims) {
    AnyNumbers numbers(static_cast<unsigned>(dim));
    TestedRows rows(optimizer(), 6, dim);
    fill(rows, numbers);
    const std::vector<Floats> output = gradients(numbers, 7, dim);
    Floats memory;
    for (const Floats& g : output) memory.insert(memory.end(), g.begin(), g.end());
    const GradientPiece pieces[] = {{memory.data(), dim, 0}, {memory.data() + 5 * dim, dim, 1}};
    const StepScalars step = rows.begin_step(0.3f, 2);
    const Bucket bucket;
    for (const SimdLevel level : usable_levels()) {
      const auto fused_form = rule().update_groups(level, optimizer(), dim, RowType::kBfloat16);
      if (fused_form == nullptr || level == SimdLevel::kScalar) continue;
      for (const bool gains : {false, true}) {
        const PackedHalves fused(rows), tiles(rows);
        ASSERT_TRUE(fused_form(bucket.entries(gains), {.piece = pieces}, fused.block(), step));
        Floats sums(RowTile::kRows * padded(dim)), wide(sums.size());
        update_by_tiles<std::uint32_t>({bucket.entries(gains),
                                        {.piece = pieces},
                                        tiles.block(),
                                        rule().update_rows(level, optimizer()),
                                        step,
                                        sums.data(),
                                        wide.data()},
                                       level);
        EXPECT_EQ(fused.numbers(), tiles.numbers())
            << "dim " << dim << ' ' << to_string(level) << (gains ? " with gains" : "");
      }
    }
  }
}

TEST_P(EveryRule, HasNoFusedFormForOtherDims) {
  const auto fused_form = [&](std::int32_t dim, RowType type) {
    return rule().update_groups(simd_level(), optimizer(), dim, type);
  };
  for (const std::int32_t dim : {17, 48, 255, 512})
    EXPECT_EQ(fused_form(dim, RowType::kFloat32), nullptr) << dim;
  for (const std::int32_t dim : {1, 15, 17})
    EXPECT_EQ(fused_form(dim, RowType::kBfloat16), nullptr) << dim;
}

/// The files of src/optimizer, and optimizer.h, that name the rule in quotes, as a file or as an
/// entry of the list of rules, each once for each such line. Left out are tests and the names that
/// other systems have for the rule.
std::vector<std::string> places_that_name(const std::string& rule) {
  namespace fs = std::filesystem;
  const fs::path source = source_path("");
  std::vector<fs::path> files = {source / "include/embertable/optimizer.h"};
  for (const auto& file : fs::directory_iterator(source / "src/optimizer")) {
    const std::string name = file.path().filename();
    const bool test = name.ends_with("_test.cc");
    if (file.is_regular_file() && !test && name != "variants.cc") files.push_back(file.path());
  }
  std::vector<std::string> places;
  const std::regex word("(^|[^a-z_])(\"" + rule + "\"|" + rule +
                        "(_test\\.cc|\\.inl))($|[^a-z_])|^  " + rule + "\\)?$");
  for (const fs::path& path : files) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      if (std::regex_search(line, word)) places.push_back(path.filename());
    }
  }
  return places;
}

TEST_P(EveryRule, IsNamedOnlyByItsFilesAndOneLineOfTheBuild) {
  EXPECT_THAT(places_that_name(GetParam()), ElementsAre("CMakeLists.txt"));
}

}  // namespace
}  // namespace embertable
