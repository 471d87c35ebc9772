#include "kernels/gather/gather.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <span>
#include <vector>

#include "base/memory.h"
#include "testing/executor.h"
#include "testing/guarded_floats.h"
#include "testing/slow_bfloat16.h"

namespace embertable {
namespace {

/// What is gathered; the outputs go between pages that cannot be touched.
struct Case {
  std::int64_t dim = 0;
  std::vector<std::uint64_t> row;
  std::vector<std::int64_t> split;
  std::vector<float> weight, denominator;
  Grid grid = {};

  std::int64_t outputs() const {
    return split.empty() ? static_cast<std::int64_t>(row.size())
                         : static_cast<std::int64_t>(split.size()) - 1;
  }
};

template <class T>
const T* data_or_null(const std::vector<T>& values) {
  return values.empty() ? nullptr : values.data();
}

template <class Index>
std::vector<float> run_as(SimdLevel level, const GatheredRows& rows, const Case& c,
                          bool bursts = false) {
  std::vector<Index> row;
  for (const std::uint64_t r : c.row)
    row.push_back(static_cast<Index>(r) | (r >> 63 != 0 ? kReceivedBit<Index> : Index{0}));
  GuardedFloats out(c.outputs() * c.dim, -1);
  Gather<Index> args = {.rows = rows,
                        .grid = c.grid,
                        .row = row.data(),
                        .split = data_or_null(c.split),
                        .weight = data_or_null(c.weight),
                        .denominator = data_or_null(c.denominator),
                        .out = out.data(),
                        .first = 0,
                        .last = c.outputs() / 3};
  args.bursts = bursts;
  args.next = {rows, row.data(), sizeof(Index) == 8, static_cast<std::int64_t>(row.size())};
  gather(args, level);
  args.next = {};
  args.first = args.last;
  args.last = c.outputs();
  args.outputs_ahead = true;
  gather(args, level);
  return {out.begin(), out.end()};
}

std::vector<float> run(SimdLevel level, const GatheredRows& rows, const Case& c) {
  if (rows.type == RowType::kInt8) return run_as<std::uint64_t>(level, rows, c);
  const std::vector<float> narrow = run_as<std::uint32_t>(level, rows, c),
                           wide = run_as<std::uint64_t>(level, rows, c),
                           bursts = run_as<std::uint32_t>(level, rows, c, true);
  EXPECT_EQ(std::memcmp(narrow.data(), wide.data(), narrow.size() * sizeof(float)), 0);
  EXPECT_EQ(std::memcmp(narrow.data(), bursts.data(), narrow.size() * sizeof(float)), 0);
  return narrow;
}

/// What x counts as. Float: in the promised operations.
template <class Float>
Float looked_up(Float x, const Grid& grid) {
  if (grid.step == 0 || std::isnan(x)) return x;
  const Float lower = grid.lower, upper = grid.upper, step = grid.step;
  const Float inside = std::min(std::max(x, lower), upper);
  const Float steps = std::floor((inside - lower) / step + Float{0.5});
  const Float distance = steps * step;
  return distance + lower;
}

/// Number `column` of a row that starts `first` elements behind.
float number_at(const GatheredRows& rows, const void* elements, std::int64_t first,
                std::int64_t column) {
  if (rows.type == RowType::kFloat32) return static_cast<const float*>(elements)[first + column];
  if (rows.type == RowType::kBfloat16) {
    const std::uint32_t bits = static_cast<const std::uint16_t*>(elements)[first + column];
    return slow::float_of(bits << 16);
  }
  const std::uint8_t* row = static_cast<const std::uint8_t*>(elements) + first;
  float by[2];  // scale, offset
  std::memcpy(by, row + rows.dim, sizeof(by));
  const float scaled = static_cast<float>(row[column]) * by[0];
  return scaled + by[1];
}

/// One float at a time, in the promised order.
template <class Float>
std::vector<Float> slowly(const GatheredRows& rows, const Case& c) {
  std::vector<Float> out;
  for (std::int64_t i = 0; i < c.outputs(); ++i) {
    const auto s = static_cast<std::size_t>(i);
    const std::int64_t begin = c.split.empty() ? i : c.split[s],
                       end = c.split.empty() ? i + 1 : c.split[s + 1];
    for (std::int64_t column = 0; column < c.dim; ++column) {
      Float sum = 0;
      for (std::int64_t j = begin; j < end; ++j) {
        const std::uint64_t r = c.row[j];
        const std::uint64_t number = r << 1 >> 1;
        Float x = r >> 63 != 0 ? number_at(rows, rows.received,
                                           static_cast<std::int64_t>(number) * c.dim, column)
                               : number_at(rows, rows.table,
                                           static_cast<std::int64_t>(number) * rows.stride, column);
        x = looked_up(x, c.grid);
        if (!c.weight.empty()) x = static_cast<Float>(c.weight[j]) * x;
        sum = j == begin ? x : sum + x;
      }
      if (begin < end && !c.denominator.empty()) {
        const Float d = c.denominator[s];
        sum = d == 0 ? Float{0} : sum / d;
      }
      out.push_back(sum);
    }
  }
  return out;
}

/// The table's last row ends where a page begins that cannot be read.
struct Table {
  Table(std::int64_t num_rows, std::int64_t dim, std::int64_t gap)
      : floats((num_rows - 1) * (dim + gap) + dim), received(num_rows * dim) {
    std::mt19937 random(test_seed(7));
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < floats.size(); ++i) floats[i] = normal(random);
    for (std::int64_t i = 0; i < received.size(); ++i) received[i] = normal(random);
    rows = {floats.data(), dim + gap, received.data(), dim};
  }
  GuardedFloats floats, received;
  GatheredRows rows;
};

/// The same of halves, or of bytes with scale and offset behind each row. What lies behind the last
/// row is not to be read: sanitizers see it.
struct NarrowTable {
  NarrowTable(RowType type, std::int64_t num_rows, std::int64_t dim, std::int64_t gap) {
    std::mt19937 random(test_seed(9));
    std::normal_distribution<float> normal;
    const bool half = type == RowType::kBfloat16;
    const std::int64_t stride = half ? dim + gap : dim + 8 + gap;
    if (half) {
      const std::int64_t count = (num_rows - 1) * stride + dim;
      halves.reset(new (std::align_val_t{64}) std::uint16_t[count]);
      received.resize(num_rows * dim);
      for (const std::span<std::uint16_t> all :
           {std::span(halves.get(), static_cast<std::size_t>(count)), std::span(received)})
        for (std::uint16_t& x : all)
          x = static_cast<std::uint16_t>(slow::bits_of(normal(random)) >> 16);
      rows = {halves.get(), stride, received.data(), dim, type};
      return;
    }
    bytes.resize((num_rows - 1) * stride + dim + 8);
    for (std::uint8_t& x : bytes) x = static_cast<std::uint8_t>(random());
    for (std::int64_t r = 0; r < num_rows; ++r) {
      const float by[2] = {normal(random), normal(random)};
      std::memcpy(bytes.data() + r * stride + dim, by, sizeof(by));
    }
    rows = {bytes.data(), stride, nullptr, dim, type};
  }
  struct Delete {
    void operator()(std::uint16_t* memory) const {
      ::operator delete[](memory, std::align_val_t{64});
    }
  };
  std::unique_ptr<std::uint16_t[], Delete> halves;  ///< from the border of a cache line on
  std::vector<std::uint16_t> received;
  std::vector<std::uint8_t> bytes;
  GatheredRows rows;
};

Case bags(std::int64_t dim, std::int64_t num_rows, bool received) {
  std::mt19937 random(test_seed(static_cast<std::uint64_t>(dim)));
  Case c = {.dim = dim, .split = {0}};
  for (std::int64_t i = 0; i < 37; ++i) {
    for (unsigned n = random() % 5; n > 0; --n) {
      const bool remote = received && random() % 2 == 0;
      c.row.push_back(random() % static_cast<unsigned>(num_rows) |
                      (remote ? std::uint64_t{1} << 63 : 0));
    }
    c.split.push_back(static_cast<std::int64_t>(c.row.size()));
  }
  return c;
}

void expect_these_bits(const GatheredRows& rows, const Case& c, const std::vector<float>& want,
                       const std::vector<double>& exact) {
  for (const SimdLevel level : usable_levels()) {
    const std::vector<float> got = run(level, rows, c);
    ASSERT_EQ(got.size(), want.size());
    EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(float)), 0)
        << to_string(level) << " dim " << c.dim
        << (rows.received == nullptr ? ", none received" : "");
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], exact[i], 2e-5 * std::max(1.0, std::fabs(exact[i])));
  }
}

