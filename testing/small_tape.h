#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "embertable/shape.h"

namespace embertable::v1 {

/// Reverse mode over small tensors, by hand: what interception asks of a framework, for tests.
class SmallTape {
 public:
  struct Tensor {
    std::size_t node = 0;
  };
  using Values = std::vector<float>;

  Tensor constant(Values values, Shape shape) { return add({std::move(values), shape, {}, {}}); }

  /// A tensor that gradients are asked for.
  Tensor watched(Values values, Shape shape) {
    const Tensor tensor = constant(std::move(values), shape);
    nodes_[tensor.node].needed = true;
    return tensor;
  }

  Tensor make_variable(const std::string& name, const Shape& shape) {
    names.push_back(name);
    return watched(Values(shape.num_elements(), -1), shape);
  }
  void initialize(const Tensor& variable) {
    for (float& x : nodes_[variable.node].values) x = 0.5f;
  }
  Tensor zeros(const Shape& shape) { return constant(Values(shape.num_elements()), shape); }
  Tensor intercept(const Tensor& variable, const Tensor& activation,
                   std::function<void(const Tensor&)> backward) {
    const Values values = nodes_[activation.node].values;
    const Shape shape = nodes_[activation.node].shape;
    return operation(values, shape, {variable, activation},
                     [this, shape, backward = std::move(backward)](const Values& upstream) {
                       backward(constant(upstream, shape));
                       return std::vector<Values>{Values(1), Values(upstream.size())};
                     });
  }

  Tensor scaled(const Tensor& a, float by) {
    Values values = nodes_[a.node].values;
    for (float& x : values) x *= by;
    return operation(values, shape(a), {a}, [by](Values upstream) {
      for (float& x : upstream) x *= by;
      return std::vector<Values>{upstream};
    });
  }
  Tensor plus(const Tensor& a, const Tensor& b) {
    Values values = nodes_[a.node].values;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += nodes_[b.node].values[i];
    return operation(values, shape(a), {a, b}, [](const Values& upstream) {
      return std::vector<Values>{upstream, upstream};
    });
  }
  /// The sum of the squares, halved.
  Tensor half_square(const Tensor& a) {
    const Values of = nodes_[a.node].values;
    float sum = 0;
    for (const float x : of) sum += x * x / 2;
    return operation({sum}, Shape::scalar(), {a}, [of](const Values& upstream) {
      Values gradient = of;
      for (float& x : gradient) x *= upstream[0];
      return std::vector<Values>{gradient};
    });
  }
  Tensor sum(const Tensor& a) {
    const std::size_t size = nodes_[a.node].values.size();
    float sum = 0;
    for (const float x : nodes_[a.node].values) sum += x;
    return operation({sum}, Shape::scalar(), {a}, [size](const Values& upstream) {
      return std::vector<Values>{Values(size, upstream[0])};
    });
  }

  /// Gradients of the loss with respect to each tensor; none where it does not depend on it.
  std::vector<std::optional<Tensor>> compute_gradients(const Tensor& loss,
                                                       std::span<const Tensor> with_respect_to) {
    std::vector<std::optional<Values>> gradient(nodes_.size());
    gradient[loss.node] = Values{1};
    for (std::size_t n = loss.node + 1; n-- > 0;) {
      if (!gradient[n] || !nodes_[n].needed || !nodes_[n].backward) continue;
      const std::vector<Tensor> inputs = nodes_[n].inputs;  // backward may add nodes
      const auto backward = nodes_[n].backward;
      const std::vector<Values> parts = backward(*gradient[n]);
      for (std::size_t i = 0; i < inputs.size(); ++i)
        accumulate(gradient[inputs[i].node], parts[i]);
    }
    std::vector<std::optional<Tensor>> found;
    for (const Tensor& tensor : with_respect_to) {
      const std::optional<Values>& of = gradient[tensor.node];
      found.push_back(of ? std::optional(constant(*of, shape(tensor))) : std::nullopt);
    }
    return found;
  }
  void backward(const Tensor& loss) { compute_gradients(loss, {}); }

  const Values& values(const Tensor& tensor) const { return nodes_[tensor.node].values; }
  const Shape& shape(const Tensor& tensor) const { return nodes_[tensor.node].shape; }
  std::vector<std::string> names;  ///< names of variables

 private:
  using Backward = std::function<std::vector<Values>(const Values& upstream)>;
  struct Node {
    Values values;
    Shape shape;
    std::vector<Tensor> inputs;
    Backward backward;
    bool needed = false;  ///< depends on something watched
  };

  static void accumulate(std::optional<Values>& sum, const Values& part) {
    if (!sum) sum = Values(part.size());
    for (std::size_t i = 0; i < part.size(); ++i) (*sum)[i] += part[i];
  }
  Tensor operation(Values values, const Shape& shape, std::vector<Tensor> inputs,
                   Backward backward) {
    bool needed = false;
    for (const Tensor& input : inputs) needed = needed || nodes_[input.node].needed;
    return add({std::move(values), shape, std::move(inputs), std::move(backward), needed});
  }
  Tensor add(Node node) {
    nodes_.push_back(std::move(node));
    return {nodes_.size() - 1};
  }

  std::vector<Node> nodes_;
};

}  // namespace embertable::v1
