#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "embertable/batch.h"
#include "embertable/config.h"
#include "embertable/embedding.h"
#include "embertable/export.h"
#include "embertable/lookup_output.h"
#include "embertable/nested.h"

namespace embertable {

/// Base of `ServingEmbedding` and `DirectEmbedding`, and of caller-supplied classes that stand in
/// their place: tables by configuration, variables that are created once, and a lookup without
/// state. Source: TF tpu_embedding_base.py, TPUEmbeddingBase.
///
///     class ExternalRowsEmbedding final : public EmbeddingBase {  // looks up in memory that
///     others own
///      public:
///       using EmbeddingBase::EmbeddingBase;
///       std::map<TablePtr, TableView> embedding_tables() override { return build(), views_; }
///       LookupOutput embedding_lookup(const Batch& inputs) override {
///         return serving_embedding_lookup(inputs, embedding_tables(), feature_config());
///       }
///
///      private:
///       void create_variables() override { views_ = ask_for_views(tables()); }
///       std::map<TablePtr, TableView> views_;
///     };
class EMBERTABLE_API EmbeddingBase {
 public:
  /// Resolves tables, names and optimizers from copies of the configuration. Throws ValueError for
  /// a broken rule of a configuration or a repeated table name; tables need no optimizer.
  explicit EmbeddingBase(Nested<FeatureConfig> feature_config,
                         const std::optional<Optimizer>& optimizer = {});
  virtual ~EmbeddingBase();

  virtual const Nested<FeatureConfig>& feature_config() const noexcept;

  /// Returns the tables in table order: first occurrence in the flattened features.
  virtual std::vector<TableInfo> tables() const;

  virtual bool built() const noexcept;

  /// Creates the variables; a built object returns at once. The base class throws what
  /// `create_variables` throws, and is not built then.
  virtual void build();

  /// Returns every table by its configuration; builds if need be. The base class throws
  /// NotImplemented.
  virtual std::map<TablePtr, TableView> embedding_tables();

  /// Returns the activations of one batch. The base class throws NotImplemented.
  virtual LookupOutput embedding_lookup(const Batch& inputs);

  /// Builds if need be, then looks up.
  LookupOutput operator()(const Batch& inputs);

 protected:
  /// Constructs the base of a class that keeps configuration and variables itself, and overrides
  /// all of the above.
  EmbeddingBase() noexcept;
  EmbeddingBase(EmbeddingBase&&) noexcept;
  EmbeddingBase& operator=(EmbeddingBase&&) noexcept;

 private:
  /// Creates the variables; the first `build` calls it. The base class throws NotImplemented.
  virtual void create_variables();

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace embertable
