#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "embertable/errors.h"
#include "embertable/shape.h"
#include "embertable/tensorflow/interleave.h"

// Gradients of activations by the caller's automatic differentiation. Activations come from outside
// of its graph, so a variable of one number for each table pulls them in, and an identity keeps the
// gradient that comes back. Source: TF tpu_embedding_gradient.py.
namespace embertable {

/// Values by name, in an order that matters.
template <class T>
using Ordered = std::vector<std::pair<std::string, T>>;

/// The part of the caller's automatic differentiation that interception needs.
///
/// - make_variable(name, shape) makes a trainable float32 variable; it is best kept apart from
///   those that the caller saves.
/// - initialize(variable) gives the variable any first value.
/// - intercept(variable, activation, backward) returns the activation as the result of an operation
///   on both. A backward pass that comes to it calls backward(gradient of the result) once, and
///   gives zeros to both.
/// - zeros(shape) returns a float32 tensor of zeros.
template <class T>
concept InterceptingTape = requires(T& tape, const typename T::Tensor& tensor,
                                    const std::string& name, const Shape& shape,
                                    std::function<void(const typename T::Tensor&)> backward) {
  { tape.make_variable(name, shape) } -> std::same_as<typename T::Tensor>;
  {tape.initialize(tensor)};
  { tape.intercept(tensor, tensor, std::move(backward)) } -> std::same_as<typename T::Tensor>;
  { tape.zeros(shape) } -> std::same_as<typename T::Tensor>;
};

/// An optimizer whose compute_gradients(loss, tensors) returns the gradient of the loss with
/// respect to each tensor, or none where the loss does not depend on it.
template <class T, class Tensor>
concept ComputesGradients = requires(T& optimizer, const Tensor& loss,
                                     std::span<const Tensor> tensors) {
  {
    optimizer.compute_gradients(loss, tensors)
    } -> std::convertible_to<std::vector<std::optional<Tensor>>>;
};

/// Keeps the gradients that backward passes of one replica left, by table and by feature of the
/// table. The operations of the tape borrow it: it must outlive them and must not move. Use it from
/// one thread at a time.
template <class Tensor>
class GradientRegistry {
 public:
  explicit GradientRegistry(InterleavedLayout layout) : layout_(std::move(layout)) { clear(); }
  GradientRegistry(const GradientRegistry&) = delete;
  GradientRegistry& operator=(const GradientRegistry&) = delete;

  const InterleavedLayout& layout() const noexcept { return layout_; }

  /// Returns one list for each table: empty, or with an element for each of its features.
  const std::vector<std::vector<std::optional<Tensor>>>& gradients() const noexcept {
    return gradients_;
  }

  /// Empties all lists. The caller does this between one step's gradients and the next.
  void clear() { gradients_.assign(layout_.tables().size(), {}); }

  /// Gives each list its elements, without gradients. Throws StateError naming the table if its
  /// list has some; nothing has changed then.
  void open() {
    for (std::size_t table = 0; table < gradients_.size(); ++table) {
      if (!gradients_[table].empty())
        throw StateError(subject(table) + ": its list of gradients must be empty, got " +
                         std::to_string(gradients_[table].size()) + " elements; clear it first");
    }
    for (std::size_t table = 0; table < gradients_.size(); ++table)
      gradients_[table].resize(layout_.tables()[table].features.size());
  }

  /// Stores the gradient of one activation: `table` and `lookup` are positions in the layout, of
  /// the table and of the feature among the table's. Throws StateError naming the table if its list
  /// is empty, has no such element, or has its gradient already.
  void store(std::size_t table, std::size_t lookup, const Tensor& gradient) {
    std::vector<std::optional<Tensor>>& list = gradients_[table];
    if (list.empty())
      throw StateError(subject(table) +
                       ": a gradient came without a list to keep it: there is no training step");
    if (lookup >= list.size())
      throw StateError(subject(table) + ": lookup_id must be < " + std::to_string(list.size()) +
                       ", got " + std::to_string(lookup));
    if (list[lookup])
      throw StateError(subject(table) + ": lookup_id " + std::to_string(lookup) +
                       " has its gradient already: there was a backward pass before");
    list[lookup] = gradient;
  }

  /// Returns a text such as "table 'video' with id 0".
  std::string subject(std::size_t table) const {
    return "table '" + layout_.tables()[table].name + "' with id " + std::to_string(table);
  }

