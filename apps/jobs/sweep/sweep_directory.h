#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "apps/jobs/sweep/sweep.h"
#include "embertable/checkpoint.h"

namespace embertable::jobs {

/// The directory of a sweep, which no other sweep may use while this object lives.
class SweepDirectory {
 public:
  /// Takes a directory that is new or empty, or that of a sweep if the options resume or overwrite
  /// it. Throws ValueError for another one or for such options, StateError if another sweep goes on
  /// there, IoError.
  explicit SweepDirectory(const SweepOptions& options);

  /// Removes the sweep that the directory holds, but for the directories of these runs, which they
  /// overwrite themselves, and for the data that the runs share.
  void clear(std::span<const SweptRun> runs) const;

  std::filesystem::path results() const;  ///< a line for each finished run
  std::filesystem::path cache() const;    ///< data that the runs share
  std::filesystem::path best() const;     ///< directory of the best run

  /// Returns the directory that a run has while it trains.
  std::filesystem::path run(const std::string& id) const;

  /// Makes best() the directory of this run, and removes what another one left there.
  void prepare_best(const std::string& id) const;

 private:
  CheckpointRun held_;
  std::filesystem::path out_;
};

}  // namespace embertable::jobs
