// Rows and slots after steps that other programs computed: testdata/README.md.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "embertable/optimizer.h"
#include "testing/rule_rows.h"
#include "testing/source_path.h"

namespace embertable {
namespace {

using Floats = std::vector<float>;
using Json = nlohmann::json;

Json cases() {
  std::ifstream file(source_path("src/optimizer/testdata/optimizer_cases.json"));
  return Json::parse(file);
}

Setting setting(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_string()) return value.get<std::string>();
  return value.get<double>();
}

std::optional<double> limit(const Json& options, const std::string& name, std::size_t side) {
  if (!options.contains(name) || options[name][side].is_null()) return std::nullopt;
  return options[name][side].get<double>();
}

OptimizerOptions options(const Json& options) {
  return {.clip_gradient_min = limit(options, "clip_gradient", 0),
          .clip_gradient_max = limit(options, "clip_gradient", 1),
          .weight_decay_factor = options.value("decay", 0.0),
          .multiply_weight_decay_factor_by_learning_rate = options.value("decay_by_rate", false),
          .clip_weight_min = limit(options, "clip_weight", 0),
          .clip_weight_max = limit(options, "clip_weight", 1),
          .use_gradient_accumulation = options.value("accumulate", true)};
}

using Inputs = std::span<const float>;
using Outputs = std::span<float>;

/// The program whose first output is the row that this expression says.
CustomRule::Elements program(const std::string& row) {
  static const std::map<std::string, CustomRule::Elements> kPrograms = {
      {"w - x * g", [](Inputs in, Outputs out) { out[0] = in[1] - in[2] * in[0]; }},
      {"w - x * g / sqrt(s0 + g * g)",
       [](Inputs in, Outputs out) {
         out[1] = in[2] + in[0] * in[0];
         out[0] = in[1] - in[3] * in[0] / std::sqrt(out[1]);
       }},
      {"w - 0.1 * (s0 * 0.9 + g)", [](Inputs in, Outputs out) {
         out[1] = in[2] * 0.9f + in[0];
         out[0] = in[1] - 0.1f * out[1];
         out[2] = in[3] + 1;
       }}};
  return kPrograms.at(row);
}

Optimizer optimizer(const Json& test) {
  const Json& given = test["parameters"];
  if (test["rule"] == "user_defined_program") {
    const auto outputs = static_cast<std::int32_t>(given["program_outputs"].size());
    return user_defined_program(outputs + (given["has_scalar_input"].get<bool>() ? 2 : 1), outputs,
                                program(given["program_outputs"][0].get<std::string>()), 0.1, {},
                                options(test["options"]));
  }
  Optimizer::Settings parameters;
  for (const auto& [name, value] : given.items()) parameters.emplace_back(name, setting(value));
  return Optimizer(test["rule"].get<std::string>(), 0.1, parameters, options(test["options"]));
}

TestedRows start(const Json& test) {
  const auto rows = test["rows"].get<std::vector<Floats>>();
  TestedRows table(optimizer(test), static_cast<std::int64_t>(rows.size()),
                   static_cast<std::int32_t>(rows[0].size()));
  EXPECT_EQ(static_cast<std::size_t>(table.num_slots()), test["slots"].size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto row = static_cast<std::int64_t>(r);
    std::ranges::copy(rows[r], table.row(row));
    for (std::int32_t s = 0; s < table.num_slots(); ++s) {
      const auto values = test["slots"].at(table.slot_name(s))[r].get<Floats>();
      EXPECT_EQ(values.size(), static_cast<std::size_t>(table.slot_width(s)));
      std::ranges::copy(values, table.slot(s, row));
    }
  }
  return table;
}

using Sums = std::map<std::int64_t, Floats>;

/// Each sum starts with its first term.
void add(Sums& sums, std::int64_t row, const Floats& gradient) {
  const auto [at, first] = sums.try_emplace(row, gradient);
  if (!first) std::ranges::transform(at->second, gradient, at->second.begin(), std::plus{});
}

/// A step whose entries are summed, or each a step of its own.
class GoldenStep {
 public:
  GoldenStep(TestedRows& table, const Json& now, std::int64_t number, SimdLevel level)
      : table_(table), replicas_(now["replicas"]), level_(level) {
    inputs_.learning_rate = now["rate"].get<float>();
    inputs_.step = now.value("step", number);
    inputs_.step_counter = now.value("step_counter", static_cast<float>(number));
  }

