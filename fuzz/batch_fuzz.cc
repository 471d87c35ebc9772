// Bytes as an engine and a few batches of every kind, good and bad. Each is refused with a
// documented error that leaves the engine as it was, or gives what a slow loop gives: activations,
// rows after a step, and the activations of a serving lookup.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "embertable/embertable.h"
#include "fuzz/target.h"

namespace {

using namespace embertable;  // NOLINT: a program

constexpr std::int64_t kHuge[] = {std::int64_t{1} << 40, std::int64_t{1} << 62,
                                  std::numeric_limits<std::int64_t>::max()};

/// Small numbers from bytes; zeros when they are used up.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  bool left() const { return at_ < size_; }
  std::int64_t byte() { return left() ? data_[at_++] : 0; }
  std::int64_t below(std::int64_t limit) { return byte() % limit; }

  /// Mostly 0 <= n < limit; seldom just outside or far off.
  std::int64_t around(std::int64_t limit) {
    const std::int64_t b = byte();
    if (b < 244) return limit > 0 ? b % limit : 0;
    constexpr std::int64_t kOff[] = {-1, std::numeric_limits<std::int64_t>::min(), 1ll << 31,
                                     (1ll << 32) + 1, kHuge[2]};
    if (b < 249) return kOff[b - 244];
    return std::min(limit, std::numeric_limits<std::int64_t>::max() - 6) + (b - 249);
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
};

using Ids = std::vector<std::int64_t>;

/// One feature of one replica's batch, owning its arrays.
struct Input {
  int kind = 0;  ///< dense, sparse, ragged
  bool wide = true;
  Ids values, splits, indices, shape;
  std::vector<std::int32_t> values32, splits32, indices32;
  int weight_kind = 0;
  bool double_weights = false;
  std::vector<float> weights;
  std::vector<double> weights64;

  static std::vector<std::int32_t> narrowed(const Ids& numbers) {
    return {numbers.begin(), numbers.end()};
  }
  IntegerSpan span(const Ids& numbers, const std::vector<std::int32_t>& narrow) const {
    return wide ? IntegerSpan(numbers) : IntegerSpan(narrow);
  }
  /// The numbers as the engine sees them.
  void settle() {
    values32 = narrowed(values);
    splits32 = narrowed(splits);
    indices32 = narrowed(indices);
    if (!wide) {
      values.assign(values32.begin(), values32.end());
      splits.assign(splits32.begin(), splits32.end());
      indices.assign(indices32.begin(), indices32.end());
    }
    weights64.assign(weights.begin(), weights.end());
  }
  FeatureIds ids() const {
    const IntegerSpan v = span(values, values32);
    if (kind == 1) return SparseIds{span(indices, indices32), v, Shape(std::span(shape))};
    if (kind == 2) return RaggedIds{span(splits, splits32), v};
    return shape.empty() ? DenseIds{v, {}} : DenseIds{v, Shape(std::span(shape))};
  }
  FeatureWeights given_weights() const {
    const FloatSpan w = double_weights ? FloatSpan(weights64) : FloatSpan(weights);
    if (weight_kind == 1) return SparseWeights{w};
    if (weight_kind == 2) return RaggedWeights{w};
    if (weight_kind == 3) return DenseWeights{w};
    return {};
  }
};

void add_values(Bytes& bytes, std::int64_t count, std::int64_t vocabulary, Input& input) {
  for (std::int64_t i = 0; i < count; ++i) input.values.push_back(bytes.around(vocabulary));
}

/// Makes an input of about `samples` samples.
Input make_input(Bytes& bytes, std::int64_t samples, std::int64_t vocabulary) {
  Input input;
  input.kind = static_cast<int>(bytes.below(3));
  input.wide = bytes.below(2) == 0;
  const std::int64_t other = bytes.byte();  // seldom another number of samples
  if (other > 240) samples += other - 248;
  samples = std::max<std::int64_t>(samples, 0);
  if (input.kind == 0) {
    add_values(bytes, samples, vocabulary, input);
    if (bytes.below(3) == 0) input.shape = {samples, 1 + bytes.below(40) / 39};
  } else if (input.kind == 1) {
    const std::int64_t columns = 1 + bytes.below(4);
    input.shape = {samples, columns};
    const std::int64_t turn = bytes.byte();
    if (turn > 200) input.shape.insert(input.shape.begin() + 1, 1 + turn % 2);
    if (turn > 240)
      input.shape[static_cast<std::size_t>(turn) % input.shape.size()] = kHuge[turn % 3];
    if (turn > 252) input.shape.resize(1);
    const std::int64_t entries = bytes.below(12);
    for (std::int64_t i = 0; i < entries; ++i)
      for (const std::int64_t dim : input.shape) input.indices.push_back(bytes.around(dim));
    if (bytes.byte() > 250) input.indices.push_back(0);
    add_values(bytes, entries, vocabulary, input);
  } else {
    input.splits = {0};
    for (std::int64_t i = 0; i < samples; ++i) {
      const std::int64_t length = bytes.byte();
      input.splits.push_back(input.splits.back() + (length > 250 ? length - 253 : length % 4));
    }
    if (bytes.byte() > 250) input.splits[bytes.below(samples + 1)] = bytes.around(3);
    const std::int64_t count = std::clamp<std::int64_t>(input.splits.back(), 0, 64);
    add_values(bytes, count + (bytes.byte() > 250 ? 1 : 0), vocabulary, input);
  }
  if (bytes.below(3) == 0) {
    input.weight_kind = input.kind;
    input.double_weights = bytes.below(2) == 0;
    constexpr float kWeights[] = {1, 2, 0.5f, -1, 0, 4};
    for (std::size_t i = 0; i < input.values.size(); ++i)
      input.weights.push_back(kWeights[bytes.below(6)]);
    const std::int64_t odd = bytes.byte();
    if (odd > 252) input.weight_kind = static_cast<int>(odd % 4);
    if (odd == 250) input.weights.push_back(1);
  }
  input.settle();
  return input;
}

Structure list_of(std::int64_t leaves) { return Structure::list(std::vector<Structure>(leaves)); }

/// What the tables of one input's engine are.
struct Model {
  std::int64_t vocabulary = 1;
  std::int32_t dim = 1;
  Combiner combiner = Combiner::kSum;
  std::vector<double> rows;
  std::vector<double> gradient;  ///< gradient of the running step
  std::vector<bool> named;

