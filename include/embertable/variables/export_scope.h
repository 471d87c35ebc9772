#pragma once

#include "embertable/version.h"

namespace embertable {

/// Marks the export of a model: the exporter holds one while it looks at the model. On the thread
/// that made it, `ShardedVariable::variables` then returns one variable of the whole shape and
/// without a value, which is what the exported model has. Values, indices, lookups, assignments and
/// checkpoints ignore it, so a variable is still stored in slices. Scopes may be nested; each must
/// be destroyed by the thread that made it. Source: TF saved_model/save_context.py,
/// ShardedVariableMixin._saving_variable.
class EMBERTABLE_API ExportScope {
 public:
  ExportScope() noexcept;
  ~ExportScope();
  ExportScope(const ExportScope&) = delete;
  ExportScope& operator=(const ExportScope&) = delete;

  /// True if this thread holds a scope.
  static bool active() noexcept;
};

}  // namespace embertable
