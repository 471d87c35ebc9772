#include "variable/assignable.h"

#include <fmt/format.h>

#include "embertable/errors.h"

namespace embertable {
namespace {

/// True if the variable is a whole sharded variable, not one of its components.
bool is_container(const CheckpointVariable& variable) {
  const auto& info = variable.components().front().save_slice_info();
  return info.has_value() && info->full_shape == variable.shape();
}

}  // namespace

std::string component_text(std::size_t i, const Variable& component) {
  return fmt::format("component {} ('{}')", i, component.name());
}

void check_assignable(const std::string& subject, const Variable& variable) {
  if (!variable.assignable())
    throw StateError(fmt::format("{}variable '{}': is read-only", subject, variable.name()));
}

void check_assignable(const std::string& subject, std::size_t i, const Variable& component) {
  if (!component.assignable())
    throw StateError(subject + component_text(i, component) + " is read-only");
}

void check_restorable(const std::string& name, const CheckpointVariable& variable) {
  const std::string subject = fmt::format("restore of '{}': ", name);
  for (std::size_t i = 0; i < variable.components().size(); ++i) {
    const Variable& component = variable.components()[i];
    if (is_container(variable))
      check_assignable(
          fmt::format("{}sharded variable '{}': ", subject, component.save_slice_info()->full_name),
          i, component);
    else
      check_assignable(subject, component);
  }
}

}  // namespace embertable