  double& at(std::vector<double>& of, std::int64_t row, std::int32_t column) const {
    return of[row * dim + column];
  }
};

/// A term of an output row.
struct Term {
  std::int64_t output = 0;
  std::int64_t id = 0;
  double weight = 1;
};

void expect(bool held) {
  if (!held) std::abort();
}

/// The terms of an input that was accepted, by the rules of shapes and sequences.
struct SlowInput {
  std::vector<Term> terms;
  std::int64_t outputs = 0;
  bool combine = true;  ///< else every output row is a sum of weight 1
};

double weight_of(const Input& input, std::size_t i) {
  return input.weight_kind == 0 ? 1.0 : double{input.weights[i]};
}

SlowInput slow_sparse(const Input& input, std::int64_t sequence) {
  SlowInput slow;
  const std::size_t rank = input.shape.size();
  slow.outputs = sequence > 0 ? sequence : 1;
  for (std::size_t axis = 0; axis + 1 < rank; ++axis) slow.outputs *= input.shape[axis];
  for (std::size_t i = 0; i < input.values.size(); ++i) {
    std::int64_t sample = 0;
    for (std::size_t axis = 0; axis < rank; ++axis) {
      const std::int64_t index = input.indices[i * rank + axis];
      expect(index >= 0 && index < input.shape[axis]);
      if (axis + 1 < rank) sample = sample * input.shape[axis] + index;
    }
    const std::int64_t column = input.indices[i * rank + rank - 1];
    if (sequence > 0 && column >= sequence) continue;
    slow.terms.push_back(
        {sequence > 0 ? sample * sequence + column : sample, input.values[i], weight_of(input, i)});
  }
  return slow;
}

/// length: output rows of a row, 0: it is combined.
SlowInput slow_ragged(const Input& input, std::int64_t length, bool weighted) {
  SlowInput slow;
  slow.combine = weighted;
  const auto rows = static_cast<std::int64_t>(input.splits.size()) - 1;
  slow.outputs = rows * std::max<std::int64_t>(length, 1);
  expect(input.splits.front() == 0);
  expect(input.splits.back() == std::ssize(input.values));
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto at = static_cast<std::size_t>(r);
    expect(input.splits[at] <= input.splits[at + 1]);
    for (std::int64_t j = input.splits[at]; j < input.splits[at + 1]; ++j) {
      const std::int64_t position = j - input.splits[at];
      if (length > 0 && position >= length) continue;
      const auto i = static_cast<std::size_t>(j);
      slow.terms.push_back({length > 0 ? r * length + position : r, input.values[i],
                            weighted ? weight_of(input, i) : 1.0});
    }
  }
  return slow;
}

