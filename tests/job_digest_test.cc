// The digests of the example jobs: one for all threads, hosts, SIMD levels, schedules and
// executors, and the same as ever.
#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/jobs/run/train.h"
#include "apps/jobs/spec/job.h"
#include "kernels/level.h"
#include "testing/executor.h"
#include "testing/source_path.h"

namespace embertable::jobs {
namespace {

const std::string kSource = source_path("");

/// The most workers and the fewest buckets of any table that took part in a step.
class Watch final : public TrainObserver {
 public:
  void stepped(const StepReport& report) override {
    workers = std::max(workers, report.engine.update_workers);
    for (const StepStatistics::Table& table : report.engine.tables) {
      if (report.share < 1) buckets = std::min(buckets, table.buckets);
    }
  }
  std::int32_t workers = 0;
  std::int64_t buckets = 1 << 30;
};

/// goodbooks with genres, one epoch, four replicas, work cut small.
Job small_job(std::vector<Change> changes = {}) {
  changes.insert(changes.begin(), {"schedule.epochs=1", "strategy.replicas=4",
                                   "engine.bucket_bytes=256", "engine.inline_floats=0"});
  return read_job(kSource + "/examples/jobs/goodbooks-genres.toml", changes);
}

std::string digest_of(const Job& job, TrainOptions options, TrainObserver& observer) {
  options.data_root = kSource + "/examples/data";
  return train(job, options, observer).digest;
}

std::string digest_of(const Job& job, std::int32_t threads) {
  Watch watch;
  return digest_of(job, {.threads = threads}, watch);
}

class JobDigest : public testing::Test {
 protected:
  static void SetUpTestSuite() { expected = digest_of(small_job(), 1); }
  static std::string expected;
};
std::string JobDigest::expected;  // NOLINT: shared by the suite

TEST_F(JobDigest, ThreadsDoNotShow) {
  for (const std::int32_t threads : {2, 3, 7}) {
    Watch watch;
    EXPECT_EQ(digest_of(small_job(), {.threads = threads}, watch), expected)
        << threads << " threads";
    EXPECT_GE(watch.workers, 2) << threads << " threads";
    EXPECT_GE(watch.buckets, 8) << threads << " threads";
  }
}

TEST_F(JobDigest, HowWorkIsCutDoesNotShow) {
  EXPECT_EQ(digest_of(small_job({"engine.bucket_bytes=0", "engine.inline_floats=8192"}), 2),
            expected);
  EXPECT_EQ(digest_of(small_job({"engine.bucket_bytes=5000"}), 2), expected);
}

TEST_F(JobDigest, HostsAndShardingDoNotShow) {
  EXPECT_EQ(digest_of(small_job({"strategy.hosts=2"}), 2), expected);
  EXPECT_EQ(digest_of(small_job({"strategy.hosts=4"}), 3), expected);
  EXPECT_EQ(digest_of(small_job({"strategy.hosts=2", "strategy.sharding=mod"}), 2), expected);
}

TEST_F(JobDigest, LookAheadDoesNotShow) {
  EXPECT_EQ(digest_of(small_job({"schedule.look_ahead=0"}), 2), expected);
  EXPECT_EQ(digest_of(small_job({"schedule.look_ahead=3"}), 2), expected);
}

TEST_F(JobDigest, TheOrderOfReadyWorkDoesNotShow) {
  const std::uint64_t seed = test_seed();
  Watch watch;
  EXPECT_EQ(digest_of(small_job(), {.executor = std::make_shared<TestExecutor>(seed, 5)}, watch),
            expected);
  EXPECT_EQ(watch.workers, 5);
}

TEST_F(JobDigest, SimdLevelsDoNotShow) {
  for (const SimdLevel level : usable_levels()) {
    setenv("EMBERTABLE_SIMD", std::string(to_string(level)).c_str(), 1);
    EXPECT_EQ(digest_of(small_job(), 2), expected) << to_string(level);
  }
  unsetenv("EMBERTABLE_SIMD");
}

TEST_F(JobDigest, FlushToZeroInTheCallingThreadDoesNotShow) {
  const unsigned int found = _mm_getcsr();
  _mm_setcsr(found | 0x8040);  // frameworks leave it so
  const std::string digest = digest_of(small_job(), 2);
  EXPECT_EQ(_mm_getcsr() & 0x8040, 0x8040u) << "and is given back";
  _mm_setcsr(found);
  EXPECT_EQ(digest, expected);
}

TEST_F(JobDigest, IsTheSameAsEver) {
  EXPECT_EQ(expected, "d10eac5fb8ceb54102fe777683b4d095");
  EXPECT_EQ(digest_of(read_job(kSource + "/examples/jobs/goodbooks.toml"), 2),
            "21f9717e7cc44a10a9f7e70230dface5");
  EXPECT_EQ(digest_of(read_job(kSource + "/examples/jobs/goodbooks-genres.toml"), 2),
            "c389e42c733f9832031961c39a251901");
}

/// An example job, every table of which has rows of bfloat16.
Job with_half_rows(const std::string& name, std::vector<Change> changes = {}) {
  const std::string file = kSource + "/examples/jobs/" + name + ".toml";
  for (const TableSpec& table : read_job(file).tables)
    changes.push_back("tables." + table.name + ".row_type=bfloat16");
  return read_job(file, changes);
}

/// Threads, hosts and levels show no more than they do without.
TEST(JobDigestOfBfloat16, IsOneAndTheSameAsEver) {
  const std::vector<Change> half = {"tables.user.row_type=bfloat16",
                                    "tables.book.row_type=bfloat16",
                                    "tables.genre.row_type=bfloat16"};
  const auto with = [&](std::vector<Change> changes) {
    changes.insert(changes.end(), half.begin(), half.end());
    return small_job(std::move(changes));
  };
  const std::string expected = digest_of(with({}), 1);
  EXPECT_EQ(digest_of(with({}), 3), expected);
  EXPECT_EQ(digest_of(with({"strategy.hosts=4", "strategy.sharding=mod"}), 2), expected);
  EXPECT_EQ(digest_of(with({"engine.bucket_bytes=0", "engine.inline_floats=8192"}), 2), expected);
  for (const SimdLevel level : usable_levels()) {
    setenv("EMBERTABLE_SIMD", std::string(to_string(level)).c_str(), 1);
    EXPECT_EQ(digest_of(with({}), 2), expected) << to_string(level);
  }
  unsetenv("EMBERTABLE_SIMD");
  EXPECT_EQ(expected, "62cc5e65d4473cf8c9a959b91025cfb8");
  EXPECT_EQ(digest_of(with_half_rows("goodbooks-genres"), 2), "dd67c348d46748376bf22367a91e953e");
}

const std::string kSharedData = kSource + "/../shared/data";

/// Returns why a file cannot be read, or "".
std::string absence(const std::string& file) {
  if (std::filesystem::exists(kSharedData + "/" + file)) return "";
  return "needs " + file + " in " + kSharedData + ", which may not be passed on with the project";
}

std::string digest_on_shared_data(const Job& job) {
  Watch watch;
  return train(job, {.data_root = kSharedData, .threads = 2}, watch).digest;
}

TEST(MovielensDigest, IsTheSameAsEver) {
  if (const std::string why = absence("movielens-latest-small/ratings.csv.gz"); !why.empty())
    GTEST_SKIP() << why;
  EXPECT_EQ(digest_on_shared_data(read_job(kSource + "/examples/jobs/movielens.toml")),
            "23b8c3751264a23e2b01c9b7cb9ac3c6");
}

/// A job on shared data, of which one epoch is trained.
struct HalfJob {
  std::string name, file, digest;
};

class DigestOfBfloat16 : public testing::TestWithParam<HalfJob> {};

TEST_P(DigestOfBfloat16, IsTheSameAsEver) {
  const HalfJob& job = GetParam();
  if (const std::string why = absence(job.file); !why.empty()) GTEST_SKIP() << why;
  EXPECT_EQ(digest_on_shared_data(with_half_rows(job.name, {"schedule.epochs=1"})), job.digest);
}

INSTANTIATE_TEST_SUITE_P(Jobs, DigestOfBfloat16,
                         testing::Values(HalfJob{"criteo", "criteo/criteo_sample.tsv.gz",
                                                 "38d014a034c268dd91202541cff5a92d"},
                                         HalfJob{"beauty", "amazon-seq/Beauty.txt.gz",
                                                 "b84915e3882eacfbbdd14dedbe5a5b66"},
                                         HalfJob{"gutenberg", "gutenberg/corpus.txt.gz",
                                                 "eb44df0af0c78e311b4200bac3bab2f4"}),
                         [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace embertable::jobs
