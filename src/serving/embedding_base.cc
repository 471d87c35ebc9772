#include <utility>

#include "embertable/errors.h"
#include "embertable/serving.h"
#include "engine/setup/assembly.h"

namespace embertable {

struct EmbeddingBase::State {
  Nested<FeatureConfig> features;
  engine::Assembly assembly;
  bool built = false;
};

EmbeddingBase::EmbeddingBase(Nested<FeatureConfig> feature_config,
                             const std::optional<Optimizer>& optimizer) {
  engine::Assembly assembly = engine::assemble(feature_config, optimizer, false);
  state_ = std::make_unique<State>(State{std::move(feature_config), std::move(assembly)});
}
EmbeddingBase::EmbeddingBase() noexcept = default;
EmbeddingBase::~EmbeddingBase() = default;
EmbeddingBase::EmbeddingBase(EmbeddingBase&&) noexcept = default;
EmbeddingBase& EmbeddingBase::operator=(EmbeddingBase&&) noexcept = default;

const Nested<FeatureConfig>& EmbeddingBase::feature_config() const noexcept {
  return state_->features;
}

std::vector<TableInfo> EmbeddingBase::tables() const {
  return engine::table_info(state_->assembly, true);
}

bool EmbeddingBase::built() const noexcept { return state_->built; }

void EmbeddingBase::build() {
  if (built()) return;
  create_variables();
  state_->built = true;
}

std::map<TablePtr, TableView> EmbeddingBase::embedding_tables() {
  throw NotImplemented("embedding_tables: a class derived from EmbeddingBase has to override it");
}

LookupOutput EmbeddingBase::embedding_lookup(const Batch&) {
  throw NotImplemented("embedding_lookup: a class derived from EmbeddingBase has to override it");
}

void EmbeddingBase::create_variables() {
  throw NotImplemented("build: a class derived from EmbeddingBase has to create its variables");
}

LookupOutput EmbeddingBase::operator()(const Batch& inputs) {
  build();
  return embedding_lookup(inputs);
}

}  // namespace embertable
