#pragma once

#include <cstddef>
#include <string>

#include "embertable/variables/variable_checkpoint.h"

namespace embertable {

/// Returns "component 1 ('w/part_1')".
std::string component_text(std::size_t i, const Variable& component);

/// Throws StateError naming the variable unless it is assignable. `subject` begins the message.
void check_assignable(const std::string& subject, const Variable& variable);

/// Throws StateError naming component i of a sharded variable unless it is assignable. `subject`:
/// "sharded variable 'w': ".
void check_assignable(const std::string& subject, std::size_t i, const Variable& component);

/// Throws StateError unless every component is assignable. The message names the variable as in a
/// checkpoint, then says what an assignment says.
void check_restorable(const std::string& name, const CheckpointVariable& variable);

}  // namespace embertable
