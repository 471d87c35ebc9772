#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "base/home_process.h"
#include "embertable/embedding.h"
#include "embertable/executor.h"
#include "engine/assembly.h"
#include "engine/message.h"
#include "engine/step.h"
#include "engine/tables.h"
#include "exchange/exchange.h"
#include "kernels/level.h"
#include "optimizer/callback_failure.h"
#include "optimizer/gradient_sums.h"
#include "step/backward.h"
#include "step/forward.h"
#include "step/hot_bucket.h"

namespace embertable::engine {

/// One piece of an update: a bucket of a table, or a run of small tables side by side.
struct UpdateItem {
  std::int32_t table = 0;
  std::int32_t small_tables = 0;  ///< 0: a bucket; else that many tables from `table` on
  std::int64_t bucket = 0;
  std::int64_t entries = 0;
  std::int64_t left = 0;  ///< of these, when hot rows have been summed
  std::int32_t hot = -1;  ///< number of its hot bucket; < 0: it has no hot rows
};

/// One host at work: its place in the exchange and what its workers need. The stages of a step are
/// in forward.cc and backward.cc; both name them in order.
class Host {
 public:
  Host(std::unique_ptr<Exchange> exchange, std::shared_ptr<Executor> executor,
       const Assembly& assembly, std::int32_t replicas_per_host, EmbeddingOptions::Tuning tuning,
       bool count_unique_ids);

  /// Looks up one step for this host's replicas. values: [replicas * features] of the whole engine.
  void forward(Tables& tables, Step& step, std::span<const std::span<float>> values);

  /// Applies the gradients of a step to this host's rows. rates: by dynamic tag; number: of the
  /// step, from 1.
  void backward(Tables& tables, Step& step, std::span<const float> rates, std::int64_t number);

  /// The table's own number of the row of an entry of a plan that has been looked up here.
  std::int64_t row_of(const Tables& tables, Step& step, std::size_t table, const LookupPlan& plan,
                      std::int64_t entry) const;

  /// Tells the others that this host cannot go on.
  void abort(std::string_view reason) noexcept { exchange_->abort(reason); }

  const StepStatistics& statistics() const noexcept { return statistics_; }
  std::int64_t scratch_bytes() const;

  /// Of the last update, for a table whose rule gives them.
  const GradientSums& gradient_sums(std::int64_t table) const { return sums_[table]; }

  /// Unique rows per entry of a table's last update, 0..1: sizes the buckets.
  double unique_share(std::int64_t table) const { return unique_share_[table]; }

 private:
  struct ForwardItem {
    LookupItem lookup;
    ScatterItem scatter;
    std::int64_t floats = 0;  ///< that it moves
  };

  /// A part of the sums of a hot bucket.
  struct HotPart {
    std::int32_t hot = 0;
    std::int64_t part = 0;
  };

  struct RowRun {
    std::size_t table = 0;
    std::int64_t first = 0, last = 0;  ///< rows first <= r < last
  };

  std::int32_t first_replica() const noexcept { return exchange_->host() * replicas_per_host_; }
  std::int64_t features() const noexcept {
    return static_cast<std::int64_t>(assembly_.table_of.size());
  }
  HostStep& of(Step& step) const { return step.host[exchange_->host()]; }
  bool alone() const noexcept { return exchange_->hosts() == 1; }

  /// Calls visit(replica, feature) for every feature of a table, in the order of its entries.
  template <class Visit>
  void for_each_source(std::size_t table, Visit visit) const {
    for (std::int32_t r = first_replica(); r < first_replica() + replicas_per_host_; ++r)
      for (const std::int64_t feature : assembly_.tables[table].features) visit(r, feature);
  }

  template <class Visit>
  void for_each_own_row(Step& step, std::size_t table, Visit visit) const;
  void count_lookups(Step& step);
  void count_unique_rows(const Tables& tables, Step& step);
  void check_update_size(const Tables& tables, Step& step, std::size_t table) const;

  // forward.cc
  void plan_updates(Tables& tables, Step& step);
  void plan_update(const StoredTable& table, std::size_t index, Step& step);
  void list_lookups(Tables& tables, Step& step, std::span<const std::span<float>> values);
  void list_scatters(Step& step);
  void run_item(const WorkItem& work) const;
  void run_forward();

  // rows_of_others.cc, sums_for_others.cc: more than one host only
  struct ReplicaSums {
    const TableRoute* route = nullptr;
    std::int32_t dim = 0;
    bool summed = true;              ///< else there is a gradient for every entry
    std::span<std::uint32_t> index;  ///< received rows that the replica named, rising if summed
    std::span<float> gradient;       ///< [received rows, dim] if summed, else [index.size(), dim]

