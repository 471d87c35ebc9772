// The file that names the latest checkpoint.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "checkpoint/file.h"
#include "embertable/errors.h"
#include "embertable/tensorflow/tensor_bundle.h"
#include "testing/refusal.h"
#include "testing/temporary_directory.h"

namespace embertable::formats {
namespace {

TEST(BundleCases, TheStateFileNamesTheLatest) {
  const TemporaryDirectory directory;
  EXPECT_EQ(latest_bundle(directory.path()), std::nullopt);
  TensorBundleWriter writer(directory.path() / "a \"b\"-1");
  writer.finish();
  write_bundle_state(directory.path(), "gone-1");
  EXPECT_EQ(latest_bundle(directory.path()), std::nullopt);
  write_bundle_state(directory.path(), "a \"b\"-1");
  EXPECT_EQ(latest_bundle(directory.path()), directory.path() / "a \"b\"-1");
  EXPECT_EQ(checkpoint::local_files().list(directory.path()).size(), 3u);
  const auto latest = [&](const std::string& escaped) {
    std::ofstream(directory.path() / "checkpoint")
        << "model_checkpoint_path: \"" << escaped << "\"\n";
    return latest_bundle(directory.path()).value_or("").filename().string();
  };
  // The escapes of C, which protobuf writes and reads; \\303\\244 are the bytes of one letter.
  const std::string name = "t\tn\nr\rq\"s'b\\a\aB\bf\fv\v?\303\244";
  TensorBundleWriter(directory.path() / name).finish();
  EXPECT_EQ(latest(R"(t\tn\nr\rq\"s\'b\\a\aB\bf\fv\v\?\303\244)"), name);
  EXPECT_EQ(latest(R"(t\11n\012r\x0dq\"s'b\\a\7B\bf\XCv\v?\xc3\xA4)"), name);
  for (const char* broken : {R"(\z)", R"(\x)", R"(\)"})
    EXPECT_THROW(latest(broken), DataLoss) << broken;
}

TEST(BundleState, AFolderInItsPlaceIsRefusedAndStays) {
  const TemporaryDirectory directory;
  const std::filesystem::path place = directory.path() / "checkpoint";
  for (const char* inner : {"", "inner"}) {
    std::filesystem::create_directories(place / inner);
    EXPECT_EQ(refusal<IoError>([&] { write_bundle_state(directory.path(), "a-1"); }),
              place.string() + ": cannot replace: it is a directory");
    EXPECT_EQ(checkpoint::local_files().list(directory.path()),
              std::vector<std::string>{"checkpoint"});
    EXPECT_EQ(std::filesystem::exists(place / "inner"), *inner != '\0');
  }
}

TEST(BundleState, ALinkInItsPlaceIsReplacedAndNotWhatItLeadsTo) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path() / "other");
  for (const char* target : {"file", "other", "none"}) {
    std::ofstream(directory.path() / "file") << "kept";
    std::filesystem::remove(directory.path() / "checkpoint");
    std::filesystem::create_symlink(target, directory.path() / "checkpoint");
    write_bundle_state(directory.path(), "a-1");
    EXPECT_TRUE(std::filesystem::is_regular_file(
        std::filesystem::symlink_status(directory.path() / "checkpoint")))
        << target;
    EXPECT_EQ(checkpoint::read_file(checkpoint::local_files(), directory.path() / "file", 10),
              "kept");
    EXPECT_TRUE(std::filesystem::is_empty(directory.path() / "other"));
  }
}

}  // namespace
}  // namespace embertable::formats