  void run() {
    if (!table_.optimizer().options().use_gradient_accumulation) return apply_entries();
    Sums sums;
    for (const Json& replica : replicas_) {
      Sums replica_sums;
      for (const auto& [row, gradient] : entries(replica)) add(replica_sums, row, gradient);
      for (const auto& [row, gradient] : replica_sums) add(sums, row, gradient);
    }
    if (rule_of(table_.optimizer()).steps_every_row(table_.optimizer())) {
      const Floats zeros(table_.dim());
      for (std::int64_t row = 0; row < table_.rows(); ++row) sums.try_emplace(row, zeros);
    }
    apply(sums);
  }

 private:
  static std::vector<std::pair<std::int64_t, Floats>> entries(const Json& replica) {
    std::vector<std::pair<std::int64_t, Floats>> entries;
    for (std::size_t i = 0; i < replica["ids"].size(); ++i) {
      entries.emplace_back(replica["ids"][i].get<std::int64_t>(),
                           replica["gradients"][i].get<Floats>());
    }
    return entries;
  }

  void apply_entries() {
    for (const Json& replica : replicas_) {
      for (const auto& [row, gradient] : entries(replica)) apply({{row, gradient}});
    }
  }

  void apply(const Sums& sums) {
    std::vector<std::int64_t> rows;
    std::vector<Floats> gradients;
    for (const auto& [row, gradient] : sums) {
      rows.push_back(row);
      gradients.push_back(gradient);
    }
    table_.update(level_, rows, gradients, inputs_);
  }

  TestedRows& table_;
  const Json& replicas_;
  SimdLevel level_;
  StepInputs inputs_;
};

/// "3f800000c0066666" as two numbers.
std::vector<std::uint32_t> bits(const std::string& hex) {
  std::vector<std::uint32_t> values;
  for (std::size_t i = 0; i < hex.size(); i += 8)
    values.push_back(static_cast<std::uint32_t>(std::stoul(hex.substr(i, 8), nullptr, 16)));
  return values;
}

std::vector<std::uint32_t> bits(const Floats& values) {
  std::vector<std::uint32_t> all;
  for (const float x : values) all.push_back(std::bit_cast<std::uint32_t>(x));
  return all;
}

struct Counts {
  int rows_to_the_bit = 0;
  int rows_within_tolerance = 0;
};

/// What a case wants after some of its steps.
class Expected {
 public:
  Expected(const Json& want, const Json& tolerance, Counts& counts)
      : want_(want),
        rtol_(tolerance["rtol"].get<double>()),
        atol_(tolerance["atol"].get<double>()),
        counts_(counts) {}

  void compare(TestedRows& table) {
    const std::string as = want_.contains("rows_f32") ? "_f32" : "";
    const Json &rows = want_["rows" + as], &slots = want_["slots" + as];
    ASSERT_EQ(rows.size(), static_cast<std::size_t>(table.rows()));
    for (std::int64_t r = 0; r < table.rows(); ++r) {
      const auto i = static_cast<std::size_t>(r);
      as.empty() ? ++counts_.rows_within_tolerance : ++counts_.rows_to_the_bit;
      compare(table.row_values(r), rows[i], "row " + std::to_string(r));
      for (std::int32_t s = 0; s < table.num_slots(); ++s) {
        const std::string name = table.slot_name(s);
        compare(table.slot_values(s, r), slots.at(name)[i], name + " " + std::to_string(r));
      }
    }
  }

 private:
  void compare(const Floats& got, const Json& want, const std::string& what) const {
    if (want.is_string()) {
      EXPECT_EQ(bits(got), bits(want.get<std::string>())) << what;
      return;
    }
    ASSERT_EQ(got.size(), want.size()) << what;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const auto near = want[i].get<double>();
      EXPECT_NEAR(got[i], near, atol_ + rtol_ * std::abs(near)) << what << ", column " << i;
    }
  }

  const Json& want_;
  double rtol_, atol_;
  Counts& counts_;
};

void run(const Json& test, SimdLevel level, Counts& counts) {
  TestedRows table = start(test);
  std::int64_t done = 0;
  for (const Json& want : test["expected"]) {
    for (; done < want["after"].get<std::int64_t>(); ++done) {
      const Json& now = test["steps"][done];
      GoldenStep(table, now, done + 1, level).run();
    }
    Expected(want, test["tolerance"], counts).compare(table);
  }
}

TEST(OptimizerCase, 78_RowsAndSlotsAreWhatOthersComputed) {
  const Json all = cases();
  EXPECT_EQ(all.size(), 127u + 268);
  for (const SimdLevel level : usable_levels()) {
    Counts counts;
    for (const Json& test : all) {
      SCOPED_TRACE(test["id"].get<std::string>() + " " + std::string(to_string(level)));
      run(test, level, counts);
    }
    EXPECT_GT(counts.rows_to_the_bit, 1000);
    EXPECT_GT(counts.rows_within_tolerance, 250);
  }
}

}  // namespace
}  // namespace embertable
