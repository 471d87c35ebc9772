#pragma once

#include <memory>
#include <variant>

#include "embertable/errors.h"
#include "embertable/optimizer.h"

namespace embertable {

/// The function of `slots_only`, which steps no row.
struct StepsNoRow {
  void operator()(const CustomRow&) const {
    throw StateError("slots_only: rows are stepped by an update that apply_gradients is given");
  }
};

/// Whether an optimizer only declares slots.
inline bool is_slots_only(const Optimizer& optimizer) noexcept {
  const std::shared_ptr<const CustomRule>& rule = optimizer.custom_rule();
  const auto* rows = rule ? std::get_if<CustomRule::Rows>(&rule->function) : nullptr;
  return rows != nullptr && rows->target<StepsNoRow>() != nullptr;
}

}  // namespace embertable
