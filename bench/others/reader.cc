// embertable-bench reader reads lines of Criteo's layout from files in memory, as jobs do.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "apps/jobs/data/data_set.h"
#include "apps/jobs/keys/field_keys.h"
#include "bench/commands/commands.h"
#include "bench/commands/report.h"
#include "bench/machine/timing.h"

namespace embertable::bench {
namespace {

using jobs::CsvReader;
using jobs::FieldKeys;

struct ReaderBenchOptions {
  std::int64_t rows = 500'000;
  std::string file;    ///< read instead of synthetic lines, or ""
  bool plain = false;  ///< read no compressed files
};

constexpr std::int64_t kBuffer = 1 << 20;

constexpr int kCriteoColumns = 40;
constexpr int kCriteoNumbers = 13;

/// Number of distinct values in the columns C1 to C26.
constexpr int kDifferent[] = {585,    523,   56'125, 29'645, 145, 12,     8'405,  278,   3,
                              13'323, 4'012, 51'268, 2'914,  26,  5'708,  42'301, 10,    2'766,
                              1'307,  4,     47'557, 13,     14,  13'710, 55,     10'461};

/// Uniform in [0, 1).
double uniform(std::uint64_t& state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return static_cast<double>(state >> 11) * 0x1p-53;
}

void append_number(std::string& text, std::uint64_t& state) {
  const double kind = uniform(state);
  if (kind < 0.15) return;
  if (kind < 0.17) {
    text += "-1";
  } else {
    const double value = std::exp(12 * std::pow(uniform(state), 3));
    text += std::to_string(static_cast<std::int64_t>(value) - 1);
  }
}

void append_category(std::string& text, std::uint64_t& state, int column) {
  if (uniform(state) < 0.05) return;
  const auto value = static_cast<std::uint64_t>(kDifferent[column] * std::pow(uniform(state), 4));
  std::uint64_t hash = (value + 1) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(column);
  hash ^= hash >> 29;
  hash *= 0xbf58476d1ce4e5b9u;
  for (int digit = 0; digit < 8; ++digit)
    text += "0123456789abcdef"[(hash >> (32 + 4 * digit)) & 15];
}

/// Makes synthetic lines in the layout of Criteo's click logs: a label, 13 whole numbers and 26
/// texts of 8 hexadecimal digits, tab-separated, some empty. A column has as many distinct texts as
/// in the challenge's sample of 123,425 lines, a few of them most frequent. Equal arguments give
/// equal lines.
std::string criteo_text(std::int64_t rows) {
  std::string text;
  std::uint64_t state = 1;
  for (std::int64_t row = 0; row < rows; ++row) {
    text += uniform(state) < 0.256 ? '1' : '0';
    for (int column = 0; column < kCriteoNumbers; ++column) {
      text += '\t';
      append_number(text, state);
    }
    for (int column = 0; column < kCriteoColumns - 1 - kCriteoNumbers; ++column) {
      text += '\t';
      append_category(text, state, column);
    }
    text += '\n';
  }
  return text;
}

/// A file in memory.
class MemoryFile {
 public:
  MemoryFile() : file_(memfd_create("text", MFD_CLOEXEC)) {}
  ~MemoryFile() { close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return fmt::format("/proc/self/fd/{}", file_); }

  void write(std::string_view content) const {
    std::ofstream file(path(), std::ios::binary);
    if (!file.write(content.data(), std::ssize(content)).flush())
      throw std::runtime_error("cannot write a file in memory");
  }

  void write_gzip(std::string_view content) const {
    const gzFile packed = gzopen(path().c_str(), "wb6");
    for (std::size_t at = 0; at < content.size(); at += kBuffer) {
      const std::string_view part = content.substr(at, kBuffer);
      gzwrite(packed, part.data(), static_cast<unsigned>(part.size()));
    }
    if (gzclose(packed) != Z_OK) throw std::runtime_error("cannot write a file in memory");
  }

