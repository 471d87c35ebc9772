#include "apps/jobs/math/mlp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "apps/jobs/spec/model.h"
#include "base/random.h"
#include "embertable/errors.h"
#include "embertable/executor.h"
#include "kernels/logistic/logistic.h"
#include "testing/executor.h"

namespace embertable::jobs {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

/// Inputs of 5 and 18 columns, layers of 20 and 7.
const MlpShape kShape = {.inputs = {5, 18}, .hidden = {20, 7}};

/// Inputs, labels and what the rest of a model gives to the logits, of all samples of a step.
struct Data {
  explicit Data(std::int64_t num_samples, std::uint64_t stream = 1) : samples(num_samples) {
    for (const std::int64_t columns : kShape.inputs) inputs.push_back(draw(columns, stream++));
    given = draw(1, stream++);
    labels = draw(1, stream);
    for (float& label : labels) label = label > 0 ? 1.0f : 0.0f;
  }

  Floats draw(std::int64_t columns, std::uint64_t stream) const {
    Floats values(samples * columns);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = 2 * uniform_float(random_bits(stream, i, 7)) - 1;
    return values;
  }

  std::int64_t blocks() const { return (samples + kBlockSamples - 1) / kBlockSamples; }

  std::int64_t samples;
  std::vector<Floats> inputs;
  Floats given, labels;
};

/// What a step gives: gradients in the place of the inputs, logits, and the loss.
struct Outcome {
  std::vector<Floats> inputs;
  Floats logits;
  double loss = 0;
};

/// The sum of the losses, and their slopes by the logits.
double logistic_loss(std::int64_t samples, const float* logits, const float* labels, float* slopes,
                     SimdLevel level) {
  float losses[kBlockSamples];
  logistic({.logit = logits, .count = samples, .probability = slopes, .loss = losses}, level);
  double sum = 0;
  for (std::int64_t s = 0; s < samples; ++s) {
    sum += static_cast<double>(losses[s] - labels[s] * logits[s]);
    slopes[s] -= labels[s];
  }
  return sum;
}

/// Forward and backward of every block, on `executor`; then the step, unless `rate` is 0.
Outcome take_step(Mlp& mlp, const Data& data, Executor& executor, double rate,
                  SimdLevel level = SimdLevel::kScalar, float regularization = 0) {
  Outcome outcome{.inputs = data.inputs, .logits = data.given};
  Doubles losses(data.blocks());
  executor.run(data.blocks(), [&](const WorkItem& item) {
    const std::int64_t first = item.index * kBlockSamples;
    const std::int64_t count = std::min(kBlockSamples, data.samples - first);
    float* inputs[] = {outcome.inputs[0].data() + first * kShape.inputs[0],
                       outcome.inputs[1].data() + first * kShape.inputs[1]};
    float slopes[kBlockSamples];
    mlp.forward(item.index, count, inputs, outcome.logits.data() + first);
    losses[item.index] = logistic_loss(count, outcome.logits.data() + first,
                                       data.labels.data() + first, slopes, level);
    mlp.backward(item.index, count, inputs, slopes, regularization);
  });
  for (const double loss : losses) outcome.loss += loss;
  if (rate != 0) mlp.step(data.blocks(), rate);
  return outcome;
}

Mlp make_mlp(std::int64_t max_blocks, const MlpOptimizer& optimizer = {},
             SimdLevel level = SimdLevel::kScalar) {
  Mlp mlp(kShape, optimizer, 3, 0.25f, max_blocks, level);
  mlp.prepare_training();
  return mlp;
}

CallerState saved(const Mlp& mlp) {
  CallerState state;
  mlp.save("dense", state);
  return state;
}

Floats values(const CallerState& state, const std::string& name) {
  const std::string& bytes = state.tensors.at("dense." + name).bytes;
  Floats floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), bytes.size());
  return floats;
}

/// The network in double, from its tensors.
struct Reference {
  explicit Reference(const CallerState& state) {
    for (const char* name : {"layer1.weight", "layer1.bias", "layer2.weight", "layer2.bias",
                             "output.weight", "output.bias"}) {
      const Floats floats = values(state, name);
      parameters[name] = Doubles(floats.begin(), floats.end());
    }
  }