/// Where no row was received also without a place for such.
void expect_promised_bits(const GatheredRows& rows, const Case& c) {
  const std::vector<float> want = slowly<float>(rows, c);
  const std::vector<double> exact = slowly<double>(rows, c);
  expect_these_bits(rows, c, want, exact);
  if (std::any_of(c.row.begin(), c.row.end(), [](std::uint64_t r) { return r >> 63 != 0; })) return;
  GatheredRows local = rows;
  local.received = nullptr;
  expect_these_bits(local, c, want, exact);
}

std::vector<std::int64_t> edge_dims() {
  std::vector<std::int64_t> dims;
  for (std::int64_t dim = 1; dim <= 70; ++dim) dims.push_back(dim);
  dims.insert(dims.end(), {96, 127, 128, 129, 256, 257, 400, 1000});
  return dims;
}

TEST(Gather, AddsTwoRowsAndSkipsAnEmptySample) {
  GuardedFloats table(6);
  const float values[] = {1, 2, 10, 20, 100, 200};
  std::copy(values, values + 6, table.data());
  const GatheredRows rows = {table.data(), 2, nullptr, 2};
  for (const SimdLevel level : usable_levels()) {
    EXPECT_EQ(run(level, rows,
                  {.dim = 2, .row = {0, 2, 2}, .split = {0, 2, 2, 3}, .weight = {1, 1, 0.5f}}),
              (std::vector<float>{101, 202, 0, 0, 50, 100}));
    EXPECT_EQ(
        run(level, rows, {.dim = 2, .row = {0, 1, 2}, .split = {0, 2, 3}, .denominator = {2, 0}}),
        (std::vector<float>{5.5f, 11, 0, 0}));
    EXPECT_EQ(run(level, rows, {.dim = 2, .row = {2, 0}}), (std::vector<float>{100, 200, 1, 2}));
    EXPECT_EQ(run(level, rows, {.dim = 2, .row = {2, 0}, .denominator = {4, 0}}),
              (std::vector<float>{25, 50, 0, 0}));
  }
}

