#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/home_process.h"
#include "checkpoint/file.h"
#include "checkpoint/manifest.h"
#include "checkpoint/matching.h"
#include "checkpoint/reader.h"
#include "checkpoint/row_load.h"
#include "checkpoint/run_directory.h"
#include "embertable/embedding.h"
#include "engine/activation_buffer.h"
#include "engine/assembly.h"
#include "engine/configuration.h"
#include "engine/host.h"
#include "engine/reentrancy_guard.h"
#include "engine/rendezvous.h"
#include "engine/schedule.h"
#include "engine/tables.h"

namespace embertable::engine {

/// What is behind `Embedding`: the order of a program's calls, and the steps that its hosts take.
/// The stages of a step are in forward.cc and backward.cc.
class Core {
 public:
  /// executor: of an engine without a strategy; null: a pool of its own.
  Core(Nested<FeatureConfig> features, const std::optional<Optimizer>& optimizer,
       StrategyPtr strategy, EmbeddingOptions options,
       std::shared_ptr<Executor> executor = nullptr);
  ~Core();

  bool accelerated() const noexcept { return strategy_ != nullptr; }
  bool built() const noexcept { return built_; }
  std::int32_t replicas() const noexcept { return replicas_; }
  const Nested<FeatureConfig>& features() const noexcept { return features_; }
  const Nested<Shape>& shapes() const noexcept { return shapes_; }
  const Assembly& assembly() const noexcept { return assembly_; }
  Executor& executor() const noexcept { return *executor_; }
  bool verify = true;  ///< output shapes on enqueue

  // build.cc
  void build(std::span<const Shape> incoming);
  void build_from_inputs(std::span<const Shape> inputs);
  void build_from_batch_size(std::int64_t batch_size);
  std::map<TablePtr, TableView> table_views();
  ShardedVariable sharded_variable(std::string_view variable);
  std::vector<TableInfo> table_info() const;
  wire::TPUEmbeddingConfiguration configuration() const;
  MemoryReport memory() const;

  // save.cc
  std::filesystem::path save(const checkpoint::OpenRun& run, const CallerState& state,
                             const std::map<std::string, IdMap>& id_maps);
  std::string digest();

  // restore.cc
  RestoreReport restore(checkpoint::FileSystem& files, const std::filesystem::path& path,
                        const RestoreOptions& options);

  // enqueue.cc: batches of all replicas (or one for all), or of one replica
  void enqueue(std::span<const Batch> batches, bool training, std::string_view name);
  void enqueue(std::span<const Batch> batches, const EnqueueOptions& options);
  void enqueue(std::int32_t replica, const Batch& batch, bool training, std::string_view name);
  void enqueue(std::int32_t replica, const Batch& batch, const EnqueueOptions& options);

  // steps.cc
  Activations dequeue(const DequeueOptions& options);
  void dequeue(std::span<const std::span<float>> out, const DequeueOptions& options);
  Activations dequeue(std::int32_t replica, const DequeueOptions& options);
  void apply_gradients(std::span<const Nested<Gradient>> gradients);
  void apply_gradients(std::int32_t replica, const Nested<Gradient>& gradients);
  LookupResult look_up(std::span<const Batch> batches, bool training);
  void apply_gradients(LookupToken&& token, std::span<const Nested<Gradient>> gradients);
  void drop(Step* step) noexcept;

  // gradients.cc
  GradientSumsOfTable gradient_sums(std::string_view table);

  /// Throws StateError where a step failed.
  void require_sound(std::string_view call) const;

  /// The tables that the strategy holds now, those of a later engine if they are alike, with no
  /// update pending. Throws StateError if not built, gone or not alike.
  Tables& settled_tables(std::string_view call);
  std::int64_t step() const noexcept { return taken_; }

  // Of a plain engine whose rows another class steps: a step was taken, or it failed in its middle.
  void count_step() noexcept { ++taken_, ++steps_; }
  void fail_in_step(const char* why);
  const StepStatistics& statistics() const noexcept { return statistics_; }

