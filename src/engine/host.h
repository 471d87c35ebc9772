#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "combine/backward.h"
#include "combine/forward.h"
#include "embertable/embedding.h"
#include "embertable/executor.h"
#include "engine/assembly.h"
#include "engine/step.h"
#include "engine/tables.h"
#include "exchange/exchange.h"
#include "kernels/level.h"

namespace embertable::engine {

/// One piece of an update: a bucket of a table, or a run of small tables side by side.
struct UpdateItem {
  std::int32_t table = 0;
  std::int32_t small_tables = 0;  ///< 0: a bucket; else that many tables from `table` on
  std::int64_t bucket = 0;
  std::int64_t entries = 0;
};

/// One host at work: its place in the exchange and what its workers need. The stages of a step are
/// in forward.cc and backward.cc; both name them in order.
class Host {
 public:
  Host(std::unique_ptr<Exchange> exchange, std::shared_ptr<Executor> executor,
       const Assembly& assembly, std::int32_t replicas_per_host, EmbeddingOptions::Tuning tuning);

  /// Looks up one step for this host's replicas. values: [replicas * features] of the whole engine.
  void forward(Tables& tables, Step& step, std::span<const std::span<float>> values);

  /// Applies the gradients of a step to this host's rows. rates: by dynamic tag; number: of the
  /// step, from 1.
  void backward(Tables& tables, Step& step, std::span<const float> rates, std::int64_t number);

  /// Tells the others that this host cannot go on.
  void abort(std::string_view reason) noexcept { exchange_->abort(reason); }

  const StepStatistics& statistics() const noexcept { return statistics_; }
  std::int64_t scratch_bytes() const;

  /// Unique rows per entry of a table's last update, 0..1: sizes the buckets.
  double unique_share(std::int64_t table) const {
    return unique_share_[static_cast<std::size_t>(table)];
  }

 private:
  struct ForwardItem {
    LookupItem lookup;
    ScatterItem scatter;
    std::int64_t floats = 0;  ///< that it moves
  };

  std::int32_t first_replica() const noexcept { return exchange_->host() * replicas_per_host_; }
  std::int64_t features() const noexcept {
    return static_cast<std::int64_t>(assembly_.table_of.size());
  }
  HostStep& of(Step& step) const { return step.host[static_cast<std::size_t>(exchange_->host())]; }
  bool alone() const noexcept { return exchange_->hosts() == 1; }

  // forward.cc
  void plan_updates(Tables& tables, Step& step);
  void plan_update(const StoredTable& table, std::int64_t index, Step& step);
  void list_lookups(Tables& tables, Step& step, std::span<const std::span<float>> values);
  void list_scatters(Step& step);
  void run_forward();

  // routing.cc: more than one host only
  void ask_owners(Tables& tables, Step& step);
  void fetch_rows(Tables& tables, Step& step);
  void collect_entries(Tables& tables, Step& step);
  void sum_for_owners(Tables& tables, Step& step);

  // backward.cc
  void point_at_gradients(Tables& tables, Step& step);
  void list_updates(Tables& tables, Step& step, std::span<const float> rates, std::int64_t number);
  void run_updates();

  /// Runs body over items, on the calling thread alone where little is moved. Returns the workers
  /// that took part.
  std::int32_t region(std::int64_t items, std::int64_t floats,
                      FunctionRef<void(const WorkItem&)> body);

  std::unique_ptr<Exchange> exchange_;
  std::shared_ptr<Executor> executor_;
  const Assembly& assembly_;
  const std::int32_t replicas_per_host_;
  const EmbeddingOptions::Tuning tuning_;
  const SimdLevel level_;

  std::vector<GroupScratch> scratch_;               ///< by worker
  std::vector<ForwardItem> lookups_;                ///< largest first
  std::vector<TableUpdate> updates_;                ///< by table
  std::vector<UpdateItem> items_;                   ///< largest first
  std::vector<std::vector<GradientPiece>> pieces_;  ///< by table
  std::vector<std::atomic<std::int64_t>> unique_;   ///< by table, of the running update
  std::vector<std::atomic<std::int64_t>> worked_;   ///< items by worker, of the running region
  std::vector<double> unique_share_;
  StepStatistics statistics_;
  Arena messages_;                       ///< on their way to other hosts
  std::vector<ByteSpan> received_sums_;  ///< of gradients, by host, until the next exchange
};

/// The hosts of this process: host 0 works on the calling thread, the others on threads of their
/// own.
class HostTeam {
 public:
  explicit HostTeam(std::vector<std::unique_ptr<Host>> hosts);
  ~HostTeam();
  HostTeam(const HostTeam&) = delete;
  HostTeam& operator=(const HostTeam&) = delete;

  /// Runs body on every host at once. Throws the first host's error; the others were told.
  void run(FunctionRef<void(Host&)> body);

  Host& host(std::int32_t index) { return *hosts_[static_cast<std::size_t>(index)]; }
  const Host& host(std::int32_t index) const { return *hosts_[static_cast<std::size_t>(index)]; }
  std::int32_t size() const noexcept { return static_cast<std::int32_t>(hosts_.size()); }

 private:
  void work(std::int32_t index);
  void run_one(std::int32_t index);

  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::exception_ptr> errors_;
  const FunctionRef<void(Host&)>* body_ = nullptr;
  std::atomic<std::uint64_t> round_ = 0;
  std::atomic<std::int32_t> running_ = 0;
  std::atomic<bool> closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace embertable::engine
