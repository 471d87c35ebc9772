#pragma once

#include "embertable/export.h"

namespace embertable {

/// What exports a model holds one as long as it looks at the model: on the thread that made it,
/// `ShardedVariable::variables` then gives one variable of the whole shape and without a value,
/// which is what the exported model has. Values, indices, lookups, assignments and checkpoints know
/// nothing of it, so that a variable is stored in slices as ever. May be nested; destroyed by the
/// same thread. Source: TF saved_model/save_context.py, ShardedVariableMixin._saving_variable.
class EMBERTABLE_API ExportScope {
 public:
  ExportScope() noexcept;
  ~ExportScope();
  ExportScope(const ExportScope&) = delete;
  ExportScope& operator=(const ExportScope&) = delete;

  /// True if this thread holds one.
  static bool active() noexcept;
};

}  // namespace embertable