 private:
  InterleavedLayout layout_;
  std::vector<std::vector<std::optional<Tensor>>> gradients_;
};

/// Result of `create_dummy_table_variables`.
template <class Tensor>
struct DummyTableVariables {
  Ordered<Tensor> variables;         ///< by table, in the layout's order, of shape [1]
  std::function<void()> initialize;  ///< gives all their first value
};

/// Returns the gradients of the loss with respect to the activations, in their order; none where
/// the loss does not depend on one. Throws ValueError if the optimizer gives another number of
/// them.
template <class Optimizer, class Tensor>
requires ComputesGradients<Optimizer, Tensor> Ordered<std::optional<Tensor>>
get_gradients_through_compute_gradients(Optimizer& optimizer, const Tensor& loss,
                                        const Ordered<Tensor>& activations) {
  std::vector<Tensor> tensors;
  for (const auto& [feature, activation] : activations) tensors.push_back(activation);
  std::vector<std::optional<Tensor>> gradients =
      optimizer.compute_gradients(loss, std::span<const Tensor>(tensors));
  if (gradients.size() != tensors.size()) {
    throw ValueError("compute_gradients: there must be a gradient for each of " +
                     std::to_string(tensors.size()) + " activations, got " +
                     std::to_string(gradients.size()));
  }
  Ordered<std::optional<Tensor>> by_feature;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    by_feature.emplace_back(activations[i].first, std::move(gradients[i]));
  return by_feature;
}

/// Makes a variable for each table, and opens the registry for one training step. Throws StateError
/// naming the table if the registry has gradients. Requires: the tape outlives `initialize`.
template <InterceptingTape Tape>
DummyTableVariables<typename Tape::Tensor> create_dummy_table_variables(
    Tape& tape, GradientRegistry<typename Tape::Tensor>& registry) {
  registry.open();
  DummyTableVariables<typename Tape::Tensor> dummies;
  try {
    for (const InterleavedLayout::PlacedTable& table : registry.layout().tables()) {
      const std::string name = "tpu_embedding_dummy_table_variable_" + table.name;
      dummies.variables.emplace_back(table.name, tape.make_variable(name, Shape{1}));
    }
  } catch (...) {
    registry.clear();
    throw;
  }
  dummies.initialize = [&tape, variables = dummies.variables] {
    for (const auto& [table, variable] : variables) tape.initialize(variable);
  };
  return dummies;
}

namespace interception {

template <class T>
const T& at(const Ordered<T>& all, const std::string& name, const char* what) {
  for (const auto& [known, value] : all)
    if (known == name) return value;
  throw KeyError(std::string("there is no ") + what + " '" + name + "'");
}

/// Returns the position of a feature in the layout. Throws KeyError.
inline std::size_t feature_at(const InterleavedLayout& layout, const std::string& name) {
  for (std::size_t f = 0; f < layout.features().size(); ++f)
    if (layout.features()[f].name == name) return f;
  throw KeyError("there is no feature '" + name + "'");
}

/// Returns the position of a feature among those of its table.
inline std::size_t lookup_id(const InterleavedLayout& layout, std::size_t feature) {
  const auto& placed = layout.features()[feature];
  const auto& of_table = layout.tables()[placed.table].features;
  std::size_t id = 0;
  while (of_table[id] != static_cast<std::int64_t>(feature)) ++id;
  return id;
}

}  // namespace interception

/// Returns the same activations, in their order; a backward pass through one leaves its gradient in
/// the registry, which must outlive it. Throws KeyError naming an unknown feature, or a table that
/// `dummies` lacks. The backward pass throws what GradientRegistry::store throws.
template <InterceptingTape Tape>
Ordered<typename Tape::Tensor> hook_dummy_table_variables_to_activations(
    Tape& tape, GradientRegistry<typename Tape::Tensor>& registry,
    const Ordered<typename Tape::Tensor>& activations,
    const Ordered<typename Tape::Tensor>& dummies) {
  const InterleavedLayout& layout = registry.layout();
  Ordered<typename Tape::Tensor> hooked;
  for (const auto& [name, activation] : activations) {
    const std::size_t feature = interception::feature_at(layout, name);
    const auto table = static_cast<std::size_t>(layout.features()[feature].table);
    const std::size_t lookup = interception::lookup_id(layout, feature);
    const auto keep = [&registry, table, lookup](const typename Tape::Tensor& gradient) {
      registry.store(table, lookup, gradient);
    };
    const auto& dummy =
        interception::at(dummies, layout.tables()[table].name, "dummy variable of table");
    hooked.emplace_back(name, tape.intercept(dummy, activation, keep));
  }
  return hooked;
}

/// Returns the gradients that the registry has, by feature: tables in order, and their features in
/// order. If only some features of a table have gradients, the others get zeros, [batch_size, dim]
/// or [batch_size, L, dim], and `log` (may be empty) receives one warning that names the table.
/// Throws ValueError naming the table if none of its features has one. Leaves the registry
/// unchanged.
template <InterceptingTape Tape>
Ordered<typename Tape::Tensor> get_gradients_through_dummy_table_variables(
    Tape& tape, const GradientRegistry<typename Tape::Tensor>& registry,
    const std::function<void(std::string_view)>& log = {}) {
  const InterleavedLayout& layout = registry.layout();
  Ordered<typename Tape::Tensor> by_feature;
  for (std::size_t table = 0; table < layout.tables().size(); ++table) {
    const auto& list = registry.gradients()[table];
    std::size_t missing = 0;
    for (const auto& gradient : list) missing += gradient ? 0 : 1;
    if (missing == list.size()) {
      throw ValueError(registry.subject(table) +
                       ": no activation of it has a gradient; probably none is used by the loss");
    }
    if (missing > 0 && log) {
      log(registry.subject(table) + ": " + std::to_string(missing) + " of " +
          std::to_string(list.size()) +
          " activations have no gradient and get zeros; an optimizer with moments moves their rows "
          "all the same");
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::int64_t feature = layout.tables()[table].features[i];
      by_feature.emplace_back(layout.features()[feature].name,
                              list[i] ? *list[i] : tape.zeros(layout.feature_shape(feature)));
    }
  }
  return by_feature;
}

}  // namespace embertable