/// L: max_sequence_length where it counts, else 0. `built`: the feature's output shape.
SlowInput slow_input(const Input& input, std::int64_t length, const Shape& built) {
  if (input.kind == 0) {
    SlowInput slow;
    slow.combine = false;
    slow.outputs = std::ssize(input.values);
    for (std::int64_t i = 0; i < slow.outputs; ++i) slow.terms.push_back({i, input.values[i], 1});
    return slow;
  }
  if (input.kind == 1) return slow_sparse(input, input.shape.size() == 2 ? length : 0);
  const auto rows = static_cast<std::int64_t>(input.splits.size()) - 1;
  if (length > 0 && built.rank() == 2 && built[1] == length)
    return slow_ragged(input, length, true);
  if (rows == built.num_elements()) return slow_ragged(input, 0, true);
  expect(rows > 0 && built.num_elements() % rows == 0);
  return slow_ragged(input, built.num_elements() / rows, false);
}

double denominator(const SlowInput& slow, const std::vector<Term>& terms, std::int64_t output,
                   Combiner combiner) {
  if (!slow.combine || combiner == Combiner::kSum) return 1;
  double sum = 0, squares = 0;
  for (const Term& term : terms) {
    if (term.output != output) continue;
    sum += term.weight;
    squares += term.weight * term.weight;
  }
  return combiner == Combiner::kMean ? sum : std::sqrt(squares);
}

/// Compares an activation; adds to the gradients of the rows where each output's is 1.
void check_activation(Model& table, SlowInput slow, bool drop, std::span<const float> got,
                      bool training) {
  std::vector<Term> terms;
  for (const Term& term : slow.terms) {
    const bool inside = term.id >= 0 && term.id < table.vocabulary;
    expect(inside || drop);
    if (inside) terms.push_back(term);
  }
  expect(std::ssize(got) == slow.outputs * table.dim);
  std::vector<double> want(got.size());
  for (const Term& term : terms) {
    const double by = denominator(slow, terms, term.output, table.combiner);
    const double gain = by == 0 ? 0 : term.weight / by;
    for (std::int32_t c = 0; c < table.dim; ++c) {
      want[term.output * table.dim + c] += gain * table.at(table.rows, term.id, c);
      if (training) table.at(table.gradient, term.id, c) += gain;
    }
  }
  for (std::size_t i = 0; i < got.size(); ++i)
    expect(std::fabs(got[i] - want[i]) <= 1e-3 * std::max(1.0, std::fabs(want[i])));
}

/// An engine, its model, and a batch that both take.
class Machine {
 public:
  explicit Machine(Bytes& bytes) {
    const std::int64_t tables = 1 + bytes.below(2), features = tables + bytes.below(3);
    for (std::int64_t t = 0; t < tables; ++t) make_table_of(bytes);
    std::vector<FeatureConfig> configs;
    samples_ = 1 + bytes.below(5);
    for (std::int64_t f = 0; f < features; ++f) configs.push_back(make_feature(bytes));
    config_.emplace(list_of(features), std::move(configs));
    StrategyOptions strategy;
    strategy.hosts = bytes.below(8) == 0 ? 2 : 1;
    strategy.replicas_per_host = 1 + static_cast<std::int32_t>(bytes.below(2));
    strategy.executor = make_inline_executor();
    replicas_ = strategy.hosts * strategy.replicas_per_host;
    EmbeddingOptions options;
    options.out_of_range = bytes.below(3) == 0 ? OutOfRange::kDrop : OutOfRange::kError;
    drop_ = options.out_of_range == OutOfRange::kDrop;
    engine_.emplace(*config_, Optimizer("sgd", 0.5), make_strategy(strategy), options);
    if (bytes.below(4) != 0) engine_->build(samples_);
  }