 private:
  void require_accelerated(std::string_view call) const;
  void require_built(std::string_view call) const;
  void require_home(std::string_view call) const;
  void warn(const std::string& text) const;
  Tables& held_tables() const;
  void require_alike(const Tables& held, std::string_view call) const;
  Tables& tables() const;

  // build.cc
  Sharding sharding() const noexcept;
  void use_shapes(std::span<const Shape> shapes);
  void check_shapes_of_cores(std::span<const Shape> shapes) const;
  Topology topology() const;
  void log_configuration(std::span<const Shape> shapes) const;
  std::unique_ptr<HostTeam> make_team() const;

  // save.cc
  checkpoint::Manifest manifest() const;

  // restore.cc
  void require_restorable() const;
  void require_mending(const checkpoint::Matching& matching) const;
  std::size_t num_variables() const;
  std::vector<checkpoint::RowTarget> targets(const Tables& tables,
                                             const checkpoint::Matching& matching) const;
  std::shared_ptr<Tables> read_anew(const checkpoint::Reader& reader,
                                    const checkpoint::Matching& matching);
  std::string half_read(const char* why);
  void read_in_place(const checkpoint::Reader& reader, const checkpoint::Matching& matching);

  /// The batches that one call brings, and whose they are.
  struct Feed {
    std::span<const Batch> batches;    ///< one, or one for each replica
    std::int32_t first = 0, last = 0;  ///< cores first <= c < last are fed
    bool cut = false;                  ///< a batch is its replica's, whose cores share it
    bool training = true;
    std::string_view name = {};
    Schedule::Timeout timeout = {};
  };

  // enqueue.cc
  Feed feed_of_all(std::span<const Batch> batches, bool training) const;
  Feed feed_of(std::int32_t replica, const Batch& batch, bool training) const;
  void require_feedable() const;
  void enqueue(Feed feed);
  const Batch& batch_of(const Feed& feed, std::int32_t core) const;
  std::int64_t parts(const Feed& feed) const { return feed.cut ? cores_per_replica_ : 1; }
  std::int32_t replica_of(std::int32_t core) const { return core / cores_per_replica_; }
  void check_batches(const Feed& feed, std::string_view call) const;
  void prepare(const Feed& feed);
  void build_for(const Feed& feed);
  std::vector<Shape> detect_shapes(const Feed& feed) const;
  Shape detected_shape(const Feed& feed, const Batch& batch, std::int64_t feature) const;
  void check_weights_structure(const Batch& batch) const;
  void read_once(const Feed& feed, const Batch& batch, std::int32_t replica,
                 std::span<const Shape> shapes) const;

  // reading.cc
  void read(Step& step, const Feed& feed);
  void cut_for_cores(Step& step, const Feed& feed, std::int32_t first_core);
  void start_reading(Step& step, const Feed& feed, std::int32_t core);
  void finish_reading(Step& step, const Feed& feed);
  std::int64_t expected_entries(const Feed& feed, const Batch& batch, std::size_t table) const;
  double expected_bytes(std::size_t table, std::int64_t entries) const;
  std::int64_t buckets_for_balance(std::size_t table, std::int64_t entries,
                                   std::int64_t all_entries) const;
  double bucket_bytes(const Feed& feed, const Batch& batch) const;
  void choose_buckets(Step& step, const Feed& feed, const Batch& batch);

  // batch_size.cc
  void check_revision() const;
  std::span<const Batch> with_batch_size(std::span<const Batch> batches, std::string_view call,
                                         std::vector<Batch>& sized) const;
  std::vector<Shape> shapes_of_batch_size(const Feed& feed) const;
  wire::TPUEmbeddingConfiguration by_revision(wire::TPUEmbeddingConfiguration of) const;

