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
#include "engine/host.h"
#include "engine/rendezvous.h"
#include "engine/schedule.h"
#include "engine/step_mutex.h"
#include "engine/tables.h"

namespace embertable::engine {

/// What is behind `Embedding`: the order of a program's calls, and the steps that its hosts take.
/// The stages of a step are in forward.cc and backward.cc.
class Core {
 public:
  Core(Nested<FeatureConfig> features, const std::optional<Optimizer>& optimizer,
       StrategyPtr strategy, EmbeddingOptions options);
  ~Core();

  bool accelerated() const noexcept { return strategy_ != nullptr; }
  bool built() const noexcept { return built_; }
  std::int32_t replicas() const noexcept { return replicas_; }
  const Nested<FeatureConfig>& features() const noexcept { return features_; }
  const Nested<Shape>& shapes() const noexcept { return shapes_; }
  const Assembly& assembly() const noexcept { return assembly_; }
  bool verify = true;  ///< output shapes on enqueue

  // build.cc
  void build(std::span<const Shape> incoming);
  void build_from_inputs(std::span<const Shape> inputs);
  void build_from_batch_size(std::int64_t batch_size);
  std::map<TablePtr, TableView> table_views();
  std::vector<TableInfo> table_info() const;
  EngineRecord record() const;
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
  void enqueue(std::int32_t replica, const Batch& batch, bool training, std::string_view name);

  // steps.cc
  Activations dequeue();
  void dequeue(std::span<const std::span<float>> out);
  Activations dequeue(std::int32_t replica);
  void apply_gradients(std::span<const Nested<Gradient>> gradients);
  void apply_gradients(std::int32_t replica, const Nested<Gradient>& gradients);
  LookupResult look_up(std::span<const Batch> batches, bool training);
  void apply_gradients(LookupToken&& token, std::span<const Nested<Gradient>> gradients);
  void drop(Step* step) noexcept;

  // gradients.cc
  GradientSumsOfTable gradient_sums(std::string_view table);

  /// The tables, with no update pending. Throws StateError if not built or gone.
  Tables& settled_tables(std::string_view call);
  std::int64_t step() const noexcept { return taken_; }
  const StepStatistics& statistics() const noexcept { return statistics_; }

 private:
  void require_accelerated(std::string_view call) const;
  void require_built(std::string_view call) const;
  void require_sound(std::string_view call) const;
  void require_home(std::string_view call) const;
  void warn(const std::string& text) const;
  Tables& tables() const;

  // build.cc
  Sharding sharding() const noexcept;
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

  // enqueue.cc
  std::vector<Shape> detect_shapes(std::span<const Batch> batches) const;
  Shape detected_shape(const Batch& batch, std::int64_t feature) const;
  void check_against_built(const Batch& batch) const;
  void build_for(std::span<const Batch> batches);
  void prepare(std::span<const Batch> batches);
  void use_shapes(std::span<const Shape> shapes);
  void start_reading(Step& step, std::int32_t replica, const Batch& batch, bool training);
  void finish_reading(Step& step, std::int32_t first, std::int32_t last);
  void choose_buckets(Step& step, const Batch& batch);
  const Batch& batch_of(std::span<const Batch> batches, std::int32_t replica) const;
  void check_batches(std::span<const Batch> batches, std::string_view call) const;

  // batch_size.cc
  void check_revision() const;
  std::span<const Batch> with_batch_size(std::span<const Batch> batches, std::string_view call,
                                         std::vector<Batch>& sized) const;
  std::vector<Shape> shapes_of_batch_size(std::span<const Batch> batches) const;

  // gradients.cc
  void take_gradients(Step& step, std::int32_t replica, const Nested<Gradient>& gradients,
                      bool copy);
  void take_step(Step& step, FunctionRef<const Nested<Gradient>&(std::int32_t)> gradients,
                 bool copy);
  void check_finite(Step& step) const;
  void check_finite(Step& step, std::int32_t replica, std::int64_t feature) const;
  std::string reached_row(Step& step, std::int32_t replica, std::int64_t feature,
                          std::int64_t sample) const;
  void take_rates(Step& step) const;

  // steps.cc
  std::unique_lock<StepMutex> lock_steps(std::string_view call);
  std::span<const Shape> activation_shapes(Step& step);
  void forward(Step& step, std::span<const std::span<float>> out);
  void forward_and_flush(Step& step, std::span<const std::span<float>> out);
  void take_back(Step& step);
  void fail_in_step(const char* why);
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
  const std::int32_t hosts_;
  const SimdLevel level_ = simd_level();
  std::shared_ptr<Executor> executor_;
  Nested<Shape> shapes_;
  std::vector<FeatureSpec> specs_;  ///< by feature, with the shapes in force
  const HomeProcess home_;
  std::atomic<bool> built_ = false;
  std::shared_ptr<Tables> tables_;  ///< also before `build` once they are restored

  StepMutex building_;  ///< build and the first enqueue
  std::mutex bucket_choice_;
  std::vector<std::unique_ptr<std::mutex>>
      reading_;         ///< by replica: batches in the order of the calls
  StepMutex stepping_;  ///< forward, update, flush
  Schedule schedule_;
  Rendezvous at_dequeue_;
  Rendezvous at_apply_;
  std::shared_ptr<ActivationPool> pool_;
  std::unique_ptr<HostTeam> team_;
  std::vector<std::atomic<double>> unique_share_;  ///< by table, of host 0's last update
  std::vector<Shape> activation_shapes_;           ///< [replicas * features] of the running step
  std::vector<const Nested<Gradient>*> given_;     ///< by replica, during a collective apply
  ActivationBuffer* lent_ = nullptr;  ///< by the last collective dequeue, to the replicas
  std::int64_t steps_ = 0;            ///< updates so far, fewer than `taken_` while one is pending
  std::atomic<std::int64_t> taken_ = 0;  ///< training batches whose gradients have been taken
  mutable std::mutex failing_;
  std::string failed_;     ///< when and why, if no step is possible before a restore
  Step* spent_ = nullptr;  ///< queued, but it cannot be looked up again
  StepStatistics statistics_;
  std::int64_t summed_step_ = 0;  ///< number of the last update in this object, 0: none yet
};

}  // namespace embertable::engine
