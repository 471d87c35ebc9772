#include "apps/convert/export_tables.h"

#include <gtest/gtest.h>

#include "embertable/embertable.h"
#include "testing/open_files_limit.h"
#include "testing/temporary_directory.h"

namespace embertable::jobs {
namespace {

TEST(ExportTables, ShardsMayBeMoreThanFilesThatAProcessOpens) {
  const TemporaryDirectory files;
  const FeatureConfig wide{.table = make_table({.vocabulary_size = 300, .dim = 2, .name = "wide"})};
  for (const Sharding sharding : {Sharding::kDiv, Sharding::kMod}) {
    const std::string run = sharding == Sharding::kDiv ? "div" : "mod";
    Embedding engine(Nested<FeatureConfig>(wide), Optimizer("adagrad", 0.1),
                     make_strategy({.hosts = 150, .sharding = sharding}));
    engine.build(1);
    engine.save(files.path() / run);
    const OpenFilesLimit limit(64);
    for (const TableFormat format : {TableFormat::kNpy, TableFormat::kTensorFlow,
                                     TableFormat::kWord2vec, TableFormat::kInt8}) {
      std::vector<std::string> names;
      export_tables({.format = format,
                     .from = files.path() / run,
                     .out = files.path() / (run + std::to_string(static_cast<int>(format)))},
                    [&](const ConvertedArray& array) { names.push_back(array.name); });
      EXPECT_EQ(names, std::vector<std::string>{"wide"});
    }
  }
}

}  // namespace
}  // namespace embertable::jobs
