#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "checkpoint/reader.h"
#include "config/table_list.h"
#include "embertable/serving.h"
#include "engine/schedule/reentrancy_guard.h"
#include "kernels/level.h"
#include "serving/served_table.h"

namespace embertable::serving {

/// The features of a checkpoint as a map by path, and its tables by their index in the manifest.
/// Throws ValueError for what no configuration can express.
struct SavedFeatures {
  Nested<FeatureConfig> features;
  std::vector<TablePtr> tables;
};
SavedFeatures features_of(const checkpoint::Manifest& manifest);

/// The implementation of ServingEmbedding.
class Served {
 public:
  /// list: the tables of the features, and those that no feature names.
  Served(checkpoint::FileSystem& files, Nested<FeatureConfig> features, TableList list,
         ServingOptions options);

  /// Serves everything that a checkpoint has. Throws DataLoss where its configuration is none.
  static std::unique_ptr<Served> open_all(checkpoint::FileSystem& files, checkpoint::Reader reader,
                                          ServingOptions options);

  /// Replaces tables by those of a checkpoint; `open` leaves caller and id_maps out of the report.
  RestoreReport restore(const std::filesystem::path& path, const RestoreOptions& options);
  RestoreReport open(checkpoint::Reader reader, const RestoreOptions& options);

  bool built() const noexcept { return built_.load(std::memory_order_acquire); }
  void build();
  std::map<TablePtr, TableView> table_views();
  void look_up(const Batch& inputs, LookupOutput& output);
  void read_rows(std::string_view table, IntegerSpan rows, std::span<float> out);

  const Nested<FeatureConfig>& features() const noexcept { return features_; }
  std::vector<TableInfo> tables() const;
  TableInfo table(std::string_view name) const { return tables()[find(name)]; }
  std::int64_t step() const noexcept { return reader_ ? reader_->manifest().step : 0; }
  CallerState caller_state() const;
  std::map<std::string, IdMap> id_maps() const;

 private:
  using TableHandle = std::shared_ptr<const ServedTable>;

  TableHandle initialized(const ListedTable& table) const;
  TableHandle mapped(const checkpoint::Reader& reader, std::int64_t table) const;
  TableHandle opened(const checkpoint::Reader& reader, std::int64_t table) const;
  void use(std::vector<TableHandle> tables);
  std::size_t find(std::string_view table) const;

  checkpoint::FileSystem& files_;
  const Nested<FeatureConfig> features_;
  const ServingOptions options_;
  const TableList list_;
  const SimdLevel level_ = simd_level();
  std::shared_ptr<Executor> executor_;
  std::optional<checkpoint::Reader> reader_;  ///< reader of the checkpoint that was last opened
  std::vector<TableHandle> tables_;           ///< null: not built
  std::vector<Rows> rows_;                    ///< by feature, once built
  std::atomic<bool> built_ = false;
  engine::ReentrancyGuard building_;  ///< locked while tables are built and views are made
  std::vector<TableHandle> viewed_;   ///< copies of tables that are in several files
};

}  // namespace embertable::serving
