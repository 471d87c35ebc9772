#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "embertable/config.h"
#include "embertable/shape.h"

namespace embertable {

/// A table of some features: a copy of its configuration with name and initializer resolved.
struct ListedTable {
  TablePtr identity;                   ///< the caller's object
  TableConfig config;                  ///< name and initializer set
  std::vector<std::int64_t> features;  ///< features that look it up, in flatten order

  const std::string& name() const { return *config.name; }
};

struct TableList {
  std::vector<ListedTable> tables;     ///< by first occurrence in the flattened features
  std::vector<std::int64_t> table_of;  ///< by feature
};

/// Checks every configuration, then lists the distinct tables, compared by identity, and names
/// those without a name; `others` follow those of the features. Throws ValueError for a broken
/// rule, or a repeated name or path, NotImplemented naming the table for a custom combiner. Source:
/// TF tpu_embedding_v2.py, TPUEmbedding.__init__.
TableList list_tables(const Nested<FeatureConfig>& features,
                      const std::vector<TablePtr>& others = {});

}  // namespace embertable
