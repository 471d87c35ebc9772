#include "optimizer/variants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embertable/errors.h"

namespace embertable {
namespace {

TEST(Variants, HaveNamesThatAreSortedAndDiffer) {
  const std::vector<OptimizerVariant> all = optimizer_variants();
  EXPECT_EQ(std::ranges::adjacent_find(all, std::greater_equal{}, &OptimizerVariant::name),
            all.end());
  for (const OptimizerVariant& variant : all) {
    EXPECT_NE(variant.name.find('.'), std::string::npos) << variant.name;
    EXPECT_FALSE(variant.note.empty()) << variant.name;
  }
}

TEST(Variants, AllStandForTheirRuleWithTheirSettings) {
  for (const OptimizerVariant& variant : optimizer_variants()) {
    SCOPED_TRACE(variant.name);
    EXPECT_EQ(Optimizer(variant.name, 0.5), Optimizer(variant.rule, 0.5, variant.settings));
  }
}

TEST(Variants, ArePrintedAsTheirRule) {
  EXPECT_EQ(Optimizer("torch.SGD", 0.5).to_string(), "sgd(learning_rate=0.5)");
  EXPECT_EQ(Optimizer("fbgemm.rowwise_adagrad", 0.5).to_string().substr(0, 36),
            "rowwise_adagrad(learning_rate=0.5, i");
}

TEST(Variants, GiveWayToWhatIsGiven) {
  const Optimizer optimizer("keras.Adagrad", 0.5, {{"initial_accumulator_value", 2}});
  EXPECT_EQ(optimizer.parameter("initial_accumulator_value"), 2);
}

TEST(Variants, AreAmongTheNamesThatAnUnknownOneMayMean) {
  try {
    Optimizer("torch.Adagard", 0.5);
    FAIL();
  } catch (const ValueError& error) {
    EXPECT_STREQ(error.what(),
                 "optimizer 'torch.Adagard' is not known; the nearest is 'torch.Adagrad'");
  }
}

TEST(OptimizerNote, NamesTheFormulasThatHaveTheNameOfAnotherRule) {
  EXPECT_EQ(optimizer_note("Adam"),
            "optimizer 'Adam' is the rule adam, whose formula is another than that of fbgemm.adam, "
            "keras.Adam, optax.adam, sparsecore.adam, torch.Adam: these are known by those names");
  EXPECT_NE(optimizer_note("adam"), "");
  for (const char* name : {"Adagrad", "SGD", "Lion", "torch.Adam", "FTRL", "unknown", ""})
    EXPECT_EQ(optimizer_note(name), "") << name;
}

}  // namespace
}  // namespace embertable
