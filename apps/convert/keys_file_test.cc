#include "apps/convert/keys_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <vector>

#include "embertable/errors.h"
#include "testing/temporary_files.h"

namespace embertable::jobs {
namespace {

TEST(KeysFile, KeysComeBackWhateverBytesTheyHave) {
  const TemporaryFiles files;
  const std::vector<std::string> keys = {"7", "", "a b", "\\n", "x\ny\r", "\xFF"};
  const std::string path = files.path("user.keys.txt");
  write_keys(path, 8, [&](std::int64_t row) { return row < 6 ? keys[row] : ""; });
  std::ifstream file(path, std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}),
            "7\n\na b\n\\\\n\nx\\ny\\r\n\xFF\n\n\n");
  const IdMap map = read_keys(path, 8);
  ASSERT_EQ(map.num_keys(), 6);
  EXPECT_EQ(map.out_of_vocabulary_rows(), 2);
  for (std::int64_t row = 0; row < 6; ++row) EXPECT_EQ(map.string_key(row), keys[row]);
}

TEST(KeysFile, NamesTheLineThatIsNoKey) {
  const TemporaryFiles files;
  const auto refused = [&](const std::string& text) {
    const std::string path = files.write("user.keys.txt", text);
    return refusal<ValueError>(files.path(), [&] { read_keys(path, 3); });
  };
  EXPECT_EQ(refused("a\nb\n"), "user.keys.txt:2: there must be a line for each of 3 rows, got 2");
  EXPECT_EQ(refused("a\nb\nc\nd\n"),
            "user.keys.txt:4: there must be a line for each of 3 rows, got 4");
  EXPECT_EQ(refused("a\nb\na\n"), "user.keys.txt:3: a key must name one row, got 'a' again");
  EXPECT_EQ(refused("a\nb\\t\nc\n"),
            "user.keys.txt:2: a backslash must be followed by \\, n or r, got 'b\\t'");
  EXPECT_EQ(refused("a\nb\\\nc\n"),
            "user.keys.txt:2: a backslash must be followed by \\, n or r, got 'b\\'");
  EXPECT_EQ(read_keys(files.write("user.keys.txt", "a\r\nb\r\nc"), 3).string_key(1), "b");
}

TEST(KeysFile, IsBesideItsArray) { EXPECT_EQ(keys_path("x/a.Sb.npy"), "x/a.Sb.keys.txt"); }

}  // namespace
}  // namespace embertable::jobs