  /// Takes one batch, good or bad.
  void take(Bytes& bytes) {
    const bool training = bytes.below(2) == 0;
    std::vector<std::vector<Input>> inputs;
    for (std::int32_t r = 0; r < replicas_; ++r) {
      inputs.emplace_back();
      for (const std::int64_t table : table_of_)
        inputs.back().push_back(make_input(bytes, samples_, tables_[table].vocabulary));
    }
    const bool was_built = engine_->built();
    const std::string before = was_built ? engine_->digest() : "";
    try {
      std::vector<Batch> batches;
      for (const auto& replica : inputs) batches.push_back(batch_of(replica));
      engine_->enqueue(batches, {.training = training});
    } catch (const ValueError&) {
      expect(engine_->built() == was_built);
      expect(!was_built || engine_->digest() == before);
      for (const auto& replica : inputs) serve(replica);
      return;
    }
    step(inputs, training);
    for (const auto& replica : inputs) serve(replica);
  }

  /// What is good is taken whatever was refused before.
  void take_good() {
    if (!engine_->built()) engine_->build(samples_);
    std::vector<std::vector<Input>> inputs(replicas_);
    for (auto& replica : inputs) {
      for (std::size_t f = 0; f < table_of_.size(); ++f) {
        Input input;
        const Shape& built = engine_->output_shapes()[static_cast<std::int64_t>(f)];
        input.values.assign(built.num_elements(), 0);
        input.settle();
        replica.push_back(input);
      }
    }
    std::vector<Batch> batches;
    for (const auto& replica : inputs) batches.push_back(batch_of(replica));
    engine_->enqueue(batches);
    step(inputs, true);
  }

 private:
  void make_table_of(Bytes& bytes) {
    Model model;
    model.vocabulary = 1 + bytes.below(12);
    model.dim = 1 + static_cast<std::int32_t>(bytes.below(3));
    model.combiner = static_cast<Combiner>(bytes.below(3));
    const auto numbers = static_cast<std::size_t>(model.vocabulary * model.dim);
    std::vector<float> rows;
    for (std::size_t i = 0; i < numbers; ++i) rows.push_back(static_cast<float>(i % 7) - 3);
    model.rows.assign(rows.begin(), rows.end());
    model.gradient.assign(numbers, 0);
    TableConfig config;
    config.vocabulary_size = model.vocabulary;
    config.dim = model.dim;
    config.combiner = model.combiner;
    config.initializer = Initializer::values(rows);
    config.name = "t" + std::to_string(tables_.size());
    configs_.push_back(make_table(std::move(config)));
    tables_.push_back(std::move(model));
  }

  FeatureConfig make_feature(Bytes& bytes) {
    // The first features have a table each, so that none lacks one.
    const auto f = std::ssize(table_of_);
    const std::int64_t table = f < std::ssize(tables_) ? f : bytes.below(std::ssize(tables_));
    table_of_.push_back(table);
    FeatureConfig feature;
    feature.table = configs_[table];
    feature.max_sequence_length = std::max<std::int64_t>(bytes.below(6) - 3, 0);
    if (bytes.below(5) == 0) feature.output_shape = Shape{samples_, 1 + bytes.below(2)};
    feature.validate_weights_and_indices = bytes.below(2) == 0;
    return feature;
  }

  Batch batch_of(const std::vector<Input>& inputs) const {
    std::vector<FeatureIds> ids;
    std::vector<FeatureWeights> weights;
    for (const Input& input : inputs) {
      ids.emplace_back(input.ids());
      weights.emplace_back(input.given_weights());
    }
    return {Nested<FeatureIds>(list_of(std::ssize(inputs)), std::move(ids)),
            Nested<FeatureWeights>(list_of(std::ssize(inputs)), std::move(weights))};
  }

  std::int64_t length_of(std::int64_t f) const {
    return (*config_)[f].output_shape.has_rank() ? 0 : (*config_)[f].max_sequence_length;
  }

