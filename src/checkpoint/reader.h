#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/block_file.h"
#include "checkpoint/file.h"
#include "checkpoint/manifest.h"
#include "embertable/checkpoint.h"

namespace embertable::checkpoint {

class VariableReader;

/// A step with its files, opened before anything else is read of them: whoever removes the step
/// takes their names away and not their contents.
struct OpenStep {
  std::filesystem::path directory;
  std::shared_ptr<Directory> opened;
  Manifest manifest;
  /// By manifest.files. Null: beyond most_open_files, so that it is opened when it is read.
  std::vector<std::shared_ptr<const File>> files;
};

/// One saved step, opened for reading. Its manifest is checked at once, its data when they are
/// read. Its const calls may run on several threads at once.
class Reader {
 public:
  /// `path` is the directory of a step, or of a run, whose latest step is then opened: the highest
  /// whose manifest can be read and whose files are all there; a later one if that is removed
  /// meanwhile. Throws NotFound if there is no step or it was removed, IoError for a newer format
  /// and for a failing disk; DataLoss naming the file for a manifest that is damaged or contradicts
  /// itself, and for data files that are missing or have another size.
  Reader(FileSystem& files, const std::filesystem::path& path);

  /// Returns why higher steps of the run were skipped, one text each.
  const std::vector<std::string>& skipped() const noexcept { return skipped_; }

  /// Directory of the step.
  const std::filesystem::path& directory() const noexcept { return step_.directory; }
  const Manifest& manifest() const noexcept { return step_.manifest; }

  /// Open a file of `manifest()`. Throw IoError, DataLoss.
  std::shared_ptr<const File> open(const FileRecord& record) const;
  BlockFile blocks_of(const FileRecord& record) const;

  /// Closes the files of tables that nothing else has opened, so that they take no space once the
  /// step is removed. They are opened again when they are read.
  void close_tables() noexcept;

  /// Returns a variable by its name, "video" or "video/accumulators". Throws KeyError naming
  /// directory and variable. The reader must outlive it.
  VariableReader variable(std::string_view name) const;

  /// Returns a variable by the manifest's indices; slot -1 means the parameters.
  VariableReader variable(std::int64_t table, std::int32_t slot) const;

  /// Returns the caller's own data, with or without the tensors. Throws IoError, DataLoss.
  CallerState caller_state(bool with_tensors = true) const;

  /// Returns the bytes of the id maps by name.
  std::map<std::string, std::string> id_maps() const;

  /// Reads every byte and checks every checksum.
  void verify() const;

 private:
  friend class VariableReader;

  /// Calls take(tensor, bytes) for the tensors in the file of a kind, if there is such a file.
  template <class Take>
  void read_tensors(FileKind kind, Take take) const;

  /// Returns a file that is kept open, or null.
  const std::shared_ptr<const File>& held(const FileRecord& record) const;

  FileSystem* files_;
  std::vector<std::string> skipped_;
  OpenStep step_;
};

/// Origin of a restore: a step that is already open, or the path of a step or run to be opened.
/// Borrowed.
struct StepSource {
  StepSource(FileSystem& in, const std::filesystem::path& at) : files(&in), path(&at) {}
  StepSource(const Reader& reader) : opened(&reader) {}

  FileSystem* files = nullptr;
  const std::filesystem::path* path = nullptr;
  const Reader* opened = nullptr;  ///< null: `path` is opened in `files`
};

/// Reads rows of one variable, whichever files they are in. Keeps the last block of each file until
/// the file's last row has been read, and at most `most_open_files` files open besides those that
/// the reader keeps: one alone where rows that follow each other are in one file and are read in
/// order. For one thread.
class VariableReader {
 public:
  std::int64_t rows() const noexcept { return rows_; }
  std::int64_t width() const noexcept {
    return width_;
  }  ///< floats per row: dim, or 1 for a row-wise slot

  /// Reads row wanted[i], as floats whatever its type, to out + i * stride, `width` floats each;
  /// stride >= width. Throws IndexError naming variable and row if a row is outside it, before
  /// anything is read; IoError; DataLoss naming file and block.
  void read(const Progression& wanted, float* out, std::int64_t stride);

  /// Reads rows first, first + 1, ... until `out` is full.
  void read(std::int64_t first, std::span<float> out);

 private:
  friend class Reader;
  VariableReader(const Reader& reader, std::int64_t table, std::int32_t slot);

  struct Part {
    const FileRecord* record;
    std::int64_t offset;               ///< position of the variable's first byte in the file
    std::shared_ptr<const File> held;  ///< null: the reader does not keep it open
    std::unique_ptr<BlockFile> file;   ///< null: nothing was read, or its last row was
  };
  void open(Part& part);
  void let_go(Part& part, bool finished) noexcept;
  void read_part(Part& part, const Progression& local, const Progression& place, float* out,
                 std::int64_t stride);

  const Reader* reader_;
  std::string name_;
  std::int64_t rows_;
  std::int64_t width_;
  RowType type_;  ///< type of the rows in the files
  std::vector<std::byte> stored_;
  std::vector<Part> parts_;
  std::size_t most_open_;   ///< files that the reader does not keep open, at most
  std::size_t opened_ = 0;  ///< number of those that are open
};

/// Returns why a step of an open run directory cannot be opened by its name; empty if it can. `run`
/// is the path of the directory, for messages. Throws IoError for a step of a newer format and for
/// a failing disk.
std::optional<std::string> refusal_of_step(Directory& opened, const std::filesystem::path& run,
                                           std::int64_t step);

}  // namespace embertable::checkpoint
