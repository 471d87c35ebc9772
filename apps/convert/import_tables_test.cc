#include "apps/convert/import_tables.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "embertable/errors.h"
#include "testing/temporary_files.h"

namespace embertable::jobs {
namespace {

TEST(ImportTables, RefusesMoreNumbersThanAFileCanHave) {
  const TemporaryFiles files;
  const auto refused = [&](const std::string& first_line) {
    const ImportOptions options{.format = TableFormat::kWord2vec,
                                .from = files.write("words.txt", first_line + "\na 1\n"),
                                .out = files.path("out")};
    return refusal<ValueError>(files.path(), [&] { import_tables(options, [](const auto&) {}); });
  };
  EXPECT_EQ(refused("9223372036854775807 4096"),
            "words.txt: must have fewer than 2^61 numbers, got [9223372036854775807, 4096]");
  EXPECT_EQ(refused("2305843009213693952 1"),
            "words.txt: must have fewer than 2^61 numbers, got [2305843009213693952, 1]");
  EXPECT_FALSE(std::filesystem::exists(files.path("out")));
  EXPECT_EQ(refused("2 1"), "words.txt:3: there must be 2 rows, got 1");
}

}  // namespace
}  // namespace embertable::jobs