  Doubles layer(const Doubles& x, const std::string& name) {
    Doubles y = parameters[name + ".bias"];
    for (std::size_t i = 0; i < x.size(); ++i) {
      for (std::size_t o = 0; o < y.size(); ++o)
        y[o] += x[i] * parameters[name + ".weight"][i * y.size() + o];
    }
    return y;
  }

  double logit(const Data& data, std::size_t sample) {
    Doubles x;
    for (std::size_t i = 0; i < data.inputs.size(); ++i) {
      const auto columns = static_cast<std::size_t>(kShape.inputs[i]);
      for (std::size_t c = 0; c < columns; ++c) x.push_back(data.inputs[i][sample * columns + c]);
    }
    for (const char* name : {"layer1", "layer2"}) {
      x = layer(x, name);
      for (double& value : x) value = std::max(value, 0.0);
    }
    double sum = parameters["output.bias"][0] + data.given[sample];
    for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * parameters["output.weight"][i];
    return sum;
  }

  double loss(const Data& data) {
    double sum = 0;
    for (std::size_t s = 0; s < data.labels.size(); ++s) {
      const double z = logit(data, s);
      sum += std::log1p(std::exp(z)) - data.labels[s] * z;
    }
    return sum;
  }

  std::map<std::string, Doubles> parameters;
};

TEST(Mlp, AgreesWithTheFormulaInDouble) {
  const Data data(300);
  Mlp mlp = make_mlp(2);
  const Outcome outcome = take_step(mlp, data, *make_inline_executor(), 0);
  Reference reference(saved(mlp));
  for (std::size_t s = 0; s < outcome.logits.size(); ++s)
    EXPECT_NEAR(outcome.logits[s], reference.logit(data, s), 1e-5);
  EXPECT_NEAR(outcome.loss, reference.loss(data), 1e-3);
}

TEST(Mlp, GradientsOfInputsAreTheSlopesOfTheLoss) {
  Data data(20);
  Mlp mlp = make_mlp(1);
  const Outcome outcome =
      take_step(mlp, data, *make_inline_executor(), 0, SimdLevel::kScalar, 0.5f);
  Reference reference(saved(mlp));
  constexpr float kStep = 1.0f / 4096;
  for (std::size_t input = 0; input < 2; ++input) {
    for (std::size_t i = 0; i < data.inputs[input].size(); i += 3) {
      float& x = data.inputs[input][i];
      const float before = x;
      x = before + kStep;
      const double above = reference.loss(data);
      x = before - kStep;
      const double below = reference.loss(data);
      x = before;
      EXPECT_NEAR(outcome.inputs[input][i], (above - below) / (2 * kStep) + 0.5 * before, 1e-3);
    }
  }
}

TEST(Mlp, GradientsOfWeightsAreTheSlopesOfTheLoss) {
  const Data data(300);
  Mlp mlp = make_mlp(2, {.learning_rate = 1, .initial_accumulator = 0});
  const CallerState before = saved(mlp);
  Reference reference(before);
  take_step(mlp, data, *make_inline_executor(), 1);
  const CallerState after = saved(mlp);
  for (auto& [name, parameter] : reference.parameters) {
    // From an accumulator of 0 the first step moves a weight by the rate, against its gradient.
    const Floats was = values(before, name), is = values(after, name);
    const Floats squares = values(after, name + ".accumulator");
    for (std::size_t i = 0; i < parameter.size(); i += parameter.size() / 16 + 1) {
      const double value = parameter[i];
      parameter[i] = value + 1e-5;
      const double above = reference.loss(data);
      parameter[i] = value - 1e-5;
      const double slope = (above - reference.loss(data)) / 2e-5;
      parameter[i] = value;
      EXPECT_NEAR(std::copysign(std::sqrt(squares[i]), was[i] - is[i]), slope, 2e-3) << name << i;
    }
  }
}

TEST(Mlp, WeightsArePulledToZeroAndBiasesAreNot) {
  Data data(10);
  for (Floats& input : data.inputs) std::fill(input.begin(), input.end(), 0.0f);
  const MlpOptimizer optimizer = {
      .learning_rate = 1, .initial_accumulator = 1, .regularization = 0.5};
  Mlp mlp = make_mlp(1, optimizer);
  const Floats was = values(saved(mlp), "layer1.weight");
  take_step(mlp, data, *make_inline_executor(), 1);
  const Floats is = values(saved(mlp), "layer1.weight");
  for (std::size_t i = 0; i < was.size(); ++i) {
    const float g = 0.5f * was[i];
    EXPECT_EQ(is[i], was[i] - g / std::sqrt(1 + g * g));
  }
}

