#include "apps/selftest/table.h"

#include <cstdlib>
#include <utility>

namespace embertable::selftest {
namespace {

constexpr const char* kLevelVariable = "EMBERTABLE_SIMD";

StrategyPtr strategy() {
  static const std::shared_ptr<Executor> executor = make_thread_pool(1);
  StrategyOptions options;
  options.executor = executor;
  return make_strategy(std::move(options));
}

FeatureConfig feature(const Table::Shape& shape) {
  FeatureConfig feature;
  feature.table = make_table({.vocabulary_size = shape.rows,
                              .dim = shape.dim,
                              .initializer = Initializer::uniform(-1, 1),
                              .combiner = Combiner::kSum,
                              .name = "t"});
  feature.output_shape = {shape.samples};
  return feature;
}

}  // namespace

ForcedLevel::ForcedLevel(SimdLevel level) {
  if (const char* value = std::getenv(kLevelVariable)) before_ = value;
  setenv(kLevelVariable, std::string(to_string(level)).c_str(), 1);
}

ForcedLevel::~ForcedLevel() {
  before_ ? setenv(kLevelVariable, before_->c_str(), 1) : unsetenv(kLevelVariable);
}

Table::Table(const std::string& rule, const Optimizer::Settings& settings, OptimizerOptions options,
             bool counted, const Shape& shape)
    : shape_(shape), rates_(std::make_shared<Rates>()) {
  if (counted)
    options.step_counter = LearningRate::dynamic([rates = rates_] { return rates->step_counter; });
  optimizer_.emplace(rule, LearningRate::dynamic([rates = rates_] { return rates->learning_rate; }),
                     settings, std::move(options));
  engine_.emplace(Nested<FeatureConfig>(feature(shape)), *optimizer_, strategy());
  engine_->build();
  names_.emplace_back("parameters");
  widths_.push_back(shape.dim);
  const TableInfo table = engine_->tables().front();
  for (const TableInfo::Slot& slot : table.slots) {
    names_.push_back(slot.name);
    widths_.push_back(slot.row_wise ? 1 : shape.dim);
  }
}

const std::string& Table::name(std::int32_t variable) const { return names_[variable]; }

std::int32_t Table::width(std::int32_t variable) const { return widths_[variable]; }

std::string Table::path(std::int32_t variable) const {
  return variable == 0 ? "t" : "t/" + name(variable);
}

std::vector<float> Table::read(std::int32_t variable) const {
  std::vector<std::int64_t> all;
  for (std::int64_t r = 0; r < shape_.rows; ++r) all.push_back(r);
  std::vector<float> values(all.size() * static_cast<std::size_t>(width(variable)));
  engine_->read_rows(path(variable), all, values);
  return values;
}

void Table::assign(std::int32_t variable, std::int64_t row, std::span<const float> values) {
  engine_->assign_rows(path(variable), std::vector<std::int64_t>{row}, values);
}

void Table::step(const Rates& rates, const std::vector<std::int64_t>& ids,
                 const std::vector<float>& gradients) {
  *rates_ = rates;
  engine_->enqueue(Batch{.features = Nested<FeatureIds>(DenseIds{.values = ids, .shape = {}})});
  engine_->dequeue();
  engine_->apply_gradients(Nested<Gradient>(Gradient{.values = gradients, .shape = {}}));
}

}  // namespace embertable::selftest
