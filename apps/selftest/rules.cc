// Checks the rules with published vectors, and with random programs against a reference.

#include <algorithm>
#include <exception>
#include <map>

#include "apps/selftest/comparison.h"
#include "apps/selftest/references.h"
#include "apps/selftest/table.h"
#include "base/random.h"
#include "embertable/errors.h"
#include "optimizer/rule.h"

namespace embertable::selftest {
namespace {

// Tolerance of a program in binary32 against one in double.
constexpr double kRelative = 5e-5;
constexpr double kAbsolute = 5e-6;

constexpr std::int32_t kDims[] = {1, 5, 37, 64};
constexpr std::int64_t kRows = 40;
constexpr std::int32_t kSamples = 96;
constexpr std::int32_t kSteps = 6;

std::vector<std::uint32_t> from_hex(const std::string& text) {
  std::vector<std::uint32_t> bits;
  for (std::size_t i = 0; i + 8 <= text.size(); i += 8)
    bits.push_back(static_cast<std::uint32_t>(std::stoul(text.substr(i, 8), nullptr, 16)));
  return bits;
}

/// Entries of a step of a vector: row 0 for each gradient, and otherwise row 1 with zeros, so that
/// every step has a batch.
struct Entries {
  std::vector<std::int64_t> ids;
  std::vector<float> gradients;

  Entries(const GoldenVector::Step& step, const Table::Shape& shape)
      : ids(static_cast<std::size_t>(shape.samples), 1),
        gradients(ids.size() * static_cast<std::size_t>(shape.dim)) {
    for (std::size_t i = 0; i < step.gradients.size(); ++i) {
      ids[i] = 0;
      std::ranges::copy(step.gradients[i], gradients.begin() + static_cast<std::ptrdiff_t>(i) *
                                                                   std::ptrdiff_t{shape.dim});
    }
  }
};

/// Returns -1 if the table has no such variable.
std::int32_t find_variable(const Table& table, const std::string& name) {
  for (std::int32_t v = 0; v < table.variables(); ++v)
    if (table.name(v) == name) return v;
  return -1;
}

void check_vector(Line& line, const GoldenVector& vector, SimdLevel level) {
  Table::Shape shape = {
      .rows = 2, .dim = static_cast<std::int32_t>(vector.start[0].size()), .samples = 1};
  bool counted = false;
  for (std::size_t n = 0; n < vector.steps.size(); ++n) {
    const GoldenVector::Step& step = vector.steps[n];
    shape.samples = std::max(shape.samples, static_cast<std::int32_t>(step.gradients.size()) + 1);
    counted = counted || step.step_counter != static_cast<double>(n + 1);
  }
  const std::string where = fmt::format("vector {} at {}", vector.id, to_string(level));
  Table table(vector.rule, vector.settings, vector.options, counted, shape);
  std::vector<std::int32_t> variables = {0};
  for (const std::string& slot : vector.slots) {
    variables.push_back(find_variable(table, slot));
    if (variables.back() < 0)
      return Comparison(line, where, 0, 0).fail("the rule has no slot '" + slot + "'");
  }
  for (std::size_t v = 0; v < variables.size(); ++v) table.assign(variables[v], 0, vector.start[v]);
  for (std::size_t n = 0; n < vector.steps.size(); ++n) {
    const GoldenVector::Step& step = vector.steps[n];
    const Entries entries(step, shape);
    table.step({step.learning_rate, step.step_counter}, entries.ids, entries.gradients);
    Comparison compare(line, fmt::format("{}, step {}", where, n + 1), vector.rtol, vector.atol);
    for (std::size_t v = 0; v < variables.size(); ++v) {
      const std::string& name = table.name(variables[v]);
      const std::vector<float> got = table.read(variables[v]);
      for (std::size_t i = 0; i < step.expected[v].size(); ++i)
        compare.near(name, i, got[i], step.expected[v][i]);
      if (step.bits.empty()) continue;
      const std::vector<std::uint32_t> bits = from_hex(step.bits[v]);
      for (std::size_t i = 0; i < bits.size(); ++i) compare.bits(name, i, got[i], bits[i]);
    }
  }
}

/// A fixed random program: the rows that each step names, and their gradients.
struct Program {
  std::int32_t dim;
  Optimizer::Settings settings;
  OptimizerOptions options;
  std::string text;  ///< for messages

