#include "serving/lookup.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <span>
#include <string>

#include "base/enumerators.h"
#include "base/float_environment.h"
#include "config/enumerations.h"
#include "embertable/errors.h"

namespace embertable::serving {
namespace {

constexpr std::int64_t kLineBytes = 64;

/// Maximum bytes of activations that a thread keeps when an output is destroyed.
constexpr std::int64_t kMostSpareBytes = 64 << 10;

/// Memory of a thread's last destroyed output, for the next one.
struct Spare {
  std::unique_ptr<Lookup> lookup;
  ~Spare();
};
thread_local bool spare_is_gone = false;  // outputs may outlive `spare` at the end of a thread
thread_local Spare spare;

Spare::~Spare() { spare_is_gone = true; }

std::int64_t whole_lines(std::int64_t bytes) noexcept {
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

std::int64_t activation_bytes(const Input& in) noexcept {
  return whole_lines(in.outputs * in.rows.dim * static_cast<std::int64_t>(sizeof(float)));
}

[[noreturn]] void refuse_memory(const std::string& bytes) {
  throw IoError("lookup: cannot allocate " + bytes + " bytes for activations");
}

std::string listed(const std::vector<std::string>& paths) {
  std::string text;
  for (const std::string& path : paths) text += (text.empty() ? "'" : ", '") + path + "'";
  return "{" + text + "}";
}

/// Returns, by input, the feature of the same path. Throws ValueError with both sets of paths.
std::vector<std::int64_t> features_of(const Structure& inputs, const Structure& features) {
  std::vector<std::int64_t> all(features.paths().size());
  std::iota(all.begin(), all.end(), std::int64_t{0});
  if (inputs == features) return all;
  const auto path_of = [&](std::int64_t feature) -> const std::string& {
    return features.paths()[feature];
  };
  std::ranges::sort(all, {}, path_of);
  std::vector<std::int64_t> found;
  for (const std::string& path : inputs.paths()) {
    const auto at = std::ranges::lower_bound(all, path, {}, path_of);
    if (at == all.end() || path_of(*at) != path)
      throw ValueError("inputs: paths must be among those of the features, " +
                       listed(features.paths()) + ", got " + listed(inputs.paths()));
    found.push_back(*at);
  }
  return found;
}

/// Returns the bytes that activations and scratch of all inputs need. Throws IoError for more than
/// 2^63.
std::int64_t bytes_of(std::span<const Input> inputs) {
  std::int64_t bytes = 0;
  for (const Input& in : inputs)
    if (__builtin_add_overflow(bytes, activation_bytes(in) + scratch_bytes(in), &bytes))
      refuse_memory("2^63");
  return bytes;
}

/// Gives each input its part of the memory, and reads its entries into it.
void fill_all(std::span<Input> inputs, std::span<Activation> activations, std::byte* memory,
              SortBuffers& sort) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Input& in = inputs[i];
    in.gather.out = reinterpret_cast<float*>(memory);
    activations[i].values = {in.gather.out, static_cast<std::size_t>(in.outputs * in.rows.dim)};
    memory += activation_bytes(in);
  }
  for (Input& in : inputs) {
    fill(in, memory, sort);
    memory += scratch_bytes(in);
  }
}

/// Sums the rows of all entries, while the first rows of the next input are fetched.
void gather_all(std::span<Input> inputs, SimdLevel level) noexcept {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Gather<std::uint64_t>& gather = inputs[i].gather;
    if (gather.last == 0) continue;
    gather.next = {};
    if (i + 1 < inputs.size() && !are_rows_fetched(inputs[i + 1])) {
      const Gather<std::uint64_t>& next = inputs[i + 1].gather;
      const std::int64_t entries = next.split != nullptr ? next.split[next.last] : next.last;
      gather.next = {next.rows, next.row, true, entries};
    }
    embertable::gather(gather, level);
  }
}

/// Names a caller-owned table.
std::string subject_of(const TableConfig& table) {
  return table.name ? "table '" + *table.name + "': " : "a table without a name: ";
}

}  // namespace

Rows viewed_rows(const TablePtr& table, const std::map<TablePtr, TableView>& tables) {
  const auto found = tables.find(table);
  if (found == tables.end()) throw KeyError(subject_of(*table) + "must be among the tables");
  const TableView& view = found->second;
  check_enumerator(table->combiner, "lookup: combiner");
  if (view.rows != table->vocabulary_size || view.dim != table->dim || view.row_stride < view.dim)
    throw ValueError(subject_of(*table) + "must have " + std::to_string(table->vocabulary_size) +
                     " rows of " + std::to_string(table->dim) + " elements, got " +
                     std::to_string(view.rows) + " of " + std::to_string(view.dim) + ", " +
                     std::to_string(view.row_stride) + " apart");
  if (view.data != nullptr && view.bfloat16 != nullptr)
    throw ValueError(subject_of(*table) + "must have data or bfloat16, got both");
  if (view.rows > 0 && view.data == nullptr && view.bfloat16 == nullptr)
    throw ValueError(subject_of(*table) + "must have data or bfloat16, got neither");
  if (view.bfloat16 == nullptr) return {view.data, view.row_stride, view.rows, view.dim};
  return {.base = view.bfloat16,
          .stride = view.row_stride,
          .rows = view.rows,
          .dim = view.dim,
          .type = RowType::kBfloat16};
}

