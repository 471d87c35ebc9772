// Arrays of NumPy, and what is said of files that are none.
#include "apps/convert/npy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/bundles.h"

namespace embertable::formats {
namespace {

using ::testing::HasSubstr;

/// The beginning of a file with this header.
std::string with_header(const std::string& dictionary, char version = 1) {
  return std::string("\x93NUMPY") + version + '\0' + static_cast<char>(dictionary.size()) + '\0' +
         dictionary;
}

std::string dictionary_of(const std::string& dtype, const std::string& shape) {
  return fmt::format("{{'descr': {}, 'fortran_order': False, 'shape': {}, }}", dtype, shape);
}

template <class Error = DataLoss>
std::string npy_refusal(const std::string& bytes) {
  MemoryFiles files;
  put(files, "/a.npy", bytes);
  return refusal<Error>([&] { NpyFile(files, "/a.npy"); });
}

TEST(NpyFile, WhatIsWrittenIsRead) {
  MemoryFiles files;
  const std::int64_t shape[] = {3, 2};
  write_npy(files, "/a.npy", shape, [](std::int64_t first, std::span<float> out) {
    std::iota(out.begin(), out.end(), static_cast<float>(2 * first));
  });
  const NpyFile file(files, "/a.npy");
  Floats rows(4);
  file.read(1, rows);
  EXPECT_EQ(rows, (Floats{2, 3, 4, 5}));
  EXPECT_EQ(file.shape(), (std::vector<std::int64_t>{3, 2}));
}

TEST(NpyFile, SaysFromWhichByteOnWhatWasExpectedAndFound) {
  const std::string from = "/a.npy: cannot read: from byte ";
  EXPECT_EQ(npy_refusal("PKab zip"),
            from + R"(0: expected an .npy file, which begins with "\x93NUMPY", got "PKab z")");
  EXPECT_EQ(npy_refusal("\x93NUMPY\x01"),
            from + "6: expected version and length of a header, got the end of the file");
  EXPECT_EQ(npy_refusal(with_header("{}", 9)),
            from + "6: expected a header of version 1, 2 or 3, got version 9");
  EXPECT_EQ(npy_refusal(with_header("{}  ").substr(0, 12)),
            from + "8: expected a header of 2 bytes at most, got 4 bytes");
  EXPECT_EQ(npy_refusal(with_header("{'shape': (1,)}")),
            from + R"(10: expected a header with 'descr', got "{'shape': (1,)}")");
  const std::string at_shape = from + std::to_string(10 + dictionary_of("'<f4'", "").find(", }")) +
                               ": expected a shape as (3, 4), got ";
  EXPECT_EQ(npy_refusal(with_header(dictionary_of("'<f4'", "7"))), at_shape + R"("7, }")");
  EXPECT_EQ(npy_refusal(with_header(dictionary_of("'<f4'", "(a)"))), at_shape + R"("(a), }")");
  EXPECT_THAT(npy_refusal(with_header(dictionary_of("'<f4'", "(-1,)"))),
              HasSubstr("expected a shape of fewer than 2^63 numbers, none below 0, got"));
  const std::string pair = with_header(dictionary_of("'<f4'", "(2,)"));
  EXPECT_EQ(npy_refusal(pair + "1234567"),
            fmt::format("{}{}: expected 2 numbers of 4 bytes for the shape [2], got 7 bytes", from,
                        pair.size()));
}

TEST(NpyFile, SaysWhichNumbersItDoesNotRead) {
  EXPECT_EQ(npy_refusal<ValueError>(with_header(dictionary_of("'<i8'", "(2,)"))),
            "/a.npy: its numbers must be float32 or float16, got '<i8'");
  EXPECT_THAT(npy_refusal<ValueError>(with_header(dictionary_of("[('x', '<f4')]", "(2,)"))),
              HasSubstr("/a.npy: its numbers must be of one plain type, got \"[('x', '<f4')]"));
  EXPECT_THAT(npy_refusal<ValueError>(
                  with_header("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }")),
              HasSubstr("/a.npy: must be stored by rows, got fortran_order=True"));
}

TEST(NpyFile, SaysThatItHasShrunk) {
  MemoryFiles files;
  const std::string start = with_header(dictionary_of("'<f4'", "(2, 1)"));
  put(files, "/a.npy", start + "12345678");
  const NpyFile file(files, "/a.npy");
  files.contents().at("/a.npy")->resize(start.size() + 5);
  Floats row(1);
  EXPECT_EQ(
      refusal<DataLoss>([&] { file.read(1, row); }),
      fmt::format("/a.npy: cannot read: from byte {}: expected 4 bytes of numbers, got 1: the "
                  "file has shrunk",
                  start.size() + 4));
}

}  // namespace
}  // namespace embertable::formats
