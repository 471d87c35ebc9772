#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/block_file.h"
#include "checkpoint/file.h"
#include "checkpoint/manifest.h"
#include "embertable/checkpoint.h"

namespace embertable::checkpoint {

class VariableReader;

/// One saved step, opened for reading: its manifest is checked, data are checked as they are read.
/// Immutable; its calls may run on several threads at once.
class Reader {
 public:
  /// `path` is a step's directory, or a run's, of which the latest step is opened. Throws IoError
  /// if there is none, a newer format or a failing disk; DataLoss naming the file for a manifest
  /// that is damaged or contradicts itself, and for data files that are missing or have another
  /// size.
  Reader(FileSystem& files, const std::filesystem::path& path);

  /// Why higher steps of the run were not taken, one text each.
  const std::vector<std::string>& skipped() const noexcept { return skipped_; }

  /// Directory of the step.
  const std::filesystem::path& directory() const noexcept { return directory_; }
  const Manifest& manifest() const noexcept { return manifest_; }
  FileSystem& files() const noexcept { return *files_; }

  /// A variable by its name, "video" or "video/accumulators". Throws KeyError naming directory and
  /// variable. The reader must outlive it.
  VariableReader variable(std::string_view name) const;

  /// slot -1: the parameters. Indices are those of the manifest.
  VariableReader variable(std::int64_t table, std::int32_t slot) const;

  /// What the caller put in, with or without the tensors. Throws IoError, DataLoss.
  CallerState caller_state(bool with_tensors = true) const;

  /// By name.
  std::map<std::string, std::string> id_maps() const;

  /// Reads every byte and checks every checksum.
  void verify() const;

 private:
  friend class VariableReader;

  /// Reads the tensors of the file of a kind, if there is one: take(tensor, bytes).
  template <class Take>
  void read_tensors(FileKind kind, Take take) const;

  FileSystem* files_;
  std::filesystem::path directory_;
  std::vector<std::string> skipped_;
  Manifest manifest_;
};

/// Reads rows of one variable, whichever files they are in. Keeps files and their last blocks open.
/// For one thread.
class VariableReader {
 public:
  std::int64_t rows() const noexcept { return rows_; }
  std::int64_t width() const noexcept {
    return width_;
  }  ///< floats per row: dim, or 1 for a row-wise slot

  /// Row wanted[i] to out + i * stride, `width` floats each; stride >= width. Throws IndexError
  /// naming variable and row if a row is outside it, before anything is read; IoError; DataLoss
  /// naming file and block.
  void read(const Progression& wanted, float* out, std::int64_t stride);

  /// Rows first, first + 1, ... as many as fill `out`.
  void read(std::int64_t first, std::span<float> out);

 private:
  friend class Reader;
  VariableReader(const Reader& reader, std::int64_t table, std::int32_t slot);

  struct Part {
    const FileRecord* record;
    std::int64_t offset;              ///< position of the variable's first byte in the file
    std::unique_ptr<BlockFile> file;  ///< opened at its first read
  };
  void read_part(Part& part, const Progression& local, const Progression& place, float* out,
                 std::int64_t stride);

  const Reader* reader_;
  std::string name_;
  std::int64_t rows_;
  std::int64_t width_;
  std::vector<Part> parts_;
};

/// The latest step of a run: the highest whose manifest can be read and whose files are all there.
struct Latest {
  std::filesystem::path directory;
  std::vector<std::string> skipped;  ///< why higher steps were not taken, one text each
};

/// Why a step of a run directory cannot be opened under its name, nothing if it can. Throws IoError
/// for a step of a newer format and a failing disk.
std::optional<std::string> refusal_of_step(FileSystem& files, const std::filesystem::path& run,
                                           std::int64_t step);

/// Throws IoError if there is none, naming what was skipped; and for a step of a newer format,
/// which is not skipped.
Latest find_latest(FileSystem& files, const std::filesystem::path& run);

}  // namespace embertable::checkpoint
