#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/jobs/models/mf.h"
#include "apps/jobs/spec/toml_text.h"
#include "embertable/errors.h"
#include "testing/source_path.h"
#include "testing/tiny_job.h"

namespace embertable::jobs {
namespace {

std::string refused(const std::vector<Change>& changes, std::string text = kTinyJob) {
  return refusal<ValueError>("", [&] { parse_job(text, "a/job.toml", changes); });
}

/// The tiny job with one text in the place of another.
std::string with(const std::string& from, const std::string& to) {
  std::string text = kTinyJob;
  return text.replace(text.find(from), from.size(), to);
}

TEST(JobFile, IsReadAsItSays) {
  EXPECT_EQ(parse_job(kTinyJob, "a/job.toml").name, "job");
  EXPECT_EQ(tiny_job().text, kTinyJob);
  const Job job = tiny_job({"seed=3", "ids.item.column=2", "tables.tag.combiner=sum",
                            "tables.tag.replicated=true",
                            "tables.item.initializer={kind=\"uniform\", low=-1, high=1}",
                            "optimizer.rule=adagrad", "optimizer.initial_accumulator_value=0.125"});
  EXPECT_EQ(job.seed, 3u);
  const auto& model = dynamic_cast<const MfSpec&>(*job.model);
  const RecordsSpec& records = model.records();
  EXPECT_EQ(records.data.highest, 5);
  EXPECT_THAT(job.ids, testing::ElementsAre("user", "item", "tag"));
  ASSERT_EQ(records.ids.size(), 3u);
  EXPECT_EQ(records.ids[1].columns, std::vector<std::string>{"2"});
  EXPECT_EQ(records.ids[2].name, "tag");
  EXPECT_EQ(records.ids[2].of, "item");
  EXPECT_EQ(records.ids[2].file.format.separator, ';');
  EXPECT_EQ(records.ids[2].rules.separator, "|");
  EXPECT_EQ(records.ids[2].rules.kind, KeyKind::kString);
  EXPECT_EQ(job.tables[1].first_b, 1);
  EXPECT_EQ(job.tables[2].combiner, Combiner::kSum);
  EXPECT_TRUE(job.tables[2].replicated);
  EXPECT_FALSE(job.tables[1].replicated);
  EXPECT_EQ(model.features().size(), 5u);
  EXPECT_THAT(model.sides, testing::ElementsAre("tag"));
  EXPECT_THAT(job.optimizer.parameters,
              testing::ElementsAre(testing::Pair("initial_accumulator_value", 0.125)));
  EXPECT_EQ(job.schedule.look_ahead, 1);
  EXPECT_EQ(job.strategy.replicas, 1);
  EXPECT_TRUE(model.trains_on_validation());
}

TEST(JobFile, HasKeysAndValuesOfLimitedDepth) {
  const auto many = [](int count, const std::string& text) {
    std::string all;
    for (int i = 0; i < count; ++i) all += text;
    return all;
  };
  const std::string parts = "a key must have at most 32 parts, got more";
  const std::string nested = "values must be nested at most 32 deep, got more";
  EXPECT_EQ(refused({}, "x = 1\n" + many(32, "a.") + "a = 1"), "a/job.toml:2: " + parts);
  EXPECT_EQ(refused({}, many(100'000, "a.") + "a = 1"), "a/job.toml:1: " + parts);
  EXPECT_EQ(refused({}, "[" + many(10'000, "'a.b' . \"c\\\"\".") + "a]"), "a/job.toml:1: " + parts);
  EXPECT_EQ(refused({}, "a = { b" + many(33, ".b") + " = 1 }"), "a/job.toml:1: " + parts);
  EXPECT_EQ(refused({}, "a = \n\n" + many(33, "[")), "a/job.toml:3: " + nested);
  EXPECT_EQ(refused({}, "a = " + many(30'000, "{ a = ")), "a/job.toml:1: " + nested);
  EXPECT_EQ(refused({many(32, "a.") + "a=1"}).substr(0, 4), "a.a.");
  EXPECT_THAT(refused({"seed=" + many(33, "[")}), testing::EndsWith("...:1: " + nested));
  // Dots and brackets within texts and comments do not count.
  const std::string dots = many(100, ".[{");
  EXPECT_NO_THROW(parse_job("# " + dots + "\n" + kTinyJob, "job.toml"));
  EXPECT_EQ(parse_job(with("\"names.csv\"", "\"" + dots + "\""), "job.toml").names[0].file.paths[0],
            dots);
  EXPECT_EQ(
      parse_job(with("\"names.csv\"", "'''" + dots + "'''''"), "job.toml").names[0].file.paths[0],
      dots + "''");
}

TEST(JobFile, IsRefusedWhateverItsTextBreaks) {
  for (const char* text :
       {"[",      "[=",      "[.a]",   "[[\n",      "a = .",   "a = +",  "a = -_",
        "a = 1e", "a = [,",  "a = \"", "a = '''",   "= 1",     "a.",     "a..b = 1",
        "{",      "a = {=",  "a = {a", "a = 1979-", "a = 00:", "a = 0x", "\"\" = 1\n[\"\".",
        "\xff",   "a = \xff"})
    EXPECT_THAT(refused({}, text), testing::StartsWith("a/job.toml:")) << text;
}

TEST(JobFile, HasALimitedSize) {
  const std::string large = std::string("# ") + std::string(256 << 10, '#') + "\n" + kTinyJob;
  EXPECT_EQ(refused({}, large), fmt::format("a/job.toml: the job must have at most 262144 bytes, "
                                            "got {}",
                                            large.size()));
  const TemporaryFiles files;
  const std::string path = files.write("job.toml", large);
  EXPECT_EQ(refusal<ValueError>(files.path(), [&] { read_job(path); }),
            "job.toml: the job must have at most 262144 bytes");
}

TEST(JobFile, ChangesTakeThePlaceOfWhatItSays) {
  const Job job = parse_job(kTinyJob, "job.toml",
                            {"schedule.epochs=7", "optimizer.rule=adagrad", "strategy.replicas=4",
                             "tables.user.initializer.stddev=0.5", "split.salt=9"});
  EXPECT_EQ(job.schedule.epochs, 7);
  EXPECT_EQ(job.strategy.replicas, 4);
  EXPECT_EQ(job.tables[0].first_b, 0.5);
  EXPECT_EQ(dynamic_cast<const MfSpec&>(*job.model).records().split.salt, 9u);
  EXPECT_EQ(parse_job(job.text, "job.toml").schedule.epochs, 7);
}

TEST(JobFile, ChangesMayNameKeysWithinQuotes) {
  const auto column = [](const char* change) {
    return dynamic_cast<const MfSpec&>(*parse_job(kTinyJob, "job.toml", {change}).model)
        .records()
        .data.where.at(0);
  };
  EXPECT_EQ(column(R"(data.where."user.id"="> 20")").column, "user.id");
  EXPECT_EQ(column(R"(data.where.'a=b.c'=filled)").column, "a=b.c");
  EXPECT_EQ(column(R"("data".where."a\"b"=filled)").column, "a\"b");
  EXPECT_EQ(column("data.where.movie id=filled").column, "movie id");
  EXPECT_EQ(column("data.where.it's=filled").column, "it's");
  EXPECT_EQ(column("data.where.'=filled").column, "'");
  EXPECT_THAT(refused({"data.\"where=1"}), testing::HasSubstr("data has no key '\"where'"));
  EXPECT_THAT(refused({"\"a"}), "a change must be KEY=VALUE, got '\"a'");
}

TEST(JobFile, IsSavedWithKeysThatNeedQuotes) {
  for (const char* key : {"Driver's", "a\tb", "Price\n(EUR)", "x.y", "caf\u00e9", "\n"}) {
    const std::string rule = fmt::format("data.where={{{}='filled'}}", toml_key(key));
    const Job job = parse_job(kTinyJob, "job.toml", {rule});
    EXPECT_EQ(dynamic_cast<const MfSpec&>(*parse_saved_job(job.text, "saved").model)
                  .records()
                  .data.where.at(0)
                  .column,
              key);
  }
}

TEST(JobFile, NamesLineKeyRuleAndValue) {
  EXPECT_EQ(refused({}, with("dim = 5", "dim = \"5\"")),
            "a/job.toml:23: tables.user.dim must be an integer from 1 to 4096, got '5'");
  EXPECT_EQ(refused({}, with("epochs = 2", "epochs = 1.5")),
            "a/job.toml:53: schedule.epochs must be an integer from 0 to 1000000, got 1.5");
  EXPECT_EQ(refused({}, with("range = [1, 5]", "range = [5, 1]")),
            "a/job.toml:5: data.range must be [lowest, highest] of the labels, got [ 5, 1 ]");
  EXPECT_EQ(refused({}, with("label = \"rating\"\n", "")),
            "a/job.toml:2: data.label must be a column's name or its number from 1, got nothing");
  EXPECT_EQ(refused({}, "seed = "),
            "a/job.toml:1:8: the job must be TOML: Error while parsing key-value pair: encountered "
            "end-of-file");
}

TEST(JobFile, NamesTheNearestOfWhatItKnows) {
  EXPECT_EQ(refused({}, with("epochs = 2", "epoch = 2\nepochs = 2")),
            "a/job.toml:53: schedule has no key 'epoch'; the nearest is 'epochs'");
  EXPECT_EQ(refused({}, with("[schedule]", "[scedule]\n[schedule]")),
            "a/job.toml:51: the job has no key 'scedule'; the nearest is 'schedule'");
  EXPECT_EQ(refused({}, with("item = \"item\"", "item = \"itme\"")),
            "a/job.toml:42: model.item must be one of user, item, tag, user_bias, item_bias, got "
            "\"itme\"; the nearest is 'item'");
  EXPECT_THAT(refused({}, with("rule = \"sgd\"", "rule = \"adagrat\"")),
              testing::AllOf(testing::StartsWith("a/job.toml:48: optimizer.rule must be one of "),
                             testing::EndsWith(", got \"adagrat\"; the nearest is 'adagrad'")));
  EXPECT_THAT(
      refused({"optimizer.rule=adagrad"}, with("decay = 0.9", "initial_acumulator_value = 1")),
      testing::AllOf(
          testing::StartsWith("a/job.toml:50: optimizer.initial_acumulator_value is refused: "),
          testing::HasSubstr("initial_accumulator_value")));
}

TEST(JobFile, ReadsWhatEveryOptimizerHas) {
  const Job job =
      tiny_job({"optimizer.clip_gradient_min=-1", "optimizer.clip_gradient_max=2.5",
                "optimizer.clip_weight_min=-3", "optimizer.clip_weight_max=4",
                "optimizer.weight_decay_factor=0.125",
                "optimizer.multiply_weight_decay_factor_by_learning_rate=true",
                "optimizer.low_dimensional_packing_status=true", "optimizer.step_counter=7"});
  const OptimizerOptions& options = job.optimizer.options;
  EXPECT_EQ(options.clip_gradient_min, -1);
  EXPECT_EQ(options.clip_gradient_max, 2.5);
  EXPECT_EQ(options.clip_weight_min, -3);
  EXPECT_EQ(options.clip_weight_max, 4);
  EXPECT_EQ(options.weight_decay_factor, 0.125);
  EXPECT_TRUE(options.multiply_weight_decay_factor_by_learning_rate);
  EXPECT_TRUE(options.low_dimensional_packing_status);
  EXPECT_EQ(options.step_counter, LearningRate(7));
  EXPECT_TRUE(options.use_gradient_accumulation);
  EXPECT_TRUE(job.optimizer.parameters.empty());
  EXPECT_EQ(job.settings.at("optimizer.weight_decay_factor"), "0.125");
  EXPECT_FALSE(job.settings.contains("optimizer.use_gradient_accumulation"));
  EXPECT_FALSE(tiny_job({"optimizer.use_gradient_accumulation=false"})
                   .optimizer.options.use_gradient_accumulation);
}

TEST(JobFile, NamesTheOptionThatDoesNotFit) {
  EXPECT_EQ(refused({}, with("decay = 0.9", "clip_weight_min = 1\nclip_weight_max = 0")),
            "a/job.toml:51: optimizer.clip_weight_max is refused: sgd: clip_weight_min must be <= "
            "clip_weight_max, got 1 and 0");
  EXPECT_EQ(refused({}, with("decay = 0.9", "use_gradient_accumulation = 1")),
            "a/job.toml:50: optimizer.use_gradient_accumulation must be true or false, got 1");
  EXPECT_EQ(refused({}, with("decay = 0.9", "weight_decay_factor = \"little\"")),
            "a/job.toml:50: optimizer.weight_decay_factor must be a number, got 'little'");
}

TEST(JobFile, NamesAMisspeltKeyWhereOneIsMissing) {
  EXPECT_EQ(refused({}, with("epochs = 2", "epoch = 2")),
            "a/job.toml:53: schedule has no key 'epoch'; the nearest is 'epochs'");
  EXPECT_EQ(refused({}, with("[schedule]", "[shedule]")),
            "a/job.toml:51: the job has no key 'shedule'; the nearest is 'schedule'");
  EXPECT_EQ(
      refused({}, with("[ids.user]\ncolumn", "[ids.user]\nqueue")),
      "a/job.toml:6: ids.user.column must be a column's name or its number from 1, got nothing");
  EXPECT_EQ(refused({},
                    "[data]\nfile = \"a\"\nlabel = 1\nrange = [0, 1]\n[ids]\n"
                    "[model]\nkind = \"mf\"\n"),
            "a/job.toml:5: ids must name ids, got none");
}

TEST(JobFile, NamesTheKeyThatNoJobHasWhateverIsLeftOut) {
  const std::string text =
      "[data]\nfile = \"a\"\nlabel = \"l\"\nrange = [1, 5]\n[ids]\n"
      "user.column = \"u\"\nitem.column = \"i\"\n[model]\nkind = \"mf\"\n";
  EXPECT_NO_THROW(parse_job(text, "a/job.toml"));
  EXPECT_EQ(refused({}, "sead = 3\n" + text),
            "a/job.toml:1: the job has no key 'sead'; the nearest is 'seed'");
  EXPECT_THAT(refused({"foo=1"}, text), testing::StartsWith("foo=1: the job has no key 'foo'"));
  EXPECT_EQ(refused({"schedule=1"}, text), "schedule=1: schedule must be a table, got 1");
  EXPECT_EQ(refused({}, "tables = []\n" + text), "a/job.toml:1: tables must be a table, got []");
}

TEST(JobFile, NamesTheChangeThatIsWrong) {
  EXPECT_EQ(refused({"schedule.epochs=many"}),
            "schedule.epochs=many: schedule.epochs must be an integer from 0 to 1000000, got "
            "'many'");
  EXPECT_EQ(refused({"schedule.epoch=3"}),
            "schedule.epoch=3: schedule has no key 'epoch'; the nearest is 'epochs'");
  EXPECT_EQ(refused({"scedule.epochs=3"}),
            "scedule.epochs=3: the job has no key 'scedule'; the nearest is 'schedule'");
  EXPECT_EQ(refused({"schedule.batch.x=3"}),
            "schedule.batch.x=3: schedule.batch must be a table, got 24");
  EXPECT_EQ(refused({"seed=1", "seed=-1"}),
            "seed=-1: seed must be an integer from 0 to 9223372036854775807, got -1");
  EXPECT_EQ(refused({"seed"}), "a change must be KEY=VALUE, got 'seed'");
}

TEST(JobFile, AKeyThatIsTakenOutMayBeMeant) {
  const std::string text = "[data]\nfile = \"a.csv\"\n[model]\nkind = \"skipgram\"\n";
  EXPECT_EQ(refused({"model.dims=16"}, text),
            "model.dims=16: model has no key 'dims'; the nearest is 'dim'");
  EXPECT_EQ(refused({"engine.threads=2"}, text), "engine.threads=2: engine has no key 'threads'");
}

TEST(JobFile, AMissingChoiceNamesWhatMayBeChosen) {
  EXPECT_EQ(refused({}, "[data]\nfile = \"a.csv\"\n[model]\n"),
            "a/job.toml:3: model.kind must be one of mf, ctr, next_item, pairwise, skipgram, got "
            "nothing");
}

TEST(JobFile, UnusedIdsAreRefused) {
  const std::string unused = "[ids.usr]\ncolumn = \"u\"\n[ids.user]";
  EXPECT_EQ(refused({}, with("[ids.user]", unused)),
            "a/job.toml:6: ids.usr is used by no table; the nearest is 'user'");
  EXPECT_EQ(refused({"ids.shelf.column=s"}), "ids.shelf.column=s: ids.shelf is used by no table");
  EXPECT_EQ(parse_saved_job(with("[ids.user]", unused), "a.toml").ids.size(), 4u);
  // The split or a side table may use ids that have no table.
  EXPECT_NO_THROW(tiny_job({"ids.shelf.column=s", "split.by=[\"shelf\"]"}));
  const std::string clicks =
      "[data]\nfile = \"a.csv\"\nlabel = \"l\"\n[ids.item]\ncolumn = \"i\"\n[ids.tag]\nfile = "
      "\"t.csv\"\nkey = \"i\"\nof = \"item\"\ncolumn = \"t\"\nseparator = \"|\"\n[model]\nkind = "
      "\"ctr\"\nlinear = [\"tag\"]\n[tables.tag]\ndim = 1\n";
  EXPECT_EQ(parse_job(clicks, "a.toml").tables.size(), 1u);
}

TEST(JobFile, NamesTheSourceOfTheChangeThatIsWrong) {
  const std::string text = "[data]\nfile = \"a.csv\"\n[model]\nkind = \"skipgram\"\n";
  EXPECT_EQ(refused({{"schedule.epochs=many", "--set schedule.epochs=many"}}, text),
            "--set schedule.epochs=many: schedule.epochs must be an integer from 0 to 1000000, got "
            "'many'");
  EXPECT_EQ(refused({{"seed.x=1", "set[\"seed.x\"]"}}, "seed = 1\n" + text),
            "set[\"seed.x\"]: seed must be a table, got 1");
}

TEST(JobFile, PartsMustFitTogether) {
  EXPECT_EQ(refused({"strategy.hosts=2", "strategy.replicas=3"}),
            "strategy.replicas=3: strategy.replicas must be a multiple of the 2 hosts, got 3");
  EXPECT_EQ(refused({"strategy.hosts=2"}),
            "a/job.toml: strategy.replicas must be a multiple of the 2 hosts, got 1");
  EXPECT_EQ(refused({"strategy.replicas=5"}),
            "strategy.replicas=5: strategy.replicas must divide schedule.batch (24), got 5");
  EXPECT_EQ(refused({"tables.tag.dim=6"}),
            "a/job.toml:45: model.sides must name a feature of dim 5, got \"tag\" of dim 6");
  EXPECT_EQ(refused({"model.item=tag"}),
            "model.item=tag: model.item must name a feature with one id a sample, got "
            "\"tag\" with a list");
  EXPECT_EQ(refused({"model.item=user"}),
            "a/job.toml:40: model.kind must use each feature once, got \"user\" twice");
  EXPECT_EQ(refused({"model.sides=[]"}),
            "a/job.toml:40: model.kind must use every feature, got none for \"tag\"");
  EXPECT_EQ(refused({"split.by=[\"tag\"]"}),
            "split.by=[\"tag\"]: split.by must be ids with one key per record of the data "
            "file, or columns, got [ 'tag' ]");
  EXPECT_EQ(refused({"ids.tag.of=tag"}),
            "ids.tag.of=tag: ids.tag.of must be ids of a column of the data file with one "
            "key per field, got 'tag'");
}

TEST(JobFile, SaysWhenToSave) {
  EXPECT_TRUE(tiny_job().checkpoint.every_epoch);
  EXPECT_EQ(tiny_job().checkpoint.every_steps, 0);
  EXPECT_EQ(tiny_job({"checkpoint.every=30"}).checkpoint.every_steps, 30);
  EXPECT_FALSE(tiny_job({"checkpoint.every=30"}).checkpoint.every_epoch);
  EXPECT_FALSE(tiny_job({"checkpoint.every=end"}).checkpoint.every_epoch);
  EXPECT_EQ(tiny_job({"checkpoint.keep=0"}).checkpoint.keep, 0);
  for (const std::string wrong : {"0", "-1", "3x", "steps", "true"}) {
    EXPECT_THAT(refused({"checkpoint.every=" + wrong}),
                testing::StartsWith("checkpoint.every=" + wrong + ": checkpoint.every must be "))
        << wrong;
  }
}

TEST(JobFile, KnowsEveryKeyWithItsValue) {
  const Job job = tiny_job({"schedule.epochs=7"});
  EXPECT_EQ(job.settings.at("schedule.epochs"), "7");
  EXPECT_EQ(job.settings.at("schedule.look_ahead"), "1");
  EXPECT_EQ(job.settings.at("tables.user.initializer.stddev"), "0.1");
  EXPECT_EQ(job.settings.at("data.range"), "[1, 5]");
  EXPECT_EQ(job.settings.at("model.sides"), "[tag]");
  EXPECT_EQ(job.settings.at("split.train_on_validation"), "true");
  EXPECT_FALSE(job.settings.contains("optimizer.initial_accumulator_value"));
  EXPECT_EQ(tiny_job({"schedule.epochs=7", "seed=1"}).settings, job.settings);  // the default seed
}

TEST(JobFile, TheExamplesOfClicksAreJobs) {
  for (const char* name : {"adult", "criteo", "diabetes"}) {
    const Job job = read_job(source_path("examples/jobs/") + name + ".toml");
    EXPECT_EQ(job.model_kind, "ctr");
    EXPECT_EQ(job.metrics, (std::vector<std::string>{"auc", "logloss"}));
    EXPECT_TRUE(job.model->trains_on_validation());
  }
}

TEST(JobFile, TheExamplesAreJobs) {
  for (const char* name : {"goodbooks", "goodbooks-genres", "movielens"}) {
    const Job job = read_job(source_path("examples/jobs/") + name + ".toml");
    EXPECT_EQ(job.name, name);
    EXPECT_EQ(job.tables.front().dim, 32);
    EXPECT_TRUE(job.model->trains_on_validation());
  }
}

}  // namespace
}  // namespace embertable::jobs
