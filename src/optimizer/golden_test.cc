// Rows and slots after steps that other programs computed: testdata/README.md.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "optimizer/tested_rows.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;
using Json = nlohmann::json;

Json cases() {
  std::ifstream file(EMBERTABLE_SOURCE_DIR "/src/optimizer/testdata/optimizer_cases.json");
  return Json::parse(file);
}

Optimizer optimizer(const Json& test) {
  Optimizer::Settings parameters;
  for (const auto& [name, value] : test["parameters"].items())
    parameters.emplace_back(name, value.get<double>());
  return Optimizer(test["rule"].get<std::string>(), 0.1, parameters);
}

TestedRows start(const Json& test) {
  const auto rows = test["rows"].get<std::vector<Floats>>();
  TestedRows table(optimizer(test), static_cast<std::int64_t>(rows.size()),
                   static_cast<std::int32_t>(rows[0].size()));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto row = static_cast<std::int64_t>(r);
    std::ranges::copy(rows[r], table.row(row));
    for (std::int32_t s = 0; s < table.num_slots(); ++s) {
      std::ranges::copy(test["slots"][table.slot_name(s)][r].get<Floats>(), table.slot(s, row));
    }
  }
  return table;
}

/// Each sum starts with its first term.
void add(std::map<std::int64_t, Floats>& sums, std::int64_t row, const Floats& gradient) {
  const auto [at, first] = sums.try_emplace(row, gradient);
  if (!first) std::ranges::transform(at->second, gradient, at->second.begin(), std::plus{});
}

void clip(TestedRows& table, std::int64_t row, const Json& limits) {
  for (float* x = table.row(row); x != table.row(row) + table.dim(); ++x) {
    if (!limits[0].is_null()) *x = std::max(*x, limits[0].get<float>());
    if (!limits[1].is_null()) *x = std::min(*x, limits[1].get<float>());
  }
}

void step(TestedRows& table, const Json& test, std::size_t index, SimdLevel level) {
  const Json& now = test["steps"][index];
  const auto apply = [&](std::int64_t row, const Floats& gradient) {
    table.update(level, {row}, {gradient}, now["learning_rate"].get<float>(),
                 static_cast<std::int64_t>(index) + 1);
    clip(table, row, test["clip_weight"]);
  };
  std::map<std::int64_t, Floats> sums;
  for (const Json& replica : now["replicas"]) {
    std::map<std::int64_t, Floats> replica_sums;
    for (std::size_t i = 0; i < replica["ids"].size(); ++i) {
      const auto row = replica["ids"][i].get<std::int64_t>();
      const auto gradient = replica["gradients"][i].get<Floats>();
      test["accumulate"].get<bool>() ? add(replica_sums, row, gradient) : apply(row, gradient);
    }
    for (const auto& [row, gradient] : replica_sums) add(sums, row, gradient);
  }
  for (const auto& [row, gradient] : sums) apply(row, gradient);
}

/// "3f800000c0066666" as two numbers.
Floats from_bits(const std::string& hex) {
  Floats values;
  for (std::size_t i = 0; i < hex.size(); i += 8) {
    const auto bits = static_cast<std::uint32_t>(std::stoul(hex.substr(i, 8), nullptr, 16));
    values.push_back(std::bit_cast<float>(bits));
  }
  return values;
}

bool same_bits(const Floats& a, const Floats& b) {
  return std::ranges::equal(a, b, {}, std::bit_cast<std::uint32_t, float>,
                            std::bit_cast<std::uint32_t, float>);
}

struct Counts {
  int within_tolerance = 0;
  int to_the_bit = 0;
};

void expect_row(const Floats& got, const Json& near, const Json& bits, const Json& tolerance,
                Counts& counts) {
  const double rtol = tolerance["rtol"].get<double>(), atol = tolerance["atol"].get<double>();
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], near[i].get<double>(), atol + rtol * std::abs(near[i].get<double>()));
  }
  ++counts.within_tolerance;
  if (bits.is_null()) return;
  EXPECT_TRUE(same_bits(got, from_bits(bits.get<std::string>())));
  ++counts.to_the_bit;
}

void expect_table(TestedRows& table, const Json& want, const Json& tolerance, Counts& counts) {
  const Json row_bits = want.value("rows_f32", Json()), slot_bits = want.value("slots_f32", Json());
  for (std::size_t r = 0; r < want["rows"].size(); ++r) {
    const auto row = static_cast<std::int64_t>(r);
    expect_row(table.row_values(row), want["rows"][r], row_bits.is_null() ? Json() : row_bits[r],
               tolerance, counts);
    for (std::int32_t s = 0; s < table.num_slots(); ++s) {
      const std::string name = table.slot_name(s);
      expect_row(table.slot_values(s, row), want["slots"][name][r],
                 slot_bits.is_null() ? Json() : slot_bits[name][r], tolerance, counts);
    }
  }
}

TEST(Golden, RowsAndSlotsAreWhatOthersComputed) {
  for (const SimdLevel level : usable_levels()) {
    Counts counts;
    for (const Json& test : cases()) {
      SCOPED_TRACE(test["id"].get<std::string>() + " " + std::string(to_string(level)));
      TestedRows table = start(test);
      std::size_t done = 0;
      for (const Json& want : test["expected"]) {
        while (done < want["after_step"].get<std::size_t>()) step(table, test, done++, level);
        expect_table(table, want, test["tolerance"], counts);
      }
    }
    EXPECT_GT(counts.to_the_bit, 100);
    EXPECT_GT(counts.within_tolerance, counts.to_the_bit);
  }
}

}  // namespace
}  // namespace embertable
