#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/hosts/recording_exchange.h"
#include "bench/loads/load.h"
#include "bench/training/timed_lane.h"

namespace embertable::bench {

struct HostsBenchOptions {
  int repetitions = 5;
  std::int64_t rows = 0;     ///< per table; 0: the load's own, halved until it fits in memory
  std::int32_t batches = 0;  ///< batches of a pass; 0: the load's own
  std::string transport;     ///< what the report calls it; empty: see transport_name
};

/// The passes of one way of training, in seconds.
struct HostsLaneResult {
  std::string name;    ///< "mpi", "threads" or "one_host"
  std::string digest;  ///< digest of all tables after the last pass
  LaneSeconds seconds;
  double fastest = 0, slowest = 0;        ///< seconds of the steps of a pass
  double of_threads = 0;                  ///< median of the passes' rates beside `threads`
  double of_threads_without_enqueue = 0;  ///< the same for forward and backward alone
  double least_of_threads = 0, most_of_threads = 0;  ///< range of of_threads
};

/// Results of one load on several hosts.
struct HostsResult {
  Load load;  ///< the load that ran
  std::int64_t standard_rows = 0;
  int repetitions = 0;
  std::size_t lookups = 0;             ///< lookups of one pass of all replicas
  std::vector<HostsLaneResult> lanes;  ///< without MPI, `mpi` is missing
  double smallest_bytes = 0;           ///< see smallest_message_bytes, per lookup
  double other_load = 0;               ///< see OtherLoad

  // What only the lane `mpi` has.
  std::string transport;
  double bytes = 0;            ///< bytes in messages to other hosts, per lookup
  double message_seconds = 0;  ///< median time of a pass's messages alone
  double waiting = 0;          ///< most processor time of a rank while rank 0 works alone, 0..1
};

/// Makes the exchange of the processes of a launcher; null if there is none, or one process alone.
std::shared_ptr<RecordingExchange> make_hosts_exchange();

/// Times steps of a load on several hosts, pass by pass in turns: one host in each process of the
/// exchange, the same hosts as threads of the first process, and that process as one host with as
/// many threads; and the messages of the first of these alone. Every host has one replica and one
/// thread. Without an exchange there are two hosts, and the first way is left out. Collective.
/// Throws std::runtime_error, before anything runs, if a load needs more memory than is free, and
/// after the last pass if the tables of two ways differ.
HostsResult run_hosts(const Load& standard, const HostsBenchOptions& options,
                      const std::shared_ptr<RecordingExchange>& exchange);

std::string to_text(const HostsResult& result);

/// Returns one JSON object on one line. Rates are lookups per second, stages are ns per lookup.
std::string to_json(const HostsResult& result);

}  // namespace embertable::bench
