#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "embertable/embedding.h"
#include "embertable/executor.h"
#include "engine/assembly.h"
#include "engine/schedule/step.h"
#include "engine/tables.h"
#include "exchange/exchange.h"
#include "kernels/level.h"
#include "step/backward_run.h"
#include "step/exchange_gradients.h"
#include "step/forward_run.h"
#include "step/message.h"
#include "step/unique_rows.h"
#include "step/workers.h"

namespace embertable::engine {

/// Runs the stages of a step on one host, in order (src/step implements them), and counts.
class Host {
 public:
  /// `assembly` is borrowed.
  Host(std::unique_ptr<Exchange> exchange, std::shared_ptr<Executor> executor,
       const Assembly& assembly, std::int32_t replicas_per_host, EmbeddingOptions::Tuning tuning,
       bool count_unique_ids);

  /// Looks up one step for this host's replicas. values: [replicas * features] of the whole engine.
  void forward(const Tables& tables, Step& step, std::span<const std::span<float>> values);

  /// Applies the gradients of a step to this host's rows. rates: by dynamic tag; number: of the
  /// step, from 1.
  void backward(const Tables& tables, Step& step, std::span<const float> rates,
                std::int64_t number);

  /// Returns the row number in the whole table of an entry of a plan that this host has looked up.
  std::int64_t row_of(const Tables& tables, const Step& step, std::size_t table,
                      const LookupPlan& plan, std::int64_t entry) const;

  /// Tells the other hosts that this one cannot go on.
  void abort(std::string_view reason) noexcept { exchange_->abort(reason); }

  const StepStatistics& statistics() const noexcept { return statistics_; }
  std::int64_t scratch_bytes() const noexcept;

  /// Sums of the last update of a table whose rule hands gradients on.
  const GradientSums& gradient_sums(std::int64_t table) const { return backward_.sums(table); }

  /// Unique rows per entry of a table's last update, 0..1: sizes the buckets.
  double unique_share(std::int64_t table) const { return backward_.unique_share(table); }

 private:
  HostStep& of(Step& step) const { return step.host[exchange_->host()]; }
  void point_at_tables(const Tables& tables, HostStep& step) const;
  void list_features(Step& step, std::span<const std::span<float>> values) const;
  void count_lookups(Step& step);
  void count_updates(const Step& step);

  const std::unique_ptr<Exchange> exchange_;
  const std::shared_ptr<Executor> executor_;
  const Assembly& assembly_;
  const std::int32_t replicas_per_host_;
  const bool count_unique_ids_;
  const SimdLevel level_ = simd_level();

  Workers workers_;
  Messages messages_;
  ForwardRun forward_;
  UniqueRows unique_rows_;
  GradientExchange gradient_exchange_;
  BackwardRun backward_;
  const Step* looked_up_ = nullptr;  ///< the step of the last forward
  StepStatistics statistics_;
};

}  // namespace embertable::engine
