#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/progression.h"
#include "checkpoint/safetensors.h"
#include "embertable/config.h"
#include "embertable/strategy.h"

namespace embertable::checkpoint {

/// Newest version of the format: the one that is written and the highest that is read.
inline constexpr std::int64_t kFormatVersion = 1;

inline constexpr const char* kFormatName = "embertable-checkpoint";
inline constexpr const char* kManifestName = "manifest.json";

/// Bytes that one block checksum covers in the files that are written.
inline constexpr std::int64_t kBlockBytes = 1 << 20;

/// Maximum length of a manifest that is read or written.
inline constexpr std::int64_t kMaxManifestBytes = 256 << 20;

/// The hosts that held the tables at the time of the save. Not needed to read them.
struct Topology {
  std::int32_t hosts = 1;
  std::int32_t replicas_per_host = 1;
  Sharding sharding = Sharding::kDiv;
  friend bool operator==(const Topology&, const Topology&) = default;
};

struct SavedOptimizer {
  std::string rule;                     ///< "adagrad"
  std::string text;                     ///< result of `Optimizer::to_string`
  std::optional<double> learning_rate;  ///< unset: dynamic
  std::vector<std::pair<std::string, double>>
      parameters;  ///< all but the rate, in the rule's order
  friend bool operator==(const SavedOptimizer&, const SavedOptimizer&) = default;
};

struct SavedSlot {
  std::string name;
  bool row_wise = false;  ///< [vocabulary_size] instead of [vocabulary_size, dim]
  friend bool operator==(const SavedSlot&, const SavedSlot&) = default;
};

struct SavedTable {
  std::string name;
  std::int64_t vocabulary_size = 0;
  std::int32_t dim = 0;
  std::string combiner;     ///< "sum", "mean", "sqrtn"
  std::string initializer;  ///< text, "" if not given
  std::optional<QuantizationConfig> quantization;
  std::optional<SavedOptimizer> optimizer;  ///< the effective one
  std::vector<SavedSlot> slots;             ///< in the optimizer's order
  RowType row_type = RowType::kFloat32;     ///< type of the rows; slots are float32
  friend bool operator==(const SavedTable&, const SavedTable&) = default;
};

struct SavedFeature {
  std::string path;  ///< in the tree of features, "" for a bare leaf
  std::optional<std::string> name;
  std::int64_t table = 0;  ///< index into Manifest::tables
  std::int64_t max_sequence_length = 0;
  bool validate_weights_and_indices = true;
  std::optional<std::vector<std::int64_t>>
      output_shape;                   ///< shape of one replica, -1 for an unknown dim
  std::optional<std::string> id_map;  ///< name of the map that gives its rows
  friend bool operator==(const SavedFeature&, const SavedFeature&) = default;
};

/// Contents of a data file.
enum class FileKind : std::uint8_t { kTable = 0, kTensors = 1, kBlobs = 2, kIdMaps = 3 };

/// One data file after it was written, with its checksums. Travels between ranks as JSON.
struct FileRecord {
  std::string name;  ///< within the step's directory
  FileKind kind = FileKind::kTable;
  std::int64_t table = -1;  ///< index into Manifest::tables, kTable only
  std::int32_t shard = 0;   ///< kTable only
  std::int32_t shards = 1;  ///< kTable only
  Progression rows;         ///< rows of the table that this file holds; kTable only
  std::int64_t bytes = 0;
  std::vector<StoredTensor> tensors;  ///< in the order of their bytes
  std::string xxh128;                 ///< hash of all bytes
  std::int64_t block_bytes = kBlockBytes;
  std::string blocks_xxh128;  ///< 32 digits for each block; the last block may be shorter
  friend bool operator==(const FileRecord&, const FileRecord&) = default;

  std::int64_t num_blocks() const noexcept { return (bytes + block_bytes - 1) / block_bytes; }
};

/// Contents of `manifest.json`. docs/checkpoint_format.md describes every key.
struct Manifest {
  std::string library;  ///< version of the library that wrote it
  std::int64_t numerics_version = 0;
  std::int64_t step = 0;
  Topology topology;
  std::uint64_t seed = 0;
  bool pipeline_execution = false;
  std::vector<SavedTable> tables;
  std::vector<SavedFeature> features;
  std::vector<FileRecord> files;
  std::string user_json = "null";  ///< the caller's JSON, byte for byte
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

/// Returns the name of a table's slot among the variables: "<table>/<slot>".
std::string variable_name(std::string_view table, std::string_view slot);

/// Checks what every save of these tables and features needs: throws ValueError naming table or
/// feature for names that repeat, are not UTF-8 or are reserved, and for a dim above
/// TableConfig::kMaxDim. The rest is not checked.
void check_configuration(const Manifest& manifest);

/// Checks everything that a writer needs except `files`: throws ValueError naming the rule for a
/// step or size out of range, names that repeat, are not UTF-8 or are reserved, or a user_json that
/// is not JSON.
void check_savable(const Manifest& manifest);

/// Throws ValueError if the text of a manifest is longer than what is read.
void check_manifest_size(std::int64_t bytes);

/// Returns the text of `manifest.json`, checksum included.
std::string to_text(const Manifest& manifest);

/// Returns a line for each value, with the keys that lead to it: `tables.0.dim = 5`.
std::string to_lines(const Manifest& manifest);

/// Throws IoError for a newer version, DataLoss for any text that `to_text` cannot produce:
/// damaged, incomplete, or with files that do not make up the tables. Both name `path`.
Manifest parse_manifest(std::string_view text, const std::filesystem::path& path);

std::string to_json(const FileRecord& file);
FileRecord parse_file_record(std::string_view json);

}  // namespace embertable::checkpoint
