#include <utility>

#include "checkpoint/use_opened.h"
#include "embertable/errors.h"
#include "embertable/serving.h"
#include "serving/served.h"

namespace embertable {

using serving::Served;

ServingEmbedding::ServingEmbedding(Nested<FeatureConfig> feature_config,
                                   const std::optional<Optimizer>&, const StrategyPtr& strategy,
                                   ServingOptions options) {
  if (strategy != nullptr)
    throw StateError(
        "ServingEmbedding: tables that are only looked up have no strategy, got one of " +
        std::to_string(strategy->options().hosts) + " hosts and " +
        std::to_string(strategy->replicas()) + " replicas");
  TableList list = list_tables(feature_config);
  served_ = std::make_unique<Served>(checkpoint::local_files(), std::move(feature_config),
                                     std::move(list), std::move(options));
}

ServingEmbedding::ServingEmbedding(std::unique_ptr<Served> served) : served_(std::move(served)) {}
ServingEmbedding::~ServingEmbedding() = default;
ServingEmbedding::ServingEmbedding(ServingEmbedding&&) noexcept = default;
ServingEmbedding& ServingEmbedding::operator=(ServingEmbedding&&) noexcept = default;

ServingEmbedding ServingEmbedding::open(const std::filesystem::path& path,
                                        Nested<FeatureConfig> feature_config,
                                        ServingOptions options) {
  ServingEmbedding serving(std::move(feature_config), {}, {}, std::move(options));
  serving.served_->open(checkpoint::Reader(checkpoint::local_files(), path), {});
  return serving;
}

ServingEmbedding ServingEmbedding::open(const std::filesystem::path& path, ServingOptions options) {
  checkpoint::FileSystem& files = checkpoint::local_files();
  return ServingEmbedding(Served::open_all(files, {files, path}, std::move(options)));
}

ServingEmbedding checkpoint::serve_opened(const checkpoint::Reader& reader,
                                          std::optional<Nested<FeatureConfig>> features) {
  if (!features) return ServingEmbedding(Served::open_all(local_files(), reader, {}));
  ServingEmbedding serving(std::move(*features));
  serving.served_->open(reader, {});
  return serving;
}

RestoreReport ServingEmbedding::restore(const std::filesystem::path& path,
                                        const RestoreOptions& options) {
  return served_->restore(path, options);
}

bool ServingEmbedding::built() const noexcept { return served_->built(); }
void ServingEmbedding::build() { served_->build(); }

std::map<TablePtr, TableView> ServingEmbedding::embedding_tables() {
  return served_->table_views();
}

void ServingEmbedding::embedding_lookup(const Batch& inputs, LookupOutput& output) const {
  served_->look_up(inputs, output);
}
LookupOutput ServingEmbedding::embedding_lookup(const Batch& inputs) const {
  LookupOutput output;
  served_->look_up(inputs, output);
  return output;
}
LookupOutput ServingEmbedding::embedding_lookup(const Batch& inputs) {
  return std::as_const(*this).embedding_lookup(inputs);
}

void ServingEmbedding::read_rows(std::string_view table, IntegerSpan rows,
                                 std::span<float> out) const {
  served_->read_rows(table, rows, out);
}

const Nested<FeatureConfig>& ServingEmbedding::feature_config() const noexcept {
  return served_->features();
}
std::vector<TableInfo> ServingEmbedding::tables() const { return served_->tables(); }
TableInfo ServingEmbedding::table(std::string_view name) const { return served_->table(name); }
std::int64_t ServingEmbedding::step() const noexcept { return served_->step(); }
CallerState ServingEmbedding::caller_state() const { return served_->caller_state(); }
std::map<std::string, IdMap> ServingEmbedding::id_maps() const { return served_->id_maps(); }

}  // namespace embertable
