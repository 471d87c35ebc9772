#include "bench/others/reader.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "apps/jobs/data/data_set.h"
#include "apps/jobs/keys/field_keys.h"
#include "bench/machine/timing.h"
#include "bench/others/criteo_text.h"

namespace embertable::bench {
namespace {

using jobs::CsvReader;
using jobs::FieldKeys;

constexpr std::int64_t kBuffer = 1 << 20;

/// A file in memory.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& content) : file_(memfd_create("text", MFD_CLOEXEC)) {
    for (std::size_t done = 0; done < content.size();) {
      const ssize_t got = write(file_, content.data() + done, content.size() - done);
      if (got <= 0) throw std::runtime_error("cannot write a file in memory");
      done += static_cast<std::size_t>(got);
    }
  }
  ~MemoryFile() { close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return fmt::format("/proc/self/fd/{}", file_); }

 private:
  int file_;
};

std::string gzip(const std::string& text) {
  z_stream stream = {};
  constexpr int kGzip = 16 + MAX_WBITS;
  deflateInit2(&stream, 6, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY);
  std::string packed;
  std::string part(kBuffer, '\0');
  for (std::size_t begin = 0; begin <= text.size(); begin += kBuffer) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data() + begin));
    stream.avail_in = static_cast<uInt>(std::min<std::size_t>(kBuffer, text.size() - begin));
    do {
      stream.next_out = reinterpret_cast<Bytef*>(part.data());
      stream.avail_out = static_cast<uInt>(part.size());
      deflate(&stream, begin + kBuffer > text.size() ? Z_FINISH : Z_NO_FLUSH);
      packed.append(part, 0, part.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  }
  deflateEnd(&stream);
  return packed;
}

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

/// Returns the text of a file, or synthetic text, repeated as the options say.
std::string text_of(const ReaderBenchOptions& options) {
  if (options.file.empty() && options.megabytes == 0)
    return criteo_text(options.rows, options.distinct);
  std::string text;
  if (options.file.empty()) {
    text = criteo_text(options.rows, options.distinct);
  } else {
    jobs::TextSource source(options.file);
    std::string buffer(kBuffer, '\0');
    while (const std::int64_t got = source.read(buffer.data(), kBuffer))
      text.append(buffer, 0, static_cast<std::size_t>(got));
    if (text.empty() || text.back() != '\n') text += '\n';
  }
  const std::size_t once = text.size();
  while (std::ssize(text) < options.megabytes * 1'000'000) text.append(text, 0, once);
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

/// Returns the map of keys that a trained job would save.
IdMap map_of(const std::string& path, const jobs::KeyRules& rules) {
  return read_records(path, rules).column("field").keys.id_map();
}

struct Reading {
  std::string name;
  std::string what;
  std::function<std::int64_t()> run;
  std::vector<double> seconds = {};
};

}  // namespace

ReaderBenchResult run_reader_bench(const ReaderBenchOptions& options) {
  const std::string text = text_of(options);
  const MemoryFile plain(text), gz(options.plain ? "" : gzip(text)),
      zst(options.plain ? "" : zstd(text));
  ReaderBenchResult result{
      .rows = count_lines(text.data(), std::ssize(text)), .bytes = std::ssize(text), .lanes = {}};
  const jobs::KeyRules vocabulary = {.kind = KeyKind::kString, .by_column = true, .min_count = 2};
  const jobs::KeyRules hashed = {.kind = KeyKind::kString, .by_column = true, .hash_rows = 1 << 20};
  const IdMap known = map_of(plain.path(), vocabulary);
  std::vector<Reading> lanes = {
      {"memory", "64-bit words added up", [&] { return add_up(text); }},
      {"limit", "read, line ends found by memchr", [&] { return scan(plain.path()); }},
      {"parse", "cut into 40 fields", [&] { return parse(plain.path()); }},
      {"vocabulary", "+ 13 buckets, 39 keys numbered and counted",
       [&] { return result.keys = look_up(plain.path(), vocabulary); }},
      {"find", "+ 13 buckets, 39 keys found among those of a saved map",
       [&] { return look_up(plain.path(), vocabulary, &known); }},
      {"hash", "+ 13 buckets, 39 keys hashed to 2^20 rows",
       [&] { return look_up(plain.path(), hashed); }},
      {"job", "as vocabulary, and parts, rows of kept keys, samples in memory",
       [&] { return read_records(plain.path(), vocabulary).samples.size(); }},
      {"job hash", "as hash, and parts, samples in memory",
       [&] { return read_records(plain.path(), hashed).samples.size(); }}};
  if (!options.plain) {
    const Reading compressed[] = {
        {"gzip limit", "decompressed, line ends found", [&] { return scan(gz.path()); }},
        {"gzip", "decompressed, as vocabulary", [&] { return look_up(gz.path(), vocabulary); }},
        {"zstd limit", "decompressed, line ends found", [&] { return scan(zst.path()); }},
        {"zstd", "decompressed, as vocabulary", [&] { return look_up(zst.path(), vocabulary); }}};
    lanes.insert(lanes.end(), std::begin(compressed), std::end(compressed));
  }
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    for (Reading& lane : lanes) {
      lane.seconds.push_back(seconds_of([&] {
        if (lane.run() == 0) throw std::runtime_error("the text has gone");
      }));
    }
  }
  for (const Reading& lane : lanes)
    result.lanes.push_back({lane.name, lane.what, median(lane.seconds)});
  return result;
}

std::string to_text(const ReaderBenchResult& result) {
  std::string text = fmt::format(
      "reader: {} lines of Criteo's layout, {:.1f} MB in memory, one thread; {} rows of keys\n",
      result.rows, static_cast<double>(result.bytes) * 1e-6, result.keys);
  for (const ReaderLane& lane : result.lanes) {
    text += fmt::format("  {:<11} {:8.0f} MB/s  {:6.0f} ns a line   {}\n", lane.name,
                        static_cast<double>(result.bytes) * 1e-6 / lane.seconds,
                        lane.seconds * 1e9 / static_cast<double>(result.rows), lane.what);
  }
  text.pop_back();
  return text;
}

std::string to_json(const ReaderBenchResult& result) {
  nlohmann::ordered_json json = {
      {"bench", "reader"}, {"rows", result.rows}, {"bytes", result.bytes}, {"keys", result.keys}};
  for (const ReaderLane& lane : result.lanes)
    json["mb_per_s"][lane.name] = static_cast<double>(result.bytes) * 1e-6 / lane.seconds;
  return json.dump();
}

}  // namespace embertable::bench
