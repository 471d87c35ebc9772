// Checkpoints whose every checksum is right, of parts that do not fit together.
#include "apps/jobs/spec/saved_parts.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "apps/jobs/run/neighbors.h"
#include "apps/jobs/spec/state_tensors.h"
#include "checkpoint/id_maps.h"
#include "checkpoint/reader.h"
#include "embertable/embedding.h"
#include "testing/predicted_scores.h"
#include "testing/tiny_clicks.h"
#include "testing/tiny_histories.h"
#include "testing/tiny_job.h"
#include "testing/tiny_words.h"

namespace embertable::jobs {
namespace {

using testing::StartsWith;

IdMap integers(std::int64_t count) {
  IdMapBuilder keys(KeyKind::kInteger);
  for (std::int64_t key = 0; key < count; ++key) keys.add(key);
  return keys.build();
}

IdMap strings(std::int64_t count) {
  IdMapBuilder keys(KeyKind::kString);
  for (std::int64_t key = 0; key < count; ++key) keys.add("w" + std::to_string(key));
  return keys.build();
}

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
    keep_parts();
  }

  void keep_parts() {
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

  /// What predicting for the lines of a file, measuring and going on all say of the changed run.
  std::string refused_after(const std::function<void(Parts&)>& change, const std::string& lines) {
    files_.write("lines", lines);
    save(change);
    const std::string text = lost([&] { scores("lines"); });
    EXPECT_EQ(lost([&] { measured(); }), text);
    const TrainOptions again{.out = files_.path("out"), .resume = true, .threads = 1};
    EXPECT_EQ(lost([&] { train_in(files_, job_, again); }), text);
    return text;
  }

  /// What opening a table for its neighbours says of the changed run.
  std::string table_refused_after(const std::function<void(Parts&)>& change,
                                  const std::string& table) {
    save(change);
    return lost([&] { SavedTableRows(files_.path("out"), table); });
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
  EXPECT_EQ(SavedTableRows(files_.path("out"), "item").rows(), 10);
}

TEST_F(SavedPartsOfRatings, NeedEveryIdMap) {
  EXPECT_EQ(refused([](Parts& parts) { parts.ids.erase("item"); }),
            "the job must have the id map 'item', got none");
  EXPECT_EQ(table_refused_after([](Parts& parts) { parts.ids.erase("item"); }, "item"),
            "table 'item' must have the id map 'item', got none");
}

TEST_F(SavedPartsOfRatings, HaveIdMapsOfTheJobsKind) {
  EXPECT_EQ(refused([](Parts& parts) { parts.ids.at("item") = strings(10); }),
            "id map 'item' must have integer keys and 0 shared rows as the job says, got string "
            "keys and 0 shared rows");
  EXPECT_EQ(
      refused([](Parts& parts) { parts.ids.at("item") = IdMap::hashed(KeyKind::kInteger, 10); }),
      "id map 'item' must have integer keys and 0 shared rows as the job says, got integer keys "
      "and 10 shared rows");
}

TEST_F(SavedPartsOfRatings, HaveARowForEachOfTheIdMap) {
  for (const int keys : {9, 11, 100'000}) {
    const auto change = [&](Parts& parts) { parts.ids.at("item") = integers(keys); };
    const std::string rule =
        fmt::format("table 'item' must have the {} rows of id map 'item', got 10", keys);
    EXPECT_EQ(refused(change), rule);
    EXPECT_EQ(table_refused_after(change, "item"), rule);
  }
  EXPECT_EQ(refused([](Parts& parts) { parts.tables.at("user_bias").vocabulary_size = 19; }),
            "table 'user_bias' must have the 20 rows of id map 'user', got 19");
}

TEST_F(SavedPartsOfRatings, HaveTheTablesOfTheJob) {
  EXPECT_EQ(refused([](Parts& parts) { parts.tables.erase("item_bias"); }),
            "the job must have the table 'item_bias', got none");
  EXPECT_EQ(refused([](Parts& parts) { parts.tables.at("item_bias").dim = 5; }),
            "table 'item_bias' must have dim 1 as the job says, got 5");
}

TEST_F(SavedPartsOfRatings, NameTheSameIdsTwice) {
  files_.write("lines", "user,item\n103,10\n");
  save([](Parts& parts) {
    std::string& json = parts.caller.json;
    const std::string ids = R"("item":"item")";
    json.replace(json.find(ids), ids.size(), R"("item":"user")");
  });
  EXPECT_THAT(refusal<DataLoss>(files_.path(), [&] { scores("lines"); }),
              testing::EndsWith("user.ids.item must be 'item' as the job says, got 'user'"));
  EXPECT_EQ(lost([&] { SavedTableRows(files_.path("out"), "item"); }),
            "table 'item' must have the 20 rows of id map 'user', got 10");
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

TEST_F(SavedPartsOfRatings, HaveVectorsLikeTheTable) {
  const auto change = [](Parts& parts) {
    parts.caller.tensors.at("vectors.item") = saved_tensor(std::vector<double>(25), {5, 5});
  };
  const std::string rule =
      "tensor 'vectors.item' must be F32 [10, 5] as table 'item' is, got F64 [5, 5]";
  EXPECT_EQ(refused(change), rule);
  EXPECT_EQ(table_refused_after(change, "item"), rule);
}

TEST_F(SavedPartsOfRatings, HaveANameForEachKey) {
  const auto with = [&](const std::string& names) {
    const auto change = [&](Parts& parts) { parts.caller.blobs.at("names.item") = names; };
    const std::string text = refused(change);
    EXPECT_EQ(table_refused_after(change, "item"), text);
    return text;
  };
  const std::string rule =
      "blob 'names.item' must be a list of 10 names, one for each key of id map 'item', got ";
  EXPECT_EQ(with(R"(["one", null, "three"])"), rule + "3");
  EXPECT_EQ(with(R"([1,2,3,4,5,6,7,8,9,10,"x"])"), rule + "11");
  EXPECT_EQ(with(R"({"a": "b"})"), rule + "no list");
  EXPECT_EQ(with("not JSON"), rule + "no list");
}

TEST_F(SavedPartsOfRatings, HaveNeighboursEvenIfSomeAreNotFinite) {
  std::vector<float> vectors(50, 0.0f);
  std::fill_n(vectors.begin(), 10, 1.0f);
  std::fill_n(vectors.begin() + 10, 5, std::numeric_limits<float>::infinity());
  std::fill_n(vectors.begin() + 15, 5, std::numeric_limits<float>::quiet_NaN());
  save([&](Parts& parts) {
    parts.caller.tensors.at("vectors.item") = saved_tensor(vectors, {10, 5});
  });
  const auto nearest = [&](std::int64_t row) {
    std::vector<std::int64_t> rows;
    for (const Neighbor& near : nearest_rows({files_.path("out"), "item"}, row, 9))
      rows.push_back(near.row);
    return rows;
  };
  EXPECT_THAT(nearest(0), testing::ElementsAre(1, 4, 5, 6, 7, 8, 9, 2, 3));
  EXPECT_THAT(nearest(2), testing::ElementsAre(4, 5, 6, 7, 8, 9, 0, 1, 3));
}

TEST_F(SavedPartsOfRatings, HaveTheParametersOfTheModel) {
  EXPECT_EQ(refused([](Parts& parts) { parts.caller.tensors.erase("mean"); }),
            "the job must have the tensor 'mean', got none");
  EXPECT_EQ(refused([](Parts& parts) { parts.caller.tensors.at("mean").shape = {1}; }),
            "tensor 'mean' must be F64 [] as the job says, got F64 [1]");
}

TEST_F(SavedPartsOfRatings, HaveAProgressThatTheJobAllows) {
  files_.write("lines", "user,item\n103,10\n");
  const auto with = [&](const std::string& was, const std::string& is) {
    save([&](Parts& parts) {
      std::string& json = parts.caller.json;
      ASSERT_NE(json.find(was), std::string::npos) << json;
      json.replace(json.find(was), was.size(), is);
    });
    return refusal<DataLoss>(files_.path(), [&] { scores("lines"); });
  };
  const auto ends = [](const std::string& text) { return testing::EndsWith("user." + text); };
  EXPECT_THAT(
      with(R"("epochs":)", R"("epochs":2147483647,"was":)"),
      ends(fmt::format("progress.epochs must be an integer in 0..{}", job_.schedule.epochs)));
  EXPECT_THAT(with(R"("samples":0)", R"("samples":9223372036854775807)"),
              ends("progress.samples must be an integer in 0..1152921504606846976"));
  EXPECT_THAT(with(R"("trained":)", R"("trained":-1,"was":)"),
              ends("progress.trained must be an integer in 0..1152921504606846976"));
  EXPECT_THAT(with(R"("seconds":)", R"("seconds":-1.5,"was":)"),
              ends("progress.seconds must be at least 0 and finite, got -1.5"));
  EXPECT_THAT(with(R"("best_epoch":0)", R"("best_epoch":1)"),
              ends("progress.best_epoch must be an integer in 0..0"));
}

TEST_F(SavedPartsOf, APipelinedRunWithinAnEpochHasTheActivationsOfTheNextBatch) {
  StopAfter stop(1);
  job_ = tiny_job({"schedule.pipelined=true"});
  train_in(files_, job_,
           {.out = files_.path("out"), .threads = 1, .stop = [&] { return stop.now.load(); }},
           stop);
  keep_parts();
  const auto refused = [&](const std::function<void(Parts&)>& change) {
    save(change);
    const TrainOptions again{.out = files_.path("out"), .resume = true, .threads = 1};
    return lost([&] { train_in(files_, job_, again); });
  };
  EXPECT_THAT(refused([](Parts& parts) {
                std::erase_if(parts.caller.tensors, [](const auto& tensor) {
                  return tensor.first.starts_with("looked_up.");
                });
              }),
              StartsWith("the run must have activations of a next batch"));
  EXPECT_EQ(refused([](Parts& parts) { parts.caller.tensors.erase("looked_up.item"); }),
            "the run must have the tensor 'looked_up.item', got none");
  const auto narrow = [](Parts& parts) {
    parts.caller.tensors.at("looked_up.item") = saved_tensor(std::vector<float>(3), {3, 1});
  };
  EXPECT_EQ(refused(narrow), "tensor 'looked_up.item' must be F32 [3, 5], got F32 [3, 1]");
  EXPECT_EQ(refused([](Parts& parts) {
              parts.caller.tensors["looked_up.x"] = saved_tensor(std::vector<float>(3));
            }),
            fmt::format("the run must have activations of {0} features, got {1}", 5, 6));
}

TEST_F(SavedPartsOf, ClicksHaveTheSharedRowsOfTheJob) {
  write_tiny_clicks(files_);
  train_once(tiny_clicks());
  const auto refused = [&](const IdMap& map) {
    return refused_after([&](Parts& parts) { parts.ids.at("site") = map; }, "site,user\ns1,3\n");
  };
  EXPECT_EQ(refused(strings(40)),
            "id map 'site' must have string keys and 40 shared rows as the job says, got string "
            "keys and 0 shared rows");
  EXPECT_EQ(refused_after([](Parts& parts) { parts.tables.at("site").vocabulary_size = 39; },
                          "site,user\ns1,3\n"),
            "table 'site' must have the 40 rows of id map 'site', got 39");
}

TEST_F(SavedPartsOf, ClicksHaveTheParametersOfTheirNetwork) {
  write_tiny_clicks(files_);
  train_once(tiny_clicks());
  const auto refused = [&](const std::function<void(Parts&)>& change) {
    return refused_after(change, "site,user\ns1,3\n");
  };
  EXPECT_EQ(refused([](Parts& parts) {
              parts.caller.tensors.at("model.layer1.weight").shape = {4, 3};
            }),
            "tensor 'model.layer1.weight' must be F32 [3, 4] as the job says, got F32 [4, 3]");
  EXPECT_EQ(
      refused([](Parts& parts) { parts.caller.tensors.erase("model.output.bias.accumulator"); }),
      "the job must have the tensor 'model.output.bias.accumulator', got none");
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

TEST_F(SavedPartsOf, PairsHaveTheSizesOfTheirIdMaps) {
  train_once(tiny_pairs());
  const auto refused = [&](const std::function<void(Parts&)>& change) {
    return refused_after(change, "100\n");
  };
  EXPECT_EQ(refused([](Parts& parts) { parts.tables.at("user").vocabulary_size = 79; }),
            "table 'user' must have the 80 rows of id map 'user', got 79");
  EXPECT_EQ(refused([](Parts& parts) { parts.tables.at("user").dim = 1; }),
            "table 'user' must have dim 9 as the job says, got 1");
  EXPECT_EQ(refused([](Parts& parts) {
              parts.caller.tensors["popularity"] = saved_tensor(std::vector<float>(39));
            }),
            "tensor 'popularity' must have 40 numbers, one for each row of id map 'item', got 39");
  EXPECT_THAT(refused([](Parts& parts) {
                parts.caller.tensors["known.splits"] = saved_tensor(std::vector<std::int64_t>{0});
              }),
              testing::HasSubstr("must be 81 numbers that rise from 0 to"));
}

TEST_F(SavedPartsOf, ChainsHaveHistoriesOfItemsThatThereAre) {
  train_once(tiny_chains());
  const auto refused = [&](const std::function<void(Parts&)>& change) {
    return refused_after(change, "1 1003 5 99999\n");
  };
  EXPECT_EQ(refused([](Parts& parts) { parts.ids.at("item") = integers(100'000); }),
            "table 'before' must have the 100000 rows of id map 'item', got 90");
  EXPECT_EQ(refused([](Parts& parts) { parts.tables.at("before").vocabulary_size = 30; }),
            "table 'before' must have the 90 rows of id map 'item', got 30");
  EXPECT_EQ(refused([](Parts& parts) { parts.tables.at("before").dim = 1; }),
            "table 'before' must have dim 10 as the job says, got 1");
  EXPECT_EQ(refused([](Parts& parts) { parts.ids.erase("class"); }),
            "the job must have the id map 'class', got none");
  EXPECT_EQ(
      refused([](Parts& parts) {
        parts.caller.tensors.at("vectors.before") = saved_tensor(std::vector<float>(9), {9, 1});
      }),
      "tensor 'vectors.before' must be F32 [90, 10] as table 'before' is, got F32 [9, 1]");
}

TEST_F(SavedPartsOf, WordsHaveRowsOfTheirTables) {
  write_tiny_words(files_);
  train_once(tiny_words());
  const auto change = [](Parts& parts) { parts.ids.at("word") = strings(100'000); };
  EXPECT_EQ(refused_after(change, "w1"),
            "table 'word' must have the 100000 rows of id map 'word', got 6");
  EXPECT_EQ(table_refused_after(change, "context"),
            "table 'context' must have the 100000 rows of id map 'word', got 6");
}

}  // namespace
}  // namespace embertable::jobs
