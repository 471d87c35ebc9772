#pragma once

#include <cstdint>
#include <filesystem>

namespace embertable::bench {

/// Writes a file of that size in pieces of 1 MiB, and returns once file and name would survive a
/// loss of power. Throws std::system_error.
void write_plain(const std::filesystem::path& path, std::int64_t bytes);

/// Where a file is read to: memory of its size that is new, as that of restored tables is, or the
/// same small buffer of each thread again and again, which shows the file alone.
enum class ReadInto : std::uint8_t { kNewMemory, kReusedBuffer };

/// Reads a file with that many threads in pieces of 2 MiB, each a huge page of its own in new
/// memory: threads that share one may both wait for the kernel to clear it. Into a reused buffer
/// the pieces are 256 KiB. Gives the number of bytes. Throws std::system_error.
std::int64_t read_plain(const std::filesystem::path& path, int threads, ReadInto into);

/// Has the kernel forget what it holds of the contents of a file, or of all files below a
/// directory. They are flushed first.
void drop_cache(const std::filesystem::path& path);

}  // namespace embertable::bench
