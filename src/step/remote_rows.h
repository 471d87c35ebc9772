#pragma once

#include <cstdint>
#include <memory>

#include "embertable/exchange.h"
#include "kernels/level.h"
#include "step/message.h"
#include "step/row_router.h"
#include "step/table_run.h"
#include "step/workers.h"

namespace embertable {

/// The rows of other hosts that the steps of one host look up. Hosts ask each other for those of a
/// step before they look it up, or one step ahead if all of them know their next step: the
/// questions then travel meanwhile. With one host there is nothing to ask.
class RemoteRows {
 public:
  /// All are borrowed.
  RemoteRows(Exchange& exchange, Messages& messages, Workers& workers, SimdLevel level);
  ~RemoteRows();

  /// True if the rows of this step were asked for one step ahead. Forgets such questions, of
  /// whichever step, if another host gave up.
  bool asked_for(const HostStep& step) noexcept;

  /// Asks for the rows of a step, unless that was done ahead, and fetches them. `has_next`: this
  /// host knows its next step. Returns whether to ask for that ahead, which all hosts then do.
  /// Collective. Throws what the exchange throws, IoError for a message of another host that does
  /// not hold what it should, and ValueError for an update that is too large.
  bool fetch(HostStep& step, bool training, bool has_next);

  /// Asks for the rows of the next step, whose number is `number`, -1 if it does not train.
  /// Collective. If it throws, the step is as before, unless the round is open: then it counts as
  /// asked. Requires: `fetch` has returned true; the step is ready for its forward.
  void ask_ahead(HostStep& next, std::int64_t number);

  /// Keeps the next step's questions until the process ends if the other hosts may still read them.
  /// Requires: no step runs any more.
  void keep_questions() noexcept;

  /// Forgets the next step's questions: the step is looked up anew.
  void drop_questions() noexcept;

  /// The same for a step that is never looked up: its round stays open, and the next `fetch` of
  /// every host finishes it.
  void leave_questions() noexcept;

  std::int64_t scratch_bytes() const noexcept { return router_.scratch_bytes(); }

 private:
  struct Kept;

  void ask(HostStep& step, Channel channel);

  Exchange& exchange_;
  Messages& messages_;
  Workers& workers_;
  const SimdLevel level_;
  RowRouter router_;
  HostStep* ahead_ = nullptr;   ///< the step that was asked for before its forward
  std::unique_ptr<Kept> kept_;  ///< for its memory
  bool left_ = false;           ///< the questions in `kept_`, of a dropped step, are not read yet
};

}  // namespace embertable
