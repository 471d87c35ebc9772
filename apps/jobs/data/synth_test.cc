#include "apps/jobs/data/synth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/jobs/text/csv_reader.h"
#include "embertable/errors.h"
#include "testing/training_run.h"

namespace embertable::jobs {
namespace {

SynthSpec small(std::int64_t records = 3000) {
  SynthSpec spec;
  spec.tables = {{.name = "user", .rows = 50}, {.name = "tags", .rows = 9, .least = 0, .most = 3}};
  spec.records = records;
  spec.positives = 0.4;
  return spec;
}

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

struct Record {
  bool label;
  std::string user;
  std::int64_t tags;
};

std::vector<Record> records(const std::filesystem::path& path, char separator) {
  const std::vector<std::string> columns = {"label", "user", "tags"};
  CsvReader reader(path.string(), {.separator = separator, .header = true}, columns);
  std::vector<Record> found;
  while (reader.next()) {
    std::int64_t tags = 0;
    for_each_part(reader.text(2), "|", [&](std::string_view tag) {
      EXPECT_LT(std::stoi(std::string(tag)), 9);
      ++tags;
    });
    found.push_back({reader.integer(0) == 1, std::string(reader.text(1)), tags});
  }
  return found;
}

TEST(Synth, WritesRecordsOfTheStatedShape) {
  const TemporaryFiles files;
  const SynthReport report = write_synth(small(), files.path("demo"));
  EXPECT_EQ(report.files.data, files.path("demo.tsv"));
  const std::vector<Record> found = records(report.files.data, '\t');
  ASSERT_EQ(found.size(), 3000u);
  std::map<std::int64_t, int> lengths;
  std::map<std::string, int> users;
  std::int64_t positives = 0;
  for (const Record& record : found) {
    ++lengths[record.tags];
    ++users[record.user];
    positives += record.label ? 1 : 0;
  }
  EXPECT_EQ(lengths.size(), 4u);
  EXPECT_EQ(lengths.rbegin()->first, 3);
  for (const auto& [length, times] : lengths) EXPECT_NEAR(times, 750, 120) << length;
  EXPECT_EQ(positives, report.all.positives);
  // The most frequent of 50 users by a Zipf distribution of exponent 1.05 has a share of 0.236.
  int most = 0;
  for (const auto& [user, times] : users) most = std::max(most, times);
  EXPECT_NEAR(most, 3000 * 0.236, 100);
}

TEST(Synth, WithoutSpreadLabelsAreTossesOfOneCoin) {
  const TemporaryFiles files;
  SynthSpec spec = small();
  spec.spread = 0;
  const SynthReport report = write_synth(spec, files.path("demo"));
  EXPECT_NEAR(static_cast<double>(report.all.positives), 1200, 140);
  const double p = 0.4, share = static_cast<double>(report.all.positives) / 3000;
  EXPECT_NEAR(report.all.logloss, -share * std::log(p) - (1 - share) * std::log(1 - p), 1e-12);
}

TEST(Synth, TheBestLossIsThatOfTheModelThatDrewTheLabels) {
  const TemporaryFiles files;
  SynthSpec spec = small(20000);
  spec.spread = 2;
  const SynthReport report = write_synth(spec, files.path("demo"));
  const double share = static_cast<double>(report.all.positives) / 20000;
  const double coin = -share * std::log(share) - (1 - share) * std::log(1 - share);
  EXPECT_LT(report.all.logloss, coin - 0.05);

  // What no model of the fields can do better than, but by what it learns by heart: the shares of
  // labels by field. A field of the frequent users has enough records to tell.
  std::map<std::string, std::pair<double, double>> by_user;
  for (const Record& record : records(report.files.data, '\t')) {
    by_user[record.user].first += record.label ? 1 : 0;
    ++by_user[record.user].second;
  }
  double loss = 0;
  for (const auto& [user, counts] : by_user) {
    const auto [positives, all] = counts;
    if (positives > 0) loss -= positives * std::log(positives / all);
    if (positives < all) loss -= (all - positives) * std::log(1 - positives / all);
  }
  EXPECT_LT(report.all.logloss, loss / 20000 + 0.01);
  std::int64_t sum = 0;
  double losses = 0;
  for (const SynthLoss& part : report.parts) {
    sum += part.records;
    losses += static_cast<double>(part.records) * part.logloss;
  }
  EXPECT_EQ(sum, 20000);
  EXPECT_NEAR(losses / 20000, report.all.logloss, 1e-12);
}

TEST(Synth, TheSameSpecGivesTheSameBytes) {
  const TemporaryFiles files;
  const SynthReport one = write_synth(small(), files.path("one"));
  const SynthReport two = write_synth(small(), files.path("two"));
  EXPECT_EQ(content(one.files.data), content(two.files.data));
  SynthSpec other = small();
  other.seed = 2;
  EXPECT_NE(content(write_synth(other, files.path("two")).files.data), content(one.files.data));
}

TEST(Synth, TheJobBesideItComesNearTheBestLoss) {
  const TemporaryFiles files;
  SynthSpec spec = small(20000);
  spec.spread = 2;
  const SynthReport report = write_synth(spec, files.path("demo"));
  const TrainReport trained = train_in(files, read_job(report.files.job.string()), {.threads = 1});
  const double best = report.parts[static_cast<std::size_t>(Part::kTest)].logloss;
  EXPECT_EQ(trained.measured_part, "test");
  EXPECT_LT(value_of(trained.measures, "logloss"), best + 0.02);
  EXPECT_GT(value_of(trained.measures, "logloss"), best - 0.02);
}

TEST(Synth, AFileMayHaveAnyName) {
  const TemporaryFiles files;
  const SynthReport report = write_synth(small(100), files.path("a \"b\" \\c"));
  EXPECT_EQ(read_job(report.files.job.string()).first_file, "a \"b\" \\c.tsv");
}

TEST(Synth, WritesCommasAndCompresses) {
  const TemporaryFiles files;
  const std::vector<Record> plain = records(write_synth(small(), files.path("a")).files.data, '\t');
  SynthSpec spec = small();
  spec.commas = spec.compressed = true;
  const SynthReport report = write_synth(spec, files.path("b"));
  EXPECT_EQ(report.files.data, files.path("b.csv.gz"));
  EXPECT_EQ(content(report.files.data).substr(0, 2), "\x1f\x8b");
  const std::vector<Record> found = records(report.files.data, ',');
  ASSERT_EQ(found.size(), plain.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].user, plain[i].user);
}

TEST(Synth, SaysWhatItKnows) {
  const TemporaryFiles files;
  const SynthReport report = write_synth(small(), files.path("demo"));
  const auto json = nlohmann::json::parse(content(report.files.truth));
  EXPECT_EQ(json["best"]["all"]["logloss"], report.all.logloss);
  EXPECT_EQ(json["best"]["test"]["records"], report.parts[0].records);
  EXPECT_EQ(json["tables"]["tags"]["most"], 3);
}

std::string spec_refused(SynthSpec spec) {
  return refusal<ValueError>("", [&] { validate(spec); });
}

TEST(Synth, RefusesWhatMakesNoData) {
  SynthSpec spec = small();
  spec.tables[1].name = "user";
  EXPECT_EQ(spec_refused(spec), "table 'user' must be named once");
  spec = small();
  spec.tables[0].rows = 0;
  EXPECT_EQ(spec_refused(spec), "table 'user' must have 1 to 2147483647 rows, got 0");
  spec = small();
  spec.tables[1].most = 5000;
  EXPECT_EQ(
      spec_refused(spec),
      "table 'tags' must have from 0 to 4096 keys in a field, the least first, got 0 to 5000");
  spec = small();
  spec.tables[0].name = "label";
  EXPECT_EQ(spec_refused(spec),
            "table 'label' must have a name of letters, digits and _ that is not 'label'");
  spec = small();
  spec.positives = 1;
  EXPECT_EQ(spec_refused(spec), "positives must be between 0 and 1, got 1");
  spec = small();
  spec.records = 0;
  EXPECT_EQ(spec_refused(spec), "records must be at least 1, got 0");
  EXPECT_EQ(spec_refused({}), "tables must be at least one, got none");
}

TEST(Synth, NamesTheFileThatItCannotWrite) {
  const TemporaryFiles files;
  EXPECT_EQ(refusal<IoError>(files.path(), [&] { write_synth(small(), files.path("none/demo")); }),
            "'none/demo.tsv': cannot write: No such file or directory");
}

}  // namespace
}  // namespace embertable::jobs