void LineMemory::Free::operator()(std::byte* memory) const noexcept { std::free(memory); }

std::byte* LineMemory::take(std::int64_t bytes) {
  if (bytes <= capacity_) return memory_.get();
  memory_.reset();
  capacity_ = 0;
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(
      static_cast<std::size_t>(kLineBytes), static_cast<std::size_t>(whole_lines(bytes)))));
  if (!memory_) refuse_memory(std::to_string(bytes));
  capacity_ = bytes;
  return memory_.get();
}

void Lookup::run(const Batch& batch, const Nested<FeatureConfig>& features, RowsOfFeature rows_of,
                 SimdLevel level, LookupOutput& output, const LookupForm& form) {
  if (!output.lookup_ && !spare_is_gone) output.lookup_ = std::move(spare.lookup);
  if (!output.lookup_) output.lookup_ = std::make_unique<Lookup>();
  Lookup& lookup = *output.lookup_;
  try {
    const FloatEnvironment ours;
    lookup.prepare(batch, features, rows_of, form);
    gather_all(lookup.inputs_, level);
    lookup.owner_ = form.owner;
    lookup.threw_ = false;
  } catch (...) {
    forget(output);
    throw;
  }
}

void Lookup::forget(LookupOutput& output) noexcept {
  if (!output.lookup_) return;
  output.lookup_->activations_.clear();
  output.lookup_->owner_ = 0;
  output.lookup_->threw_ = true;
}

void Lookup::end(std::unique_ptr<Lookup> lookup) noexcept {
  if (!spare_is_gone && lookup->memory_.capacity() <= kMostSpareBytes)
    spare.lookup = std::move(lookup);
}

void Lookup::prepare(const Batch& batch, const Nested<FeatureConfig>& features,
                     RowsOfFeature rows_of, const LookupForm& form) {
  const Structure& given = batch.features.structure();
  const bool known =
      !feature_of_.empty() && given == structure_ && features.structure() == features_;
  if (!known) {
    feature_of_ = features_of(given, features.structure());
    structure_ = given;
    features_ = features.structure();
  }
  if (batch.weights) assert_same_structure(given, batch.weights->structure(), "weights");
  inputs_.resize(feature_of_.size());
  activations_.resize(feature_of_.size());
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const auto leaf = static_cast<std::int64_t>(i);
    Input& in = inputs_[i];
    in.form = form;
    in.feature = &features[feature_of_[i]];
    in.path = &features.path(feature_of_[i]);
    in.rows = rows_of(feature_of_[i]);
    in.ids = &batch.features[leaf];
    activations_[i].shape = measure(in, batch.weights ? &(*batch.weights)[leaf] : nullptr);
    fetch_rows(in);
  }
  fill_all(inputs_, activations_, memory_.take(bytes_of(inputs_)), sort_);
}

}  // namespace embertable::serving

namespace embertable {

LookupOutput::LookupOutput() noexcept = default;
LookupOutput::LookupOutput(LookupOutput&&) noexcept = default;
LookupOutput& LookupOutput::operator=(LookupOutput&&) noexcept = default;
LookupOutput::~LookupOutput() {
  if (lookup_) serving::Lookup::end(std::move(lookup_));
}

const Structure& LookupOutput::structure() const noexcept {
  static const Structure kLeaf;
  return lookup_ ? lookup_->structure() : kLeaf;
}

std::int64_t LookupOutput::size() const noexcept {
  return lookup_ ? std::ssize(lookup_->activations()) : 0;
}

const Activation& LookupOutput::operator()(std::int64_t leaf) const noexcept {
  return lookup_->activations()[leaf];
}

void LookupOutput::require_values() const {
  if (!lookup_ || lookup_->threw())
    throw StateError("LookupOutput: nothing was looked up into it, or the last lookup threw");
}

const Activation& LookupOutput::operator()(std::string_view path) const {
  require_values();
  return (*this)(structure().index_of(path));
}

Nested<Activation> LookupOutput::nested() const {
  require_values();
  return {structure(), lookup_->activations()};
}

void serving_embedding_lookup(const Batch& inputs, const std::map<TablePtr, TableView>& tables,
                              const Nested<FeatureConfig>& feature_config, LookupOutput& output) {
  static const SimdLevel kLevel = simd_level();
  const auto rows_of = [&](std::int64_t feature) {
    return serving::viewed_rows(feature_config[feature].table, tables);
  };
  serving::Lookup::run(inputs, feature_config, rows_of, kLevel, output);
}

LookupOutput serving_embedding_lookup(const Batch& inputs,
                                      const std::map<TablePtr, TableView>& tables,
                                      const Nested<FeatureConfig>& feature_config) {
  LookupOutput output;
  serving_embedding_lookup(inputs, tables, feature_config, output);
  return output;
}

}  // namespace embertable