    /// Calls visit(received row, its gradient) for those that a host owns, in the order of index.
    template <class Visit>
    void for_each_of(std::size_t host, Visit visit) const;
    std::int64_t named_of(std::size_t host) const;
  };
  /// The gradients of one table's received rows in one replica.
  struct ReceivedGradients {
    std::vector<GradientPiece> pieces;
    std::vector<UpdateEntry<std::uint32_t>> entries;
    std::vector<float> gains;
  };
  void ask_owners(Tables& tables, Step& step);
  void exchange_questions(HostStep& mine);
  void fetch_rows(Tables& tables, Step& step);
  void sum_for_owners(Tables& tables, Step& step);
  void gather_received(Step& step, std::size_t table, std::int32_t replica, std::int32_t dim);
  ReplicaSums sum_received_rows(const TableRoute& route, std::int32_t dim);
  ReplicaSums list_received_entries(const TableRoute& route, std::int32_t dim);
  void exchange_sums(std::span<const ReplicaSums> sums);
  void collect_entries(Tables& tables, Step& step);

  /// Sends every host the message that write(host, writer) makes, `bytes[host]` long. What came is
  /// valid until the next exchange.
  template <class Write>
  std::span<const ByteSpan> swap_messages(std::span<const std::int64_t> bytes, Write write) {
    const std::span<ByteSpan> send = messages_.take<ByteSpan>(exchange_->hosts());
    const std::span<ByteSpan> received = messages_.take<ByteSpan>(exchange_->hosts());
    for (std::size_t host = 0; host < bytes.size(); ++host) {
      const std::span<std::byte> message = messages_.take<std::byte>(bytes[host]);
      MessageWriter writer(message);
      write(host, writer);
      send[host] = message;
    }
    exchange_->all_to_all(send, received);
    return received;
  }

  // backward.cc
  static void append_pieces(const float* gradient, std::int64_t outputs, std::int64_t dim,
                            std::int32_t replica, std::vector<GradientPiece>& pieces);
  void append_pieces(Step& step, std::int32_t replica, std::int64_t feature, std::int64_t dim,
                     std::vector<GradientPiece>& pieces) const;
  void point_at_gradients(Tables& tables, Step& step);
  void list_updates(Tables& tables, Step& step, std::span<const float> rates, std::int64_t number);
  void set_up_update(std::size_t table, const RowBlock& rows, const UpdatePlan& plan,
                     std::span<const float> rates, std::int64_t number);
  void list_small_table(std::size_t table, std::int64_t side_by_side);
  void list_buckets(std::size_t table);
  void find_hot_buckets();
  void sum_hot_rows();
  void reserve_scratch();
  void run_updates();
  void update_small(const UpdateItem& item, GroupScratch& scratch);
  void step_other_rows();
  void report_updates(Step& step);

  /// Runs body over items, on the calling thread alone where little is moved. Returns the workers
  /// that took part.
  std::int32_t region(std::int64_t items, std::int64_t floats,
                      FunctionRef<void(const WorkItem&)> body);

  std::unique_ptr<Exchange> exchange_;
  std::shared_ptr<Executor> executor_;
  const Assembly& assembly_;
  const std::int32_t replicas_per_host_;
  const EmbeddingOptions::Tuning tuning_;
  const bool count_unique_ids_;
  const SimdLevel level_;

  std::vector<GroupScratch> scratch_;  ///< by worker
  std::vector<ForwardItem> lookups_;   ///< by replica and feature; then scatters, by table
  std::vector<TableUpdate> updates_;   ///< by table
  std::vector<UpdateItem> items_;      ///< large ones first, then table by table
  std::vector<HotBucket> hot_;         ///< of the running update, as the next
  std::int32_t num_hot_ = 0;
  std::vector<HotPart> hot_parts_;
  std::vector<std::vector<GradientPiece>> pieces_;   ///< by table
  std::vector<std::vector<std::uint16_t>> touched_;  ///< by table: TableUpdate::touched
  std::vector<GradientSums> sums_;                   ///< by table, of those whose rule gives them
  CallbackFailure failure_;                          ///< of the running update
  std::vector<RowRun> row_runs_;                     ///< of tables whose every row steps
  std::vector<std::atomic<std::int64_t>> unique_;    ///< by table, of the running update
  std::vector<std::atomic<std::int64_t>> worked_;    ///< items by worker, of the running region
  std::vector<double> unique_share_;
  std::vector<std::vector<std::uint64_t>>
      seen_;  ///< by table, a bit for each row of the shard: all clear between counts
  const Step* looked_up_ = nullptr;  ///< last
  StepStatistics statistics_;
  ReceivedGradients received_gradients_;     ///< of the replica whose sums are being made
  Arena messages_;                           ///< on their way to other hosts, and lists of them
  std::span<const ByteSpan> received_sums_;  ///< of gradients, by host, until the next exchange
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

  Host& host(std::int32_t index) { return *hosts_[index]; }
  const Host& host(std::int32_t index) const { return *hosts_[index]; }
  std::int32_t size() const noexcept { return static_cast<std::int32_t>(hosts_.size()); }

 private:
  void work(std::int32_t index);
  void run_one(std::int32_t index);
  void end_threads() noexcept;

  const HomeProcess home_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::exception_ptr> errors_;
  const FunctionRef<void(Host&)>* body_ = nullptr;
  std::atomic<std::uint64_t> round_ = 0;
  std::atomic<std::int32_t> running_ = 0;
  std::atomic<bool> closing_ = false;
  std::unique_ptr<std::vector<std::thread>> threads_ = std::make_unique<std::vector<std::thread>>();
};

}  // namespace embertable::engine
