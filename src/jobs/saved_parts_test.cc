// Checkpoints whose every checksum is right, of parts that do not fit together.
#include "jobs/saved_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/id_maps.h"
#include "checkpoint/reader.h"
#include "embertable/embedding.h"
#include "jobs/models/tiny_histories.h"
#include "jobs/predicted_scores.h"
#include "jobs/saved_tensor.h"
#include "jobs/tiny_job.h"

namespace embertable::jobs {
namespace {

using testing::StartsWith;

/// What a checkpoint is made of, but the values of its tables.
struct Parts {
  std::map<std::string, TableConfig> tables;
  CallerState caller;
  std::map<std::string, IdMap> ids;

  void set_id(const std::string& tensor, std::size_t position, std::int32_t id) {
    std::memcpy(caller.tensors.at(tensor).bytes.data() + position * sizeof(id), &id, sizeof(id));
  }
};

class SavedPartsOf : public Predict {
 protected:
  SavedPartsOf() {
    write_tiny_data(files_);
    write_tiny_histories(files_);
  }

  /// Trains, and keeps the parts of the run's checkpoint.
  void train_once(const Job& job) {
    job_ = job;
    run(job_);
    const checkpoint::Reader reader(checkpoint::local_files(), files_.path("out"));
    for (const checkpoint::SavedTable& table : reader.manifest().tables) {
      whole_.tables[table.name] = {.vocabulary_size = table.vocabulary_size,
                                   .dim = table.dim,
                                   .combiner = Combiner::kMean,
                                   .name = table.name};
    }
    whole_.caller = reader.caller_state();
    whole_.ids = checkpoint::read_id_maps(reader);
  }

  /// Saves the run's parts, changed, in its place.
  void save(const std::function<void(Parts&)>& change) {
    Parts parts = whole_;
    change(parts);
    std::vector<std::pair<std::string, Nested<FeatureConfig>>> features;
    for (const auto& [name, table] : parts.tables)
      features.emplace_back(name, FeatureConfig{.table = make_table(table)});
    Embedding engine(Nested<FeatureConfig>::map(std::move(features)), Optimizer("sgd", 0.1),
                     make_strategy({.executor = make_inline_executor()}));
    engine.build(1);
    std::filesystem::remove_all(files_.path("out"));
    engine.save(files_.path("out"), parts.caller, parts.ids);
  }

  /// What a call says is lost of the step.
  template <class Call>
  std::string lost(Call call) {
    const std::string text = refusal<DataLoss>(files_.path(), call);
    EXPECT_THAT(text, StartsWith("'out/step_"));
    const std::string_view subject_end = "': ";
    return text.substr(text.find(subject_end) + subject_end.size());
  }

  /// What predicting for the lines of a file says of the changed run.
  std::string refused_after(const std::function<void(Parts&)>& change, const std::string& lines) {
    files_.write("lines", lines);
    save(change);
    return lost([&] { scores("lines"); });
  }

  Job job_;
  Parts whole_;
};

class SavedPartsOfRatings : public SavedPartsOf {
 protected:
  SavedPartsOfRatings() { train_once(tiny_job()); }
  std::string refused(const std::function<void(Parts&)>& change) {
    return refused_after(change, "user,item\n103,10\n");
  }
};

TEST_F(SavedPartsOfRatings, AreTakenAsTheyWere) {
  save([](Parts&) {});
  files_.write("lines", "user,item\n103,10\n");
  EXPECT_EQ(scores("lines").lines.size(), 1u);
}

TEST_F(SavedPartsOfRatings, HaveListsOfRowsThatThereAre) {
  for (const std::int32_t id : {-1, 4, -100'000'000}) {
    EXPECT_EQ(refused([&](Parts& parts) { parts.set_id("lists.tag.ids", 2, id); }),
              fmt::format("tensor 'lists.tag.ids' must be rows 0 <= row < 4 of id map 'tag', got "
                          "{} at position 2",
                          id));
  }
}

TEST_F(SavedPartsOfRatings, HaveAListForEachRow) {
  const std::string rule =
      "tensor 'lists.tag.splits' must be 11 numbers that rise from 0 to 21, for the rows of id map "
      "'item' and the values of tensor 'lists.tag.ids', got ";
  const auto with = [&](const std::vector<std::int64_t>& splits) {
    return refused(
        [&](Parts& parts) { parts.caller.tensors["lists.tag.splits"] = saved_tensor(splits); });
  };
  EXPECT_EQ(with({}), rule + "0 numbers");
  EXPECT_EQ(with({0, 21}), rule + "2 numbers from 0 to 21");
  EXPECT_EQ(with({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 22}), rule + "11 numbers from 0 to 22");
  EXPECT_EQ(with({0, 1, 2, 30, 4, 5, 6, 7, 8, 9, 21}), rule + "11 numbers from 0 to 21");
}

TEST_F(SavedPartsOf, PairsHaveKnownItemsThatThereAre) {
  train_once(tiny_pairs());
  for (const std::int32_t id : {-1, 40, -100'000'000, -2'000'000'000}) {
    EXPECT_EQ(
        refused_after([&](Parts& parts) { parts.set_id("known.ids", 0, id); }, "100\n"),
        fmt::format(
            "tensor 'known.ids' must be rows 0 <= row < 40 of id map 'item', got {} at position 0",
            id));
  }
}

}  // namespace
}  // namespace embertable::jobs
