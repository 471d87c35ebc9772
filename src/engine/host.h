#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "embertable/embedding.h"
#include "embertable/exchange.h"
#include "embertable/executor.h"
#include "engine/schedule/step.h"
#include "engine/setup/assembly.h"
#include "engine/tables.h"
#include "kernels/level.h"
#include "step/affinity_choice.h"
#include "step/backward.h"
#include "step/exchange_gradients.h"
#include "step/fetch_remote_rows.h"
#include "step/forward.h"
#include "step/message.h"
#include "step/once_rows.h"
#include "step/remote_rows.h"
#include "step/unique_rows.h"
#include "step/workers.h"

namespace embertable::engine {

/// Runs the stages of a step on one host, in order (src/step implements them).
class Host {
 public:
  /// `assembly`, `tables` and `shares`, which are by table, are borrowed. `first_host`: the first
  /// host of this process.
  Host(std::shared_ptr<Exchange> exchange, std::int32_t first_host,
       std::shared_ptr<Executor> executor, const Assembly& assembly, const Tables& tables,
       std::span<NamedShares> shares, std::int32_t cores_per_host, EmbeddingOptions::Tuning tuning);

  /// What one direction of a step took.
  struct Effort {
    std::int32_t workers = 0;  ///< workers that ran at least one item
    double seconds = 0;
  };

  /// Looks up one step for this host's cores. values: [cores * features] of the whole engine;
  /// number: of the step, from 1. `next`: the step that is looked up next, if it is known. If it is
  /// on all hosts, they ask each other for its rows now, so that the questions travel until its own
  /// forward.
  void forward(Step& step, std::span<const std::span<float>> values, Step* next,
               std::int64_t number);

  /// Its tables, before any step.
  std::span<const StepTable> tables() const noexcept { return tables_; }

  /// What this host asks of the others.
  RemoteRows& remote_rows() noexcept { return remote_rows_; }

  /// Counts the distinct rows of this host that a step names, which every host has looked up.
  void count_named_rows(const Step& step);

  /// Makes a step that this host has looked up, or failed to, ready for another forward. Requires:
  /// several hosts.
  void undo_forward(Step& step) const noexcept { put_rows_back(of(step), exchange_->host()); }

  /// Plans the update of this host's rows by the gradients of a step, and changes none. rates: by
  /// dynamic tag; number: of the step, from 1.
  void prepare_update(Step& step, std::span<const float> rates, std::int64_t number);

  /// Runs the update of the step that was prepared.
  void update(Step& step);

  /// Returns the row number in the whole table of an entry of a plan that this host has looked up.
  std::int64_t row_of(const Step& step, std::size_t table, const LookupPlan& plan,
                      std::int64_t entry) const;

  /// True if there is no other host, in this process or elsewhere.
  bool is_alone() const noexcept { return messages_.alone(); }

  /// Ends what all hosts do together: throws GivenUp if one of them could not go on.
  void agree() {
    if (!messages_.alone()) exchange_->agree("", {"agreement", messages_.step()});
  }

  /// Tells the other hosts that this one cannot go on with what they do together.
  void abort(std::string_view reason) { exchange_->abort(reason); }

  const Effort& last_forward() const noexcept { return last_forward_; }
  const Effort& last_update() const noexcept { return last_update_; }

  /// The result of count_named_rows.
  std::int64_t named_rows(std::int64_t table) const { return named_rows_[table]; }

  /// What the last update did: its numbers of rows are those of this host.
  const BackwardRun& updated() const noexcept { return backward_; }

  std::int64_t scratch_bytes() const noexcept;

 private:
  std::int32_t local() const noexcept { return exchange_->host() - first_host_; }
  HostStep& of(Step& step) const { return step.host[local()]; }
  void make_ready(Step& step) const;
  void list_features(Step& step) const;

  std::shared_ptr<Exchange> exchange_;
  const std::int32_t first_host_;
  const std::shared_ptr<Executor> executor_;
  const Assembly& assembly_;
  const std::int32_t cores_per_host_;
  const SimdLevel level_ = simd_level();
  std::vector<StepTable> tables_;
  const std::span<const NamedShares> shares_;

  Workers workers_;
  Messages messages_;
  RemoteRows remote_rows_;
  OnceRows once_rows_;
  ForwardRun forward_;
  UniqueRows unique_rows_;
  GradientExchange gradient_exchange_;
  BackwardRun backward_;
  AffinityChoice affinity_;
  Effort last_forward_, last_update_;
  std::vector<std::int64_t> named_rows_;  ///< by table
};

}  // namespace embertable::engine
