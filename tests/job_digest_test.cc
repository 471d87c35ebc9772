// The digests of the example jobs: one for all threads, hosts, SIMD levels, schedules and
// executors, and the same as ever.
#include <gtest/gtest.h>

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

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

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

#if defined(__x86_64__)
TEST_F(JobDigest, FlushToZeroInTheCallingThreadDoesNotShow) {
  const unsigned int found = _mm_getcsr();
  _mm_setcsr(found | 0x8040);  // frameworks leave it so
  const std::string digest = digest_of(small_job(), 2);
  EXPECT_EQ(_mm_getcsr() & 0x8040, 0x8040u) << "and is given back";
  _mm_setcsr(found);
  EXPECT_EQ(digest, expected);
}
#endif

TEST_F(JobDigest, IsTheSameAsEver) {
  EXPECT_EQ(expected, "d10eac5fb8ceb54102fe777683b4d095");
  EXPECT_EQ(digest_of(read_job(kSource + "/examples/jobs/goodbooks.toml"), 2),
            "21f9717e7cc44a10a9f7e70230dface5");
  EXPECT_EQ(digest_of(read_job(kSource + "/examples/jobs/goodbooks-genres.toml"), 2),
            "c389e42c733f9832031961c39a251901");
}

/// The same job with rows of bfloat16: threads, hosts and levels show no more than they do without.
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
}

TEST(MovielensDigest, IsTheSameAsEver) {
  const std::string data = kSource + "/../shared/data";
  if (!std::filesystem::exists(data + "/movielens-latest-small/ratings.csv.gz")) {
    GTEST_SKIP() << "needs movielens-latest-small in " << data
                 << ", which may not be passed on with the project";
  }
  Watch watch;
  const Job job = read_job(kSource + "/examples/jobs/movielens.toml");
  EXPECT_EQ(train(job, {.data_root = data, .threads = 2}, watch).digest,
            "23b8c3751264a23e2b01c9b7cb9ac3c6");
}

}  // namespace
}  // namespace embertable::jobs
