// The file that names the latest checkpoint.
#include <gtest/gtest.h>

#include "checkpoint/file.h"
#include "embertable/tensorflow/tensor_bundle.h"
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
}

}  // namespace
}  // namespace embertable::formats
