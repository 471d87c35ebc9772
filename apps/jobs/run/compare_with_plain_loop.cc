#include "apps/jobs/run/compare_with_plain_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "apps/jobs/data/data_set.h"
#include "apps/jobs/math/mf_plain_loop.h"
#include "apps/jobs/models/mf.h"
#include "apps/jobs/run/trainer.h"
#include "base/float_environment.h"
#include "embertable/errors.h"

namespace embertable::jobs {
namespace {

template <class Work>
double seconds_of(Work work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

Comparison compare_with_plain_loop(const Job& job, const TrainOptions& options,
                                   std::int32_t rounds) {
  if (rounds < 1) throw ValueError(fmt::format("rounds must be >= 1, got {}", rounds));
  const FloatEnvironment ours;
  const auto* spec = dynamic_cast<const MfSpec*>(job.model.get());
  if (spec == nullptr) {
    throw ValueError(
        fmt::format("model.kind must be \"mf\" to be compared, got \"{}\"", job.model_kind));
  }
  const DataOptions where = {
      .root = options.data_root.empty() ? data_folder(job) : options.data_root,
      .skip_bad = options.skip_bad};
  const std::unique_ptr<Model> model = job.model->make(job, where);
  const DataSet data = read_data(spec->records(), where);
  const Samples samples = spec->trains_on_validation()
                              ? data.select({Part::kTraining, Part::kValidation})
                              : data.select({Part::kTraining});
  const auto column = [&](const std::string& feature) -> const IdColumn& {
    return data.column(named(job.tables, named(spec->features(), feature).table).ids);
  };
  const IdColumn& users = column(spec->user);
  const IdColumn& items = column(spec->item);

  const std::int32_t dim = named(job.tables, named(spec->features(), spec->user).table).dim;
  const auto rate = static_cast<float>(job.optimizer.learning_rate);
  Trainer engine(job, *model, make_inline_executor());
  PlainMf plain = make_plain_mf(users.keys.size(), items.keys.size(), dim,
                                static_cast<float>(mean_label(samples)), 0.05f, job.seed);

  Samples order;
  std::vector<Rating> ratings(samples.size());
  std::vector<double> engine_seconds, plain_seconds;
  for (std::int32_t round = 0; round <= rounds; ++round) {  // the first one warms up
    shuffle_epoch(samples, job.seed, round, order);
    for (std::int64_t s = 0; s < order.size(); ++s)
      ratings[s] = {order.id(s, users.cell), order.id(s, items.cell), order.label(s)};
    const std::int64_t count = model->begin_epoch(round);
    const double of_engine = seconds_of([&] {
      engine.train(
          count, {}, [&](std::int64_t) { return job.optimizer.learning_rate; },
          [](const Trainer::Position&) { return true; });
    });
    const double of_plain = seconds_of(
        [&] { plain_mf_epoch(plain, ratings, rate, static_cast<float>(spec->regularization)); });
    if (round == 0) continue;
    engine_seconds.push_back(of_engine);
    plain_seconds.push_back(of_plain);
  }
  const auto count = static_cast<double>(samples.size());
  return {.engine = count / median(engine_seconds), .plain_loop = count / median(plain_seconds)};
}

}  // namespace embertable::jobs