  std::vector<std::int64_t> ids(std::int32_t step) const {
    std::vector<std::int64_t> ids;
    for (std::uint64_t i = 0; i < kSamples; ++i) {
      const std::uint64_t bits = random_bits(7, static_cast<std::uint64_t>(step), i);
      ids.push_back(static_cast<std::int64_t>(uniform_below(bits, kRows - 4)));
    }
    return ids;
  }

  /// Returns multiples of 2^-24, an eighth of them zeros.
  std::vector<float> gradients(std::int32_t step) const {
    std::vector<float> values(kSamples * dim);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint64_t bits = random_bits(8, static_cast<std::uint64_t>(step), i);
      values[i] = bits % 8 == 0 ? 0 : uniform_float(bits) - 0.5f;
    }
    return values;
  }
};

/// A table in double that runs a program.
class ReferenceTable {
 public:
  explicit ReferenceTable(const Table& table) : dim_(table.shape().dim) {
    rows_.resize(kRows);
    for (std::int32_t v = 0; v < table.variables(); ++v) {
      const std::vector<float> values = table.read(v);
      const auto width = static_cast<std::size_t>(table.width(v));
      for (std::size_t r = 0; r < rows_.size(); ++r) {
        const auto first = values.begin() + static_cast<std::ptrdiff_t>(r * width);
        std::vector<double> row(first, first + static_cast<std::ptrdiff_t>(width));
        v == 0 ? rows_[r].row = std::move(row) : rows_[r].slots.emplace_back(std::move(row));
      }
    }
  }

  void step(const Reference& reference, const ReferenceStep& with, bool every_row,
            const std::vector<std::int64_t>& ids, const std::vector<float>& gradients) {
    const bool sums = with.optimizer.options().use_gradient_accumulation;
    std::map<std::int64_t, std::vector<double>> total;
    if (every_row)
      for (std::int64_t r = 0; r < kRows; ++r) total[r].resize(dim_);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      std::vector<double>& sum = total[ids[i]];
      sum.resize(dim_);
      for (std::size_t c = 0; c < dim_; ++c) sum[c] += gradients[i * dim_ + c];
      if (sums) continue;
      apply(reference, with, ids[i], sum);
      total.clear();
    }
    for (auto& [row, gradient] : total) apply(reference, with, row, gradient);
  }

  const std::vector<double>& values(std::int64_t row, std::int32_t variable) const {
    const ReferenceRow& at = rows_[row];
    return variable == 0 ? at.row : at.slots[variable - 1];
  }

 private:
  void apply(const Reference& reference, const ReferenceStep& with, std::int64_t row,
             std::vector<double>& gradient) {
    const OptimizerOptions& options = with.optimizer.options();
    ReferenceRow& at = rows_[row];
    const auto limit = [](std::vector<double>& values, const std::optional<double>& low,
                          const std::optional<double>& high) {
      for (double& x : values) {
        if (low) x = std::max(x, double{static_cast<float>(*low)});
        if (high) x = std::min(x, double{static_cast<float>(*high)});
      }
    };
    limit(gradient, options.clip_gradient_min, options.clip_gradient_max);
    double decay = static_cast<float>(options.weight_decay_factor);
    if (options.multiply_weight_decay_factor_by_learning_rate) decay *= with.learning_rate;
    for (double& w : at.row) w -= decay * w;
    reference.step(with, at, gradient);
    limit(at.row, options.clip_weight_min, options.clip_weight_max);
  }

  std::size_t dim_;
  std::vector<ReferenceRow> rows_;
};

void compare_tables(Comparison& compare, const Table& table, const ReferenceTable& reference,
                    Hasher& hasher) {
  for (std::int32_t v = 0; v < table.variables(); ++v) {
    const std::vector<float> got = table.read(v);
    hasher.update_numbers(got);
    const auto width = static_cast<std::size_t>(table.width(v));
    for (std::int64_t r = 0; r < kRows; ++r) {
      const std::vector<double>& want = reference.values(r, v);
      const std::string name = fmt::format("{} of row {}", table.name(v), r);
      for (std::size_t c = 0; c < width; ++c)
        compare.near(name, c, got[static_cast<std::size_t>(r) * width + c], want[c]);
    }
  }
}

