#pragma once

#include <cstdint>
#include <filesystem>

namespace embertable::bench {

/// Writes a file of that size in pieces of 1 MiB, and returns once file and name would survive a
/// loss of power. Throws std::system_error.
void write_plain(const std::filesystem::path& path, std::int64_t bytes);

/// Reads a file into new memory with that many threads, in pieces of 1 MiB; gives the number of
/// bytes. Throws std::system_error.
std::int64_t read_plain(const std::filesystem::path& path, int threads);

/// Has the kernel forget what it holds of the contents of a file, or of all files below a
/// directory. They are flushed first.
void drop_cache(const std::filesystem::path& path);

}  // namespace embertable::bench
