#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "base/memory.h"
#include "bench/limits/bare_loops.h"
#include "bench/loads/load_data.h"
#include "bench/machine/timing.h"
#include "embertable/executor.h"
#include "kernels/level.h"

namespace embertable::bench {

/// Worker w's equal share of `count` items, begin <= i < end.
struct Share {
  std::size_t begin, end;
  Share(std::size_t count, std::int64_t worker, std::int64_t workers)
      : begin(count * worker / static_cast<std::size_t>(workers)),
        end(count * static_cast<std::size_t>(worker + 1) / static_cast<std::size_t>(workers)) {}
  std::size_t size() const { return end - begin; }
};

/// Calls `part(worker, workers)` once for each worker of the executor and adds up what the calls
/// return, so that the compiler drops nothing that they read.
void run_parts(Executor& executor, FunctionRef<float(std::int64_t, std::int64_t)> part);

/// Returns memory for `count` floats of that value, backed by pages.
Mapping filled_floats(std::size_t count, float value, Executor& executor);

/// Seconds of one bare loop. Its limit is the result with the best way of fetching.
class LoopTimes {
 public:
  static constexpr FetchAhead kWays[] = {{8}, {16}, {32}, {64}, {128}, {16, true}, {32, true}};

  /// Times a call of `loop` with each way of fetching.
  template <class Loop>
  void run(const Loop& loop) {
    for (std::size_t i = 0; i < std::size(kWays); ++i) add(i, seconds_of([&] { loop(kWays[i]); }));
  }

  /// Adds the seconds of one call with way number `way`.
  void add(std::size_t way, double seconds) { seconds_[way].push_back(seconds); }

  /// Returns the median of the best way; 0 if the loop never ran.
  double median() const;

 private:
  std::vector<double> seconds_[std::size(kWays)];
};

/// Seconds that this machine needs to move a load's bytes in one pass over all batches, when it
/// does nothing else.
struct LimitSeconds {
  double gather = 0;      ///< every row that is looked up is read
  double update = 0;      ///< every row that a batch names is read and written, once a batch
  double gather_all = 0;  ///< also: activations are written
  double update_all = 0;  ///< also: slots are read and written, gradients read once
  double turns = 0;       ///< both over all bytes, batch by batch in turns with a step

  double step() const { return gather + update; }
  double step_all() const { return gather_all + update_all; }
};

/// What the bare loops move.
enum class Moves : std::uint8_t {
  kRows,
  kRecords,  ///< rows with their slots
  kAll,      ///< also activations and gradients
};

/// Runs the bare loops of a load on tables of their own, whose slots are those of the load's rules.
class Limits {
 public:
  /// Borrows data and executor.
  Limits(const LoadData& data, Executor& executor);

  /// Times one pass of each loop over all bytes with each way of fetching, and, if `rows_alone`, of
  /// the loops over the rows alone.
  void run(bool rows_alone);

  /// Reads and writes the rows of all batches.
  void update_pass(const FetchAhead& ahead, Moves moves);

  /// Moves all bytes of one batch with one of LoopTimes::kWays. A step that follows finds in the
  /// caches what a model's other work would leave of its rows, and so does a turn that follows a
  /// step.
  void take_turn(std::size_t batch, std::size_t way);

  /// Ends a pass of turns that all went that way, and keeps its times if it counts.
  void end_turns(std::size_t way, bool counts);

  /// Returns medians. Those of loops that never ran are 0.
  LimitSeconds median() const;

 private:
  /// A table in plain memory: rows followed by their full-size slots, other slots as arrays of
  /// their own. Rows of bfloat16 are moved as half as many floats.
  struct Table {
    std::size_t dim = 0;
    std::size_t row_floats = 0;
    std::size_t record_floats = 0;
    Mapping records;
    std::vector<Mapping> row_slots;
    std::vector<float*> row_slot;
  };

  void gather(std::size_t batch, const FetchAhead& ahead, Moves moves);
  void gather_pass(const FetchAhead& ahead, Moves moves);
  void update(std::size_t batch, const FetchAhead& ahead, Moves moves);

  const LoadData& data_;
  Executor& executor_;
  const SimdLevel level_ = simd_level();
  std::vector<Table> tables_;
  std::vector<std::vector<std::vector<std::uint32_t>>> named_;  ///< by batch, then by table
  Mapping activations_;
  std::size_t next_gradient_ = 0;
  LoopTimes gather_, update_, gather_all_, update_all_;
  LoopTimes gather_turns_, update_turns_;
  double gather_pass_ = 0, update_pass_ = 0;  ///< seconds of the turns of this pass
};

}  // namespace embertable::bench
