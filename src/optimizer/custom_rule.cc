#include "optimizer/custom_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/assert.h"
#include "base/bytes.h"
#include "embertable/config.h"
#include "embertable/errors.h"
#include "optimizer/callback_failure.h"

namespace embertable {
namespace {

/// Number of floats of a tile that are clipped at once.
constexpr std::int32_t kClippedFloats = TableConfig::kMaxDim;

/// Some rows of a tile.
struct TileRows {
  float* const* row;
  const float* const* gradient;
  float* const* slot[kMaxSlots];
  std::int32_t rows, dim;
};

void call_tiles(const CustomRule& rule, const CustomRule::Tiles& function, const TileRows& tile,
                const CustomStep& step) {
  const auto rows = static_cast<std::size_t>(tile.rows);
  function({.row = {tile.row, rows},
            .gradient = {tile.gradient, rows},
            .slot = {tile.slot, rule.slot_names.size()},
            .dim = tile.dim,
            .step = step});
}

void call_rows(const CustomRule& rule, const CustomRule::Rows& function, const TileRows& tile,
               const CustomStep& step) {
  const auto dim = static_cast<std::size_t>(tile.dim);
  std::span<float> slot[kMaxSlots];
  for (std::int32_t r = 0; r < tile.rows; ++r) {
    for (std::size_t s = 0; s < rule.slot_names.size(); ++s) {
      const bool row_wise = !rule.slot_dims.empty() && rule.slot_dims[s] == 1;
      slot[s] = {tile.slot[s][r], row_wise ? 1 : dim};
    }
    function({.row = {tile.row[r], dim},
              .gradient = {tile.gradient[r], dim},
              .slot = {slot, rule.slot_names.size()},
              .step = step});
  }
}

void call_elements(const CustomRule& rule, const CustomRule::Elements& function,
                   const TileRows& tile, const CustomStep& step) {
  const std::size_t slots = rule.slot_names.size();
  float input[kMaxSlots + 3], output[kMaxSlots + 1];
  input[2 + slots] = step.learning_rate;
  const std::size_t inputs = 2 + slots + (rule.rate_is_an_input ? 1 : 0);
  for (std::int32_t r = 0; r < tile.rows; ++r) {
    for (std::int32_t c = 0; c < tile.dim; ++c) {
      input[0] = tile.gradient[r][c];
      input[1] = output[0] = tile.row[r][c];
      for (std::size_t s = 0; s < slots; ++s) input[2 + s] = output[1 + s] = tile.slot[s][r][c];
      function({input, inputs}, {output, slots + 1});
      tile.row[r][c] = output[0];
      for (std::size_t s = 0; s < slots; ++s) tile.slot[s][r][c] = output[1 + s];
    }
  }
}

void call(const CustomRule& rule, const TileRows& tile, const StepScalars& scalars) {
  const CustomStep step = {.learning_rate = scalars.learning_rate,
                           .number = scalars.step,
                           .hyperparameters = {scalars.value, rule.hyperparameters.size()}};
  if (const auto* tiles = std::get_if<CustomRule::Tiles>(&rule.function))
    return call_tiles(rule, *tiles, tile, step);
  if (const auto* rows = std::get_if<CustomRule::Rows>(&rule.function))
    return call_rows(rule, *rows, tile, step);
  call_elements(rule, std::get<CustomRule::Elements>(rule.function), tile, step);
}

/// Clips in the order of operations that all rules keep: x < low ? low : x, then x > high ? high :
/// x.
float clipped(float x, float low, float high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}

void call_with_limits(const CustomRule& rule, TileRows tile, const StepScalars& step) {
  float gradients[kClippedFloats];
  const float* gradient[RowTile::kRows];
  for (std::int32_t r = 0; r < tile.rows; ++r) {
    float* g = gradients + r * tile.dim;
    gradient[r] = g;
    for (std::int32_t c = 0; c < tile.dim; ++c) {
      g[c] = clipped(tile.gradient[r][c], step.gradient_low, step.gradient_high);
      float& w = tile.row[r][c];
      if (step.decay != 0) w = w - step.decay * w;
    }
  }
  tile.gradient = gradient;
  call(rule, tile, step);
  for (std::int32_t r = 0; r < tile.rows; ++r)
    for (std::int32_t c = 0; c < tile.dim; ++c)
      tile.row[r][c] = clipped(tile.row[r][c], step.row_low, step.row_high);
}

template <bool kLimits>
void step_rows(const RowTile& tile, const StepScalars& step) noexcept {
  EMBERTABLE_ASSERT(step.failure != nullptr && step.context != nullptr);
  if (step.failure->failed()) return;
  const auto& rule = *static_cast<const CustomRule*>(step.context);
  const std::int32_t most =
      kLimits ? std::clamp(kClippedFloats / tile.dim, 1, RowTile::kRows) : RowTile::kRows;
  try {
    for (std::int32_t first = 0; first < tile.rows; first += most) {
      TileRows rows = {
          tile.row + first, tile.gradient + first, {}, std::min(most, tile.rows - first), tile.dim};
      for (std::size_t s = 0; s < rule.slot_names.size(); ++s) rows.slot[s] = tile.slot[s] + first;
      kLimits ? call_with_limits(rule, rows, step) : call(rule, rows, step);
    }
  } catch (...) {
    step.failure->keep(std::current_exception());
  }
}

constexpr RuleForms kCustomForms = {.rows = step_rows<false>, .limited_rows = step_rows<true>};
constexpr RuleSpec kCustomSpec = {.name = "custom",
                                  .default_learning_rate = 0.01,
                                  .forms = {kCustomForms, kCustomForms, kCustomForms}};

class CustomRuleOf final : public Rule {
 public:
  CustomRuleOf() noexcept : Rule(kCustomSpec) {}