TEST(Gather, GivesThePromisedBitsForEveryDim) {
  for (const std::int64_t dim : edge_dims())
    for (const std::int64_t gap : {0, 3, 16}) {
      const Table table(50, dim, gap);
      Case c = bags(dim, 50, gap == 3);
      expect_promised_bits(table.rows, c);
      c.denominator.assign(37, 3);
      c.denominator[5] = 0;
      expect_promised_bits(table.rows, c);
      c.weight.assign(c.row.size(), 0.3f);
      expect_promised_bits(table.rows, c);
      c.denominator.clear();
      expect_promised_bits(table.rows, c);
      c.split.clear();
      expect_promised_bits(table.rows, c);
      c.weight.clear();
      expect_promised_bits(table.rows, c);
    }
}

TEST(Gather, GivesThePromisedBitsOfNarrowRowsForEveryDim) {
  for (const RowType type : {RowType::kBfloat16, RowType::kInt8})
    for (const std::int64_t dim : edge_dims())
      for (const std::int64_t gap : {0, 3}) {
        const NarrowTable table(type, 50, dim, gap);
        Case c = bags(dim, 50, gap == 3 && type == RowType::kBfloat16);
        const auto expect_bits = [&] {
          const std::vector<float> want = slowly<float>(table.rows, c);
          GatheredRows local = table.rows, far = table.rows;
          local.received = far.received = nullptr;
          far.to_level2 = true;
          for (const GatheredRows& rows : {table.rows, local, far}) {
            if (rows.received != table.rows.received && gap == 3) continue;  // some were received
            for (const SimdLevel level : usable_levels()) {
              const std::vector<float> got = run(level, rows, c);
              ASSERT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(float)), 0)
                  << to_string(type) << ' ' << to_string(level) << " dim " << dim;
            }
          }
        };
        expect_bits();
        c.denominator.assign(37, 3);
        expect_bits();
        c.weight.assign(c.row.size(), 0.3f);
        c.grid = {-1, 1, 0.5f};
        expect_bits();
        c.grid = {};
        c.denominator.clear();
        expect_bits();
        c.split.clear();
        c.weight.clear();
        expect_bits();
      }
}