TEST(Mlp, HasTheSameBitsOnAnyThreadsAndLevels) {
  const Data first(700, 1), second(650, 50);
  const auto train = [&](Executor& executor, SimdLevel level) {
    Mlp mlp = make_mlp(3, {.regularization = 0.01}, level);
    take_step(mlp, first, executor, 1, level, 0.1f);
    const Outcome outcome = take_step(mlp, second, executor, 0.5, level, 0.1f);
    return std::tuple(saved(mlp), outcome.inputs, outcome.logits, outcome.loss);
  };
  const auto wanted = train(*make_inline_executor(), SimdLevel::kScalar);
  for (const SimdLevel level : usable_levels()) {
    for (const int threads : {1, 2, 3, 7})
      EXPECT_TRUE(train(*make_thread_pool(threads), level) == wanted);
    for (const std::uint64_t seed : {1, 2, 3}) {
      TestExecutor shuffled(seed, 3);
      EXPECT_TRUE(train(shuffled, level) == wanted);
    }
  }
}

TEST(Mlp, GoesOnFromWhatItSaved) {
  const Data data(300);
  const auto inline_executor = make_inline_executor();
  Executor& executor = *inline_executor;
  Mlp whole = make_mlp(2), part = make_mlp(2);
  take_step(whole, data, executor, 1);
  take_step(part, data, executor, 1);
  Mlp rest(kShape, {}, 99, 0, 2, SimdLevel::kScalar);
  rest.restore("dense", saved(part), "run");
  rest.prepare_training();
  take_step(whole, data, executor, 1);
  take_step(rest, data, executor, 1);
  EXPECT_EQ(saved(rest), saved(whole));
}

TEST(Mlp, StartsWithinItsLimitsAndAsTheSeedSays) {
  const auto weights = [](std::uint64_t seed) {
    return values(saved(Mlp(kShape, {}, seed, 0, 1)), "layer2.weight");
  };
  EXPECT_EQ(weights(1), weights(1));
  EXPECT_NE(weights(1), weights(2));
  double squares = 0;
  const float limit = std::sqrt(6.0f / 20);
  for (const float weight : weights(1)) {
    EXPECT_LE(std::abs(weight), limit);
    squares += static_cast<double>(weight) * static_cast<double>(weight);
  }
  EXPECT_NEAR(squares / (20 * 7), limit * limit / 3, 0.02);  // the variance of a uniform number
}

TEST(Mlp, WithoutLayersIsABias) {
  Mlp bias({}, {.learning_rate = 0.5, .initial_accumulator = 0}, 1, -1, 1);
  bias.prepare_training();
  EXPECT_EQ(bias.parameters(), 1);
  Floats logits = {1, 2};
  bias.forward(0, 2, {}, logits.data());
  EXPECT_EQ(logits, (Floats{0, 1}));
  const Floats slopes = {0.25f, 0.5f};
  bias.backward(0, 2, {}, slopes.data(), 0);
  bias.step(1, 1);
  EXPECT_EQ(values(saved(bias), "output.bias"), (Floats{-1.5f}));
}

TEST(Mlp, RefusesTensorsOfAnotherNetwork) {
  const CallerState state = saved(make_mlp(1));
  const auto refusal = [](const CallerState& from) -> std::string {
    Mlp mlp = make_mlp(1);
    try {
      mlp.restore("dense", from, "run");
    } catch (const DataLoss& error) {
      return error.what();
    }
    return "";
  };
  CallerState changed = state;
  changed.tensors.erase("dense.layer2.bias");
  EXPECT_EQ(refusal(changed), "'run': the job must have the tensor 'dense.layer2.bias', got none");
  changed = state;
  changed.tensors["dense.layer1.weight"].shape = {20, 23};
  EXPECT_EQ(
      refusal(changed),
      "'run': tensor 'dense.layer1.weight' must be F32 [23, 20] as the job says, got F32 [20, 23]");
}

}  // namespace
}  // namespace embertable::jobs