 private:
  int file_;
};

std::string zstd(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

std::int64_t count_lines(const char* text, std::int64_t size) {
  std::int64_t lines = 0;
  const char* const end = text + size;
  while ((text = static_cast<const char*>(
              std::memchr(text, '\n', static_cast<std::size_t>(end - text)))) != nullptr) {
    ++lines;
    ++text;
  }
  return lines;
}

/// Reads the bytes and searches them for the ends of lines, which every reader has to do.
std::int64_t scan(const std::string& path) {
  jobs::TextSource source(path);
  std::string buffer(kBuffer, '\0');
  std::int64_t lines = 0;
  while (const std::int64_t got = source.read(buffer.data(), kBuffer))
    lines += count_lines(buffer.data(), got);
  return lines;
}

/// Reads the same bytes and adds them up, which is the least work that needs all of them.
std::int64_t add_up(const std::string& text) {
  std::uint64_t sum = 1;
  for (std::size_t i = 0; i + sizeof(sum) <= text.size(); i += sizeof(sum)) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + i, sizeof(word));
    sum += word;
  }
  return static_cast<std::int64_t>(sum | 1);
}

/// Returns the text of a file, whose last line ends, or synthetic text.
std::string text_of(const ReaderBenchOptions& options) {
  if (options.file.empty()) return criteo_text(options.rows);
  std::string text;
  jobs::TextSource source(options.file);
  std::string buffer(kBuffer, '\0');
  while (const std::int64_t got = source.read(buffer.data(), kBuffer))
    text.append(buffer, 0, static_cast<std::size_t>(got));
  if (text.empty() || text.back() != '\n') text += '\n';
  return text;
}

std::vector<std::string> numbers(int first, int last) {
  std::vector<std::string> columns;
  for (int column = first; column <= last; ++column) columns.push_back(std::to_string(column));
  return columns;
}

const jobs::CsvFormat kFormat = {.separator = '\t', .header = false};

std::int64_t parse(const std::string& path) {
  CsvReader reader(path, kFormat, numbers(1, kCriteoColumns));
  std::int64_t bytes = 0;
  while (reader.next()) bytes += std::ssize(reader.text(kCriteoColumns - 1));
  return bytes;
}

/// Reads labels, and ids of the 39 other columns: rows of `known` keys, or of all keys in the order
/// in which they come. Returns how many keys there are.
std::int64_t look_up(const std::string& path, const jobs::KeyRules& rules,
                     const IdMap* known = nullptr) {
  constexpr std::int64_t kWidth = kCriteoColumns - 1;
  CsvReader reader(path, kFormat, numbers(1, kCriteoColumns));
  std::vector<jobs::KeyField> fields;
  for (std::size_t column = 1; column < kCriteoColumns; ++column)
    fields.push_back({column, column <= kCriteoNumbers});
  const std::vector<std::string> names = numbers(2, kCriteoColumns);
  FieldKeys keys =
      known == nullptr ? FieldKeys(rules, fields, names) : FieldKeys(rules, fields, names, *known);
  const std::vector<std::uint8_t> trains(FieldKeys::kQueue, 1);
  std::vector<std::int32_t> ids(FieldKeys::kQueue * kWidth);
  double labels = 0;
  for (std::size_t queued = 0; reader.next();) {
    labels += reader.number(0);
    keys.push(reader);
    if (++queued < trains.size()) continue;
    keys.number(trains, ids.data(), kWidth);
    queued = 0;
  }
  return labels >= 0 ? keys.vocabulary().num_rows() : 0;
}

/// Does everything that a job does with its records before it trains: labels, parts, the rows of
/// keys.
jobs::DataSet read_records(const std::string& path, const jobs::KeyRules& rules) {
  jobs::RecordsSpec records;
  records.data = {.file = {{path}, kFormat}, .label = "1", .lowest = 0, .highest = 1};
  records.ids.push_back({.name = "field",
                         .columns = numbers(2, kCriteoColumns),
                         .buckets = numbers(2, 1 + kCriteoNumbers),
                         .rules = rules});
  return jobs::read_data(records, {.root = ""});
}

/// One way to read the text, by one thread.
struct ReaderLane {
  std::string name;
  std::string what;
  std::function<std::int64_t()> run;
  std::vector<double> seconds = {};
};

/// Times all lanes alternately; rates are those of uncompressed text. Throws std::runtime_error if
/// the files do not fit into memory.
void run_reader(const ReaderBenchOptions& options, const CommonOptions& common) {
  const std::string text = text_of(options);
  const MemoryFile plain, gz, zst;
  plain.write(text);
  if (!options.plain) {
    gz.write_gzip(text);
    zst.write(zstd(text));
  }
  const std::int64_t rows = count_lines(text.data(), std::ssize(text));
  const jobs::KeyRules vocabulary = {.kind = KeyKind::kString, .by_column = true, .min_count = 2};
  const jobs::KeyRules hashed = {.kind = KeyKind::kString, .by_column = true, .hash_rows = 1 << 20};
  const IdMap saved = read_records(plain.path(), vocabulary).column("field").keys.id_map();
  std::int64_t keys = 0;
  std::vector<ReaderLane> lanes = {
      {"memory", "64-bit words added up", [&] { return add_up(text); }},
      {"limit", "read, line ends found by memchr", [&] { return scan(plain.path()); }},
      {"parse", "cut into 40 fields", [&] { return parse(plain.path()); }},
      {"vocabulary", "+ 13 buckets, 39 keys numbered and counted",
       [&] { return keys = look_up(plain.path(), vocabulary); }},
      {"find", "+ 13 buckets, 39 keys found among those of a saved map",
       [&] { return look_up(plain.path(), vocabulary, &saved); }},
      {"hash", "+ 13 buckets, 39 keys hashed to 2^20 rows",
       [&] { return look_up(plain.path(), hashed); }},
      {"job", "as vocabulary, and parts, rows of kept keys, samples in memory",
       [&] { return read_records(plain.path(), vocabulary).samples.size(); }},
      {"job hash", "as hash, and parts, samples in memory",
       [&] { return read_records(plain.path(), hashed).samples.size(); }},
      {"gzip limit", "decompressed, line ends found", [&] { return scan(gz.path()); }},
      {"gzip", "decompressed, as vocabulary", [&] { return look_up(gz.path(), vocabulary); }},
      {"zstd limit", "decompressed, line ends found", [&] { return scan(zst.path()); }},
      {"zstd", "decompressed, as vocabulary", [&] { return look_up(zst.path(), vocabulary); }}};
  if (options.plain) lanes.resize(lanes.size() - 4);
  for (int repetition = 0; repetition < common.repetitions; ++repetition) {
    for (ReaderLane& lane : lanes) {
      lane.seconds.push_back(seconds_of([&] {
        if (lane.run() == 0) throw std::runtime_error("the text has gone");
      }));
    }
  }
  Json figures = {{"bench", "reader"}, {"rows", rows}, {"bytes", text.size()}, {"keys", keys}};
  const double megabytes = static_cast<double>(text.size()) * 1e-6;
  std::string table = fmt::format(
      "reader: {} lines of Criteo's layout, {:.1f} MB in memory, one thread; {} rows of keys\n",
      rows, megabytes, keys);
  for (const ReaderLane& lane : lanes) {
    const double seconds = median(lane.seconds);
    figures["mb_per_s"][lane.name] = megabytes / seconds;
    table += fmt::format("  {:<11} {:8.0f} MB/s  {:6.0f} ns a line   {}\n", lane.name,
                         megabytes / seconds, seconds * 1e9 / static_cast<double>(rows), lane.what);
  }
  print(common.json, figures, table);
}

}  // namespace

Command add_reader(CLI::App& app, CommonOptions& common) {
  CLI::App* command = app.add_subcommand(
      "reader", "Reads lines of Criteo's layout; rates beside that of finding their ends");
  auto options = std::make_shared<ReaderBenchOptions>();
  CLI::Option* rows = add_number(*command, "--rows", options->rows, "Lines", 1000, kMostRows);
  command
      ->add_option("--file", options->file,
                   "Lines of Criteo's layout, plain or compressed, in place of made-up ones")
      ->excludes(rows);
  command->add_flag("--plain", options->plain, "No compressed files");
  return CommonAdder(*command, common).repetitions(5).json().runs([options, &common] {
    run_reader(*options, common);
  });
}

}  // namespace embertable::bench