void run_program(Line& line, const Reference& reference, const Program& program, SimdLevel level,
                 Hasher& hasher) {
  Table table(line.name, program.settings, program.options, false,
              {.rows = kRows, .dim = program.dim, .samples = kSamples});
  ReferenceTable expected(table);
  const bool every_row = find_rule(line.name).steps_every_row(table.optimizer());
  for (std::int32_t n = 1; n <= kSteps; ++n) {
    const double rate = reference.learning_rate == nullptr ? 0.05 : reference.learning_rate(n);
    table.step({rate, static_cast<double>(n)}, program.ids(n), program.gradients(n));
    const ReferenceStep with = {table.optimizer(), double{static_cast<float>(rate)},
                                static_cast<double>(n)};
    expected.step(reference, with, every_row, program.ids(n), program.gradients(n));
  }
  Comparison compare(line, fmt::format("{} at {}", program.text, to_string(level)), kRelative,
                     kAbsolute);
  compare_tables(compare, table, expected, hasher);
}

bool accepts(const std::string& rule, const OptimizerOptions& options) {
  try {
    const Optimizer optimizer(rule, 0.1, {}, options);
    return true;
  } catch (const ValueError&) {
    return false;
  }
}

bool takes_dim(const std::string& rule, std::int32_t dim) {
  try {
    find_rule(rule).check_dim(dim);
    return true;
  } catch (const ValueError&) {
    return false;
  }
}

/// Returns programs for each dim: with the defaults, with every setting of the reference, with all
/// options, and without accumulation.
std::vector<Program> programs(const std::string& rule, const Reference& reference) {
  OptimizerOptions limits = {.clip_gradient_min = -0.75,
                             .clip_gradient_max = 0.5,
                             .weight_decay_factor = 0.02,
                             .clip_weight_min = -0.875,
                             .clip_weight_max = 0.75};
  if (!accepts(rule, limits)) limits.weight_decay_factor = 0;
  const OptimizerOptions apart = {.use_gradient_accumulation = false};
  std::vector<Program> all;
  for (const std::int32_t dim : kDims) {
    if (!takes_dim(rule, dim)) continue;
    const auto text = [&](std::string_view how) { return fmt::format("dim {}, {}", dim, how); };
    all.push_back({dim, {}, {}, text("defaults")});
    for (std::size_t s = 0; s < reference.settings.size(); ++s)
      all.push_back({dim, reference.settings[s], {}, text(fmt::format("settings {}", s + 1))});
    if (accepts(rule, limits)) all.push_back({dim, {}, limits, text("limits and decay")});
    if (accepts(rule, apart)) all.push_back({dim, {}, apart, text("without accumulation")});
  }
  return all;
}

void check_level(Line& line, const std::vector<GoldenVector>& vectors, SimdLevel level) {
  const ForcedLevel forced(level);
  line.vectors = line.programs = 0;
  for (const GoldenVector& vector : vectors) {
    if (vector.rule != line.name) continue;
    check_vector(line, vector, level);
    ++line.vectors;
  }
  const Reference* reference = find_reference(line.name);
  Hasher hasher;
  if (reference != nullptr) {
    for (const Program& program : programs(line.name, *reference)) {
      run_program(line, *reference, program, level, hasher);
      ++line.programs;
    }
  }
  end_level(line, to_string(level), hasher);
}

}  // namespace

Line check_rule(const std::string& rule, const std::vector<GoldenVector>& vectors) {
  Line line{.name = rule};
  try {
    for (const SimdLevel level : usable_levels()) check_level(line, vectors, level);
    if (line.vectors == 0) line.failures.push_back(rule + ": there is no published vector");
    if (line.programs == 0) line.failures.push_back(rule + ": there is no reference");
  } catch (const std::exception& error) {
    line.failures.push_back(fmt::format("{}: {}", rule, error.what()));
  }
  return line;
}

}  // namespace embertable::selftest
