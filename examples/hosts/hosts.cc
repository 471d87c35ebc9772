// Trains a table on the hosts of `mpirun -n 4 hosts RUN`, or on one, to the same bits. Stopped and
// started again, also with another number of processes, it goes on from the last step in RUN.
#include <cstdio>
#include <memory>
#include <vector>

#include "embertable/embertable.h"

using namespace embertable;

constexpr std::int32_t kReplicas = 12;  // any number of hosts that divides them gives the same bits
constexpr std::int64_t kSamples = 64, kSteps = 20, kSaveEvery = 5, kFilms = 10'000;

/// The films that the samples of one replica have watched in one step, drawn as in hosts.py.
struct Watched {
  std::vector<std::int64_t> splits = {0}, ids;
  Watched(std::int64_t step, std::int32_t replica) {
    auto state = static_cast<std::uint64_t>(step * kReplicas + replica);
    const auto draw = [&](std::int64_t below) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      return static_cast<std::int64_t>(state >> 33) % below;
    };
    for (std::int64_t sample = 0; sample < kSamples; ++sample) {
      for (std::int64_t n = draw(8); n > 0; --n) ids.push_back(draw(kFilms));
      splits.push_back(static_cast<std::int64_t>(ids.size()));
    }
  }
};

int train(const char* run) {
  std::shared_ptr<Exchange> others;
  if (find_mpi_launcher()) others = make_mpi_exchange();
  const std::int32_t hosts = others ? others->hosts() : 1;
  if (kReplicas % hosts != 0) throw ValueError("the number of processes must divide 12");
  const bool first = !others || others->host() == 0;
  const StrategyPtr strategy =
      make_strategy({.replicas_per_host = kReplicas / hosts, .exchange = std::move(others)});

  const TablePtr films = make_table({.vocabulary_size = kFilms, .dim = 32, .name = "films"});
  Embedding engine(Nested<FeatureConfig>::map({{"watched", FeatureConfig{.table = films}}}),
                   Optimizer("adagrad", 0.1), strategy);
  engine.build(kSamples);
  const CheckpointRun saves(run, *strategy);
  if (!saves.steps().empty()) engine.restore(run);

  while (engine.step() < kSteps) {
    std::vector<Watched> data;  // the replicas of this process have it
    std::vector<Batch> batches;
    for (std::int32_t r = 0; r < strategy->local_replicas(); ++r)
      data.emplace_back(engine.step(), strategy->first_replica() + r);
    for (const Watched& one : data) {
      const FeatureIds ids(RaggedIds{one.splits, one.ids});
      batches.push_back({Nested<FeatureIds>::map({{"watched", ids}})});
    }
    engine.enqueue(batches);
    const Activations activations = engine.dequeue();
    std::vector<std::vector<float>> slopes;  // the loss is sum((activation - 1)^2) / 2
    std::vector<Nested<Gradient>> gradients;
    for (std::int32_t r = 0; r < strategy->local_replicas(); ++r) {
      std::vector<float>& slope = slopes.emplace_back();
      for (const float x : activations(0, r).values) slope.push_back(x - 1);
      gradients.push_back(Nested<Gradient>::map({{"watched", Gradient{.values = slope}}}));
    }
    engine.apply_gradients(gradients);
    if (engine.step() % kSaveEvery == 0) engine.save(saves);
  }
  const std::string digest = engine.digest();
  if (first) std::printf("%d hosts: %s\n", hosts, digest.c_str());
  return 0;
}

int main(int arguments, char** argument) {
  try {
    return train(arguments > 1 ? argument[1] : "hosts-run");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 75;  // a launcher may start the program again: it goes on from the last save
  }
}