  std::vector<RuleSlot> slots(const Optimizer& optimizer) const override {
    const CustomRule& rule = *optimizer.custom_rule();
    std::vector<RuleSlot> slots;
    for (std::size_t s = 0; s < rule.slot_names.size(); ++s) {
      slots.push_back({.name = rule.slot_names[s],
                       .row_wise = !rule.slot_dims.empty() && rule.slot_dims[s] == 1,
                       .initializer = rule.slot_initializers[s]});
    }
    return slots;
  }
  bool steps_every_row(const Optimizer& optimizer) const noexcept override {
    return optimizer.custom_rule()->steps_every_row;
  }
};

/// Refuses a name that no checkpoint could hold.
void require_utf8(const std::string& what, const std::string& name) {
  if (!is_utf8(name)) throw ValueError(fmt::format("{} must be UTF-8, got {:?}", what, name));
}

void check_slots(const CustomRule& rule) {
  const std::size_t names = rule.slot_names.size();
  if (rule.slot_initializers.size() != names) {
    throw ValueError(fmt::format(
        "{}: there must be one of slot_initializers for each of slot_names, got {} and {}",
        rule.name, rule.slot_initializers.size(), names));
  }
  if (!rule.slot_dims.empty() && rule.slot_dims.size() != names) {
    throw ValueError(
        fmt::format("{}: slot_dims must be empty or one for each of slot_names, got {} and {}",
                    rule.name, rule.slot_dims.size(), names));
  }
  const bool by_element = std::holds_alternative<CustomRule::Elements>(rule.function);
  for (std::size_t s = 0; s < rule.slot_dims.size(); ++s) {
    const std::int32_t dims = rule.slot_dims[s];
    if (dims == 2 || (dims == 1 && !by_element)) continue;
    throw ValueError(fmt::format("{}: slot_dims must be {}, got {} for slot '{}'", rule.name,
                                 by_element ? "2 with a function of elements" : "1 or 2", dims,
                                 rule.slot_names[s]));
  }
  if (names > std::size_t{kMaxSlots}) {
    throw ValueError(
        fmt::format("{}: slot_names must be at most {}, got {}", rule.name, kMaxSlots, names));
  }
  std::set<std::string_view> seen;
  for (const std::string& name : rule.slot_names) {
    require_utf8(rule.name + ": a name of slot_names", name);
    if (name.empty() || name.find('/') != std::string::npos || !seen.insert(name).second) {
      throw ValueError(fmt::format(
          "{}: slot_names must differ, be not empty and have no '/', got '{}'", rule.name, name));
    }
  }
}

}  // namespace

const Rule& custom_rule() noexcept {
  static const CustomRuleOf rule;
  return rule;
}

void check(const CustomRule& rule) {
  require_utf8("custom: name", rule.name);
  if (rule.name.empty() || known_rule(rule.name) != nullptr) {
    throw ValueError(fmt::format(
        "custom: name must be given and not that of a known rule, got '{}'", rule.name));
  }
  check_slots(rule);
  if (!std::visit([](const auto& function) { return function != nullptr; }, rule.function))
    throw ValueError(fmt::format("{}: function must be given, got none", rule.name));
  if (rule.hyperparameters.size() > std::size_t{StepScalars::kMaxValues}) {
    throw ValueError(fmt::format("{}: hyperparameters must be at most {}, got {}", rule.name,
                                 StepScalars::kMaxValues, rule.hyperparameters.size()));
  }
  for (const auto& [name, value] : rule.hyperparameters) {
    require_utf8(rule.name + ": a name of hyperparameters", name);
    if (std::isfinite(static_cast<float>(value))) continue;
    throw ValueError(fmt::format("{}: {} must be finite, got {}", rule.name, name, value));
  }
}

Optimizer user_defined_program(std::int32_t inputs, std::int32_t outputs,
                               CustomRule::Elements program, LearningRate learning_rate,
                               std::vector<Initializer> slot_initializers,
                               OptimizerOptions options) {
  if (inputs < 2 || outputs < 1 || inputs - outputs < 1 || inputs - outputs > 2) {
    throw ValueError(fmt::format(
        "user_defined_program: inputs must be at least 2 and 1 or 2 more than outputs, got {} "
        "inputs and {} outputs",
        inputs, outputs));
  }
  const std::int32_t slots = outputs - 1;
  const std::int32_t most = options.use_gradient_accumulation ? kMaxSlots - 1 : kMaxSlots;
  if (slots > most) {
    throw ValueError(fmt::format(
        "user_defined_program: slots must be at most {} {} accumulation, got {} inputs and {} "
        "outputs",
        most, options.use_gradient_accumulation ? "with" : "without", inputs, outputs));
  }
  CustomRule rule;
  rule.name = "user_defined_program";
  for (std::int32_t s = 0; s < slots; ++s) rule.slot_names.push_back(fmt::format("Slot_{}", s));
  if (slot_initializers.empty())
    slot_initializers.assign(rule.slot_names.size(), Initializer::zeros());
  rule.slot_initializers = std::move(slot_initializers);
  rule.function = std::move(program);
  rule.rate_is_an_input = inputs - outputs == 2;
  return Optimizer::custom(std::move(rule), std::move(learning_rate), std::move(options));
}

}  // namespace embertable