  // gradients.cc
  void take_gradients(Step& step, std::int32_t replica, const Nested<Gradient>& gradients,
                      bool copy);
  void point_cores_at(Step& step, std::int32_t replica, std::int64_t feature,
                      const float* gradient);
  void take_step(Step& step, FunctionRef<const Nested<Gradient>&(std::int32_t)> gradients,
                 bool copy);
  void check_finite(Step& step) const;
  void check_finite(Step& step, std::int32_t core, std::int64_t feature) const;
  std::string reached_row(Step& step, std::int32_t core, std::int64_t feature,
                          std::int64_t sample) const;

  // steps.cc
  std::unique_lock<StepMutex> lock_steps(std::string_view call);
  void take_next_step(const DequeueOptions& options, bool sequential,
                      FunctionRef<void(Step&)> look_up);
  std::int64_t activation_floats(Step& step, std::int32_t core, std::int64_t feature) const;
  Shape activation_shape(Step& step, std::int32_t replica, std::int64_t feature) const;
  std::span<const Shape> activation_shapes(Step& step);
  std::span<const std::span<float>> values_by_core(Step& step,
                                                   std::span<const std::span<float>> out);
  void check_outputs(Step& step, std::span<const std::span<float>> out);
  void forward(Step& step, std::span<const std::span<float>> out);
  void forward_and_flush(Step& step, std::span<const std::span<float>> out);
  void take_back(Step& step);
  void fail(std::string when_and_why);
  static Schedule::Timeout checked_timeout(std::string_view call, const Schedule::Timeout& timeout);
  void update_or_defer(Step& step);
  void update(Step& step);
  void add_up_statistics();
  void flush();
  ActivationBuffer* look_up_step(Step& step);
  void check_gradient_count(std::span<const Nested<Gradient>> gradients) const;

  Nested<FeatureConfig> features_;
  const EmbeddingOptions options_;
  const StrategyPtr strategy_;
  const Assembly assembly_;
  const std::int32_t replicas_;
  const std::int32_t cores_per_replica_;
  const std::int32_t cores_;  ///< what a step counts as replicas
  const std::int32_t hosts_;
  const SimdLevel level_ = simd_level();
  std::shared_ptr<Executor> executor_;
  Nested<Shape> shapes_;
  std::vector<FeatureSpec> specs_;  ///< by feature, with the shapes in force
  const HomeProcess home_;
  std::atomic<bool> built_ = false;
  std::shared_ptr<Tables> tables_;  ///< also before `build` once they are restored

  mutable StepMutex building_;  ///< build and the first enqueue
  std::mutex bucket_choice_;
  mutable StepMutex stepping_;  ///< forward, update, flush
  Schedule schedule_;
  Rendezvous at_dequeue_;
  Rendezvous at_apply_;
  std::shared_ptr<ActivationPool> pool_;
  std::unique_ptr<HostTeam> team_;
  std::vector<std::atomic<double>> unique_share_;  ///< by table, of host 0's last update
  std::vector<Shape> activation_shapes_;           ///< [replicas * features] of the running step
  std::vector<std::span<float>>
      core_values_;                       ///< [cores * features] of it, if replicas have several
  std::vector<std::uint8_t> sequential_;  ///< by replica, during a collective dequeue
  std::vector<const Nested<Gradient>*> given_;  ///< by replica, during a collective apply
  ActivationBuffer* lent_ = nullptr;            ///< by the last collective dequeue, to the replicas
  std::int64_t steps_ = 0;  ///< updates so far, fewer than `taken_` while one is pending
  std::atomic<std::int64_t> taken_ = 0;  ///< training batches whose gradients have been taken
  mutable std::mutex failing_;
  std::string failed_;     ///< when and why, if no step is possible before a restore
  Step* spent_ = nullptr;  ///< queued, but it cannot be looked up again
  StepStatistics statistics_;
  std::int64_t summed_step_ = 0;  ///< number of the last update in this object, 0: none yet
};

}  // namespace embertable::engine