  void step(const std::vector<std::vector<Input>>& inputs, bool training) {
    const Activations activations = engine_->dequeue();
    for (std::int32_t r = 0; r < replicas_; ++r) {
      for (std::int64_t f = 0; f < std::ssize(table_of_); ++f) {
        const Input& input = inputs[r][f];
        check_activation(table(f), slow_input(input, length_of(f), engine_->output_shapes()[f]),
                         drop_, activations(f, r).values, training);
      }
    }
    if (training) update(activations);
  }

  /// A gradient of 1 for every number of every activation.
  void update(const Activations& activations) {
    std::vector<std::vector<float>> ones;
    std::vector<Nested<Gradient>> gradients;
    for (std::int32_t r = 0; r < replicas_; ++r) {
      std::vector<Gradient> leaves;
      for (std::int64_t f = 0; f < activations.features(); ++f) {
        ones.emplace_back(activations(f, r).values.size(), 1.0f);
        leaves.push_back({ones.back(), activations(f, r).shape});
      }
      gradients.emplace_back(activations.structure(), std::move(leaves));
    }
    engine_->apply_gradients(gradients);
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      Model& model = tables_[t];
      Ids ids;
      for (std::int64_t r = 0; r < model.vocabulary; ++r) ids.push_back(r);
      std::vector<float> got(model.rows.size());
      engine_->read_rows("t" + std::to_string(t), ids, got);
      for (std::size_t i = 0; i < got.size(); ++i) {
        model.rows[i] -= 0.5 * model.gradient[i];
        expect(std::fabs(got[i] - model.rows[i]) <= 1e-3 * std::max(1.0, std::fabs(model.rows[i])));
        model.rows[i] = got[i];  // errors of rounding do not add up
        model.gradient[i] = 0;
      }
    }
  }

  /// What serving gives for the same input: checked where its rules are those of the engine.
  void serve(const std::vector<Input>& inputs) {
    std::vector<std::vector<float>> rows;
    std::map<TablePtr, TableView> views;
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      rows.emplace_back(tables_[t].rows.begin(), tables_[t].rows.end());
      views[configs_[t]] = {rows.back().data(), tables_[t].vocabulary, tables_[t].dim,
                            tables_[t].dim};
    }
    try {
      const LookupOutput output = serving_embedding_lookup(batch_of(inputs), views, *config_);
      for (std::int64_t f = 0; f < std::ssize(table_of_); ++f) {
        const Input& input = inputs[f];
        if ((*config_)[f].output_shape.has_rank() || (*config_)[f].max_sequence_length > 0)
          continue;
        if (input.kind == 1 &&
            ((*config_)[f].validate_weights_and_indices || input.shape.size() > 2))
          continue;
        const auto rows_of = [&] { return static_cast<std::int64_t>(input.splits.size()) - 1; };
        const Shape built = input.kind == 2 ? Shape{rows_of()} : Shape{0};
        check_activation(table(f), slow_input(input, 0, built), false, output(f).values, false);
      }
    } catch (const ValueError&) {
    }
  }

  Model& table(std::int64_t f) { return tables_[table_of_[f]]; }

  std::vector<Model> tables_;
  std::vector<TablePtr> configs_;
  std::vector<std::int64_t> table_of_;  ///< by feature
  std::optional<Nested<FeatureConfig>> config_;
  std::int64_t samples_ = 1;
  std::int32_t replicas_ = 1;
  bool drop_ = false;
  std::optional<Embedding> engine_;
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  Machine machine(bytes);
  for (int batch = 0; batch < 4 && bytes.left(); ++batch) machine.take(bytes);
  machine.take_good();
  return 0;
}

/// A text of bytes of each sort: what they mean changes with the first few.
std::vector<std::string> fuzz::seeds() {
  std::vector<std::string> all;
  for (unsigned seed = 1; seed <= 6; ++seed) {
    std::string bytes;
    unsigned state = seed * 2654435761u;
    for (int i = 0; i < 160; ++i) {
      state = state * 1664525u + 1013904223u;
      bytes += static_cast<char>((state >> 24) % (seed % 2 == 0 ? 256 : 240));
    }
    all.push_back(bytes);
  }
  return all;
}