TEST(Gather, WritesTheSameCopiesPastTheCaches) {
  for (const std::int64_t dim : {7, 16, 48, 64, 256, 272}) {
    const Table table(50, dim, 0);
    const std::vector<std::uint64_t> number = {49, 0, 7, 7, 12};
    const std::int64_t outputs = std::ssize(number);
    for (const SimdLevel level : usable_levels()) {
      for (const std::int64_t shift : {0, 1, 16}) {
        Mapping memory((outputs * dim + shift) * 4);
        float* out = reinterpret_cast<float*>(memory.data()) + shift;
        gather<std::uint64_t>({.rows = table.rows,
                               .row = number.data(),
                               .out = out,
                               .last = outputs,
                               .streams = true},
                              level);
        EXPECT_EQ(std::vector<float>(out, out + outputs * dim),
                  run(level, table.rows, {.dim = dim, .row = number}));
      }
    }
  }
}

/// `number` ends where its allocation does: sanitizers see a read of one more.
template <class Number>
SoonGathered soon(const GatheredRows& rows, const std::vector<Number>& number) {
  return {rows, number.data(), sizeof(Number) == 8, static_cast<std::int64_t>(number.size())};
}

TEST(Gather, GivesTheSameBitsWhateverComesNext) {
  for (const std::int64_t dim : {3, 16, 64, 256}) {
    const Table table(50, dim, 0), other(50, 48, 16);
    GatheredRows local = table.rows;
    local.received = nullptr;
    const Case c = bags(dim, 50, false);
    const std::vector<std::uint32_t> row(c.row.begin(), c.row.end());
    const auto gathered = [&]<class Index>(const GatheredRows& rows,
                                           const std::vector<Index>& number,
                                           const SoonGathered& next, SimdLevel level) {
      std::vector<float> out(c.outputs() * dim, -1);
      gather<Index>({.rows = rows,
                     .row = number.data(),
                     .split = c.split.data(),
                     .out = out.data(),
                     .first = 0,
                     .last = c.outputs(),
                     .next = next},
                    level);
      return out;
    };
    for (const std::size_t numbers : {1u, 40u, 200u}) {
      const std::vector<std::uint32_t> narrow(numbers, 49);
      const std::vector<std::uint64_t> wide(numbers, 49);
      for (const SoonGathered& next :
           {SoonGathered{}, soon(table.rows, narrow), soon(table.rows, wide), soon(local, narrow),
            soon(other.rows, narrow), soon(other.rows, wide)}) {
        for (const SimdLevel level : usable_levels()) {
          const std::vector<float> want = run(level, table.rows, c);
          for (const GatheredRows& rows : {table.rows, local}) {
            EXPECT_EQ(gathered(rows, row, next, level), want);
            EXPECT_EQ(gathered(rows, c.row, next, level), want);
          }
        }
      }
    }
  }
}

/// A table of one row of these numbers, each looked up on a grid.
std::vector<float> on_grid(SimdLevel level, const std::vector<float>& numbers, const Grid& grid) {
  GuardedFloats table(static_cast<std::int64_t>(numbers.size()));
  std::copy(numbers.begin(), numbers.end(), table.data());
  const auto dim = static_cast<std::int64_t>(numbers.size());
  return run(level, {table.data(), dim, nullptr, dim}, {.dim = dim, .row = {0}, .grid = grid});
}

TEST(Gather, CountsANumberAsTheNearestOfAGridTiesGoingUp) {
  const float inf = INFINITY;
  for (const SimdLevel level : usable_levels()) {
    EXPECT_EQ(on_grid(level, {-2, -0.75f, 0.2f, 0.25f, 0.9f, 5}, {-1, 1, 0.5f}),
              (std::vector<float>{-1, -0.5f, 0, 0.5f, 1, 1}));
    EXPECT_EQ(on_grid(level, {-0.01f, 0, -1, 1}, {-1, 1, 2}), (std::vector<float>{-1, 1, -1, 1}));
    EXPECT_EQ(on_grid(level, {3.4f, 3.5f, 12, -1, inf, -inf}, {0, 10, 1}),
              (std::vector<float>{3, 4, 10, 0, 10, 0}));
    EXPECT_EQ(on_grid(level, {1.5f, -4194303.5f, 9e6f}, {-4194304, 4194303, 1}),
              (std::vector<float>{2, -4194303, 4194303}));
    const std::vector<float> nan = on_grid(level, {NAN, 0.2f}, {-1, 1, 0.5f});
    EXPECT_TRUE(std::isnan(nan[0]));
    EXPECT_EQ(nan[1], 0);
  }
}

