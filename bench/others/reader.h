#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace embertable::bench {

struct ReaderBenchOptions {
  std::int64_t rows = 500'000;
  std::int64_t distinct = 0;   ///< argument of criteo_text
  std::string file;            ///< read instead of synthetic lines, or ""
  std::int64_t megabytes = 0;  ///< lines are repeated up to at least this size
  bool plain = false;          ///< read no compressed files
  int repetitions = 5;
};

/// One way to read the text, by one thread.
struct ReaderLane {
  std::string name;
  std::string what;
  double seconds = 0;  ///< median of the repetitions
};

/// Cost of reading text: lines of Criteo's layout, from files in memory, read as jobs do.
struct ReaderBenchResult {
  std::int64_t rows = 0;
  std::int64_t bytes = 0;  ///< size of the text, uncompressed
  std::int64_t keys = 0;   ///< distinct keys that the vocabulary found
  std::vector<ReaderLane> lanes;
};

/// Times all lanes alternately. Throws std::runtime_error if the files do not fit into memory.
ReaderBenchResult run_reader_bench(const ReaderBenchOptions& options);

std::string to_text(const ReaderBenchResult& result);

/// Returns one JSON object on one line; rates in MB/s of uncompressed text.
std::string to_json(const ReaderBenchResult& result);

}  // namespace embertable::bench
