#include "checkpoint/piped_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <system_error>
#include <thread>

#include "embertable/errors.h"
#include "testing/memory_files.h"
#include "testing/no_threads.h"

namespace embertable::checkpoint {
namespace {

constexpr std::size_t kChunk = PipedFile::kChunkBytes;

/// Sends chunks of these sizes, each filled with its number.
void send(PipedFile& file, const std::vector<std::size_t>& sizes) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::span<std::byte> chunk = file.chunk();
    std::memset(chunk.data(), static_cast<int>(i % 251), sizes[i]);
    file.send(sizes[i]);
  }
}

TEST(PipedFile, WritesChunksInTheirOrderAndFlushesThem) {
  for (const std::size_t chunks : {0, 1, 2, 3, 4, 5, 50}) {
    MemoryFiles files;
    std::vector<std::size_t> sizes(chunks, kChunk);
    if (chunks > 1) sizes[1] = 7;
    if (chunks > 2) sizes[2] = 0;
    PipedFile file(files.create("/a"));
    send(file, sizes);
    file.finish();
    files.sync_directory("/");
    files.lose_power(MemoryFiles::Loss::kUnsynced);
    std::string want;
    for (std::size_t i = 0; i < chunks; ++i) want += std::string(sizes[i], static_cast<char>(i));
    EXPECT_TRUE(*files.contents().at("/a") == want) << chunks;
  }
}

TEST(PipedFile, AFailedWriteIsThrownToTheCaller) {
  for (std::int64_t operation = 1; operation <= 11; ++operation) {  // 0 creates
    MemoryFiles files;
    files.fail_at(operation, MemoryFiles::Fault::kError);
    PipedFile file(files.create("/a"));
    EXPECT_THROW(
        {
          send(file, std::vector<std::size_t>(10, kChunk));
          file.finish();
        },
        IoError)
        << operation;
  }
}

TEST(PipedFile, IsWrittenByTheCallerWhereNoThreadCanBeStarted) {
  for (const std::size_t chunks : {1, 2, 3, 10}) {
    MemoryFiles files;
    const NoThreads none;
    ASSERT_THROW(std::thread([] {}), std::system_error);
    PipedFile file(files.create("/a"));
    send(file, std::vector<std::size_t>(chunks, kChunk));
    file.finish();
    std::string want;
    for (std::size_t i = 0; i < chunks; ++i) want += std::string(kChunk, static_cast<char>(i));
    EXPECT_TRUE(*files.contents().at("/a") == want) << chunks;
  }
}

TEST(PipedFile, ThatIsLeftInTheMiddleHasWhatItsThreadWasSent) {
  for (const std::size_t chunks : {0, 1, 2, 3, 10}) {
    MemoryFiles files;
    {
      PipedFile file(files.create("/a"));
      send(file, std::vector<std::size_t>(chunks, kChunk));
    }
    std::string want;  // the thread starts with the second chunk
    for (std::size_t i = 0; i < chunks && chunks > 1; ++i)
      want += std::string(kChunk, static_cast<char>(i));
    EXPECT_TRUE(*files.contents().at("/a") == want) << chunks;
  }
}

}  // namespace
}  // namespace embertable::checkpoint