TEST(Gather, AddsWhatNumbersCountAsBeforeWeights) {
  GuardedFloats table(3, 0.2f);
  const GatheredRows rows = {table.data(), 1, nullptr, 1};
  for (const SimdLevel level : usable_levels()) {
    EXPECT_EQ(run(level, rows,
                  {.dim = 1,
                   .row = {0, 1, 2, 0},
                   .split = {0, 2, 3, 4},
                   .weight = {1, 1, 3, 0.5f},
                   .denominator = {1, 3, 1},
                   .grid = {0.1f, 1.1f, 0.5f}}),
              (std::vector<float>{0.2f, 0.1f * 3 / 3, 0.05f}));
  }
}

TEST(Gather, GivesThePromisedBitsOnGridsForEveryDim) {
  for (const std::int64_t dim : edge_dims()) {
    const Table table(50, dim, 3);
    for (const Grid& grid : {Grid{-1, 1, 0.5f}, Grid{-0.7f, 2.3f, 3.0f / 254},
                             Grid{-3, 3, 6.0f / 16777216}, Grid{0.1f, 0.2f, 0.1f}}) {
      Case c = bags(dim, 50, true);
      c.grid = grid;
      const auto expect_bits = [&] {
        const std::vector<float> want = slowly<float>(table.rows, c);
        for (const SimdLevel level : usable_levels()) {
          const std::vector<float> got = run(level, table.rows, c);
          ASSERT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(float)), 0)
              << to_string(level) << " dim " << dim << " step " << grid.step;
        }
      };
      expect_bits();
      c.weight.assign(c.row.size(), 0.3f);
      c.denominator.assign(37, 3);
      expect_bits();
      c.split.clear();
      c.denominator.clear();
      expect_bits();
      c.weight.clear();
      expect_bits();
    }
  }
}

/// Numbers that are not so near a tie that binary32 takes the other side.
TEST(Gather, AgreesWithGridsInDouble) {
  const Table table(200, 64, 0);
  for (const Grid& grid : {Grid{-1, 1, 0.5f}, Grid{-0.7f, 2.3f, 3.0f / 254}}) {
    Case c = {.dim = 64};
    for (std::uint64_t r = 0; r < 200; ++r) c.row.push_back(r);
    c.grid = grid;
    const std::vector<double> exact = slowly<double>(table.rows, c);
    for (const SimdLevel level : usable_levels()) {
      const std::vector<float> got = run(level, table.rows, c);
      std::size_t ties = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        const double x = number_at(table.rows, table.rows.table, static_cast<std::int64_t>(i), 0);
        const double steps = (x - double{grid.lower}) / double{grid.step} + 0.5;
        if (std::fabs(steps - std::round(steps)) < 1e-3) {
          ++ties;
          continue;
        }
        ASSERT_NEAR(got[i], exact[i], 1e-6) << x;
      }
      EXPECT_LT(ties, got.size() / 100);
    }
  }
}

TEST(Gather, AddsTenThousandRowsLeftToRight) {
  for (const std::int64_t dim : {1, 17, 64}) {
    const Table table(300, dim, 0);
    Case c = {.dim = dim, .split = {0, 0, 10000, 10001}};
    for (std::uint64_t j = 0; j < 10001; ++j) c.row.push_back(j * j % 299);
    const std::vector<float> want = slowly<float>(table.rows, c);
    for (const SimdLevel level : usable_levels()) EXPECT_EQ(run(level, table.rows, c), want);
  }
}

TEST(Gather, KeepsMinusZeroOfASingleRow) {
  for (const std::int64_t dim : {1, 16, 64, 70}) {
    GuardedFloats table(dim, -0.0f);
    const GatheredRows rows = {table.data(), dim, nullptr, dim};
    for (const SimdLevel level : usable_levels())
      for (const Case& c :
           {Case{.dim = dim, .row = {0}}, Case{.dim = dim, .row = {0}, .split = {0, 1}},
            Case{.dim = dim, .row = {0, 0}, .split = {0, 2}, .denominator = {2}}})
        for (const float x : run(level, rows, c)) EXPECT_TRUE(x == 0 && std::signbit(x));
  }
}

}  // namespace
}  // namespace embertable
