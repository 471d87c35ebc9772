#include "embertable/tensorflow/interleave.h"

#include <algorithm>

#include "base/float_environment.h"
#include "embertable/errors.h"

namespace embertable {
namespace {

void check_count(const char* what, std::size_t expected, std::size_t got) {
  if (expected != got) {
    throw ValueError("interleaved layout: there must be " + std::to_string(expected) + " " + what +
                     ", got " + std::to_string(got));
  }
}

[[noreturn]] void refuse_size(const std::string& subject, const Shape& shape, std::int64_t size) {
  throw ValueError(subject + ": must have " + std::to_string(shape.num_elements()) +
                   " numbers, shape " + shape.to_string() + ", got " + std::to_string(size));
}

std::string feature_subject(const InterleavedLayout& layout, std::int64_t feature) {
  const auto& placed = layout.features()[feature];
  return "feature '" + placed.name + "' of table '" + layout.tables()[placed.table].name + "'";
}

void check_feature_size(const InterleavedLayout& layout, std::int64_t feature, std::int64_t size) {
  const Shape shape = layout.feature_shape(feature);
  if (size != shape.num_elements()) refuse_size(feature_subject(layout, feature), shape, size);
}

template <class Numbers>
void check_tables(const InterleavedLayout& layout, std::span<const Numbers> tables) {
  check_count("tensors of tables", layout.tables().size(), tables.size());
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const Shape shape = layout.table_shape(static_cast<std::int64_t>(t));
    if (std::ssize(tables[t]) != shape.num_elements())
      refuse_size("table '" + layout.tables()[t].name + "'", shape, std::ssize(tables[t]));
  }
}

void check_gradient(const InterleavedLayout& layout, std::int64_t feature,
                    const Gradient& gradient) {
  if (gradient.is_none()) return;
  const Shape shape = layout.feature_shape(feature);
  const bool with_slot =
      shape.rank() == 2 &&
      gradient.shape == Shape{shape[0], 1, shape[1]};  // the shape in which gradients are sent
  if (gradient.shape.has_rank() && !(gradient.shape == shape) && !with_slot) {
    throw ValueError(feature_subject(layout, feature) + ": must have shape " + shape.to_string() +
                     ", got " + gradient.shape.to_string());
  }
  check_feature_size(layout, feature, gradient.values.size());
}

/// A feature's place in the tensor of its table: samples are `stride` floats apart.
struct Place {
  std::int64_t first = 0, stride = 0, run = 0, samples = 0;

  Place(const InterleavedLayout& layout, const InterleavedLayout::PlacedFeature& feature) {
    const auto& table = layout.tables()[feature.table];
    first = feature.first_slot * table.dim;
    stride = table.num_features * table.dim;
    run = feature.slots * table.dim;
    samples = layout.batch_size();
  }
};

template <class Number>
void put(const Place& place, const Number* from, float* table) {
  for (std::int64_t b = 0; b < place.samples; ++b) {
    const Number* const sample = from + b * place.run;
    std::transform(sample, sample + place.run, table + place.first + b * place.stride,
                   [](Number x) { return static_cast<float>(x); });
  }
}

void put(const Place& place, const Gradient& gradient, float* table) {
  const void* const from = gradient.values.data();
  if (gradient.is_none()) {
    for (std::int64_t b = 0; b < place.samples; ++b)
      std::fill_n(table + place.first + b * place.stride, place.run, 0.0f);
  } else if (gradient.values.is_double()) {
    put(place, static_cast<const double*>(from), table);
  } else {
    put(place, static_cast<const float*>(from), table);
  }
}

std::vector<std::vector<float>> tensors_of_tables(const InterleavedLayout& layout) {
  std::vector<std::vector<float>> tables;
  for (std::int64_t t = 0; t < std::ssize(layout.tables()); ++t)
    tables.emplace_back(layout.table_shape(t).num_elements());
  return tables;
}

std::vector<std::span<float>> views(std::vector<std::vector<float>>& of) {
  return {of.begin(), of.end()};
}

}  // namespace

void deinterleave(const InterleavedLayout& layout, std::span<const std::span<const float>> tables,
                  std::span<const std::span<float>> features) {
  check_tables(layout, tables);
  check_count("features", layout.features().size(), features.size());
  for (std::size_t f = 0; f < features.size(); ++f)
    check_feature_size(layout, static_cast<std::int64_t>(f), std::ssize(features[f]));
  for (std::size_t f = 0; f < features.size(); ++f) {
    const auto& feature = layout.features()[f];
    const Place place(layout, feature);
    const float* const table = tables[feature.table].data();
    for (std::int64_t b = 0; b < place.samples; ++b)
      std::copy_n(table + place.first + b * place.stride, place.run,
                  features[f].data() + b * place.run);
  }
}

std::vector<std::vector<float>> deinterleave(const InterleavedLayout& layout,
                                             std::span<const std::span<const float>> tables) {
  check_tables(layout, tables);
  std::vector<std::vector<float>> features;
  for (std::int64_t f = 0; f < std::ssize(layout.features()); ++f)
    features.emplace_back(layout.feature_shape(f).num_elements());
  deinterleave(layout, tables, views(features));
  return features;
}

void interleave(const InterleavedLayout& layout, std::span<const Gradient> features,
                std::span<const std::span<float>> tables) {
  check_count("features", layout.features().size(), features.size());
  for (std::size_t f = 0; f < features.size(); ++f)
    check_gradient(layout, static_cast<std::int64_t>(f), features[f]);
  check_tables(layout, tables);
  const FloatEnvironment ours;
  for (std::size_t f = 0; f < features.size(); ++f) {
    const auto& feature = layout.features()[f];
    put(Place(layout, feature), features[f], tables[feature.table].data());
  }
}

std::vector<std::vector<float>> interleave(const InterleavedLayout& layout,
                                           std::span<const Gradient> features) {
  std::vector<std::vector<float>> tables = tensors_of_tables(layout);
  interleave(layout, features, views(tables));
  return tables;
}

std::vector<std::vector<float>> interleave(const InterleavedLayout& layout,
                                           const Activations& activations, std::int32_t replica) {
  std::vector<Gradient> features;
  for (std::int64_t f = 0; f < activations.features(); ++f) {
    const Activation activation = activations(f, replica);
    features.push_back({activation.values, activation.shape});
  }
  return interleave(layout, features);
}

}  // namespace embertable
