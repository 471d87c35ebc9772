// Operations that TensorFlow computed: tests/golden/README.md.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "embertable/errors.h"
#include "testing/source_path.h"
#include "testing/variable/slow_array.h"
#include "testing/variable/slow_index.h"

namespace embertable {
namespace {

using namespace sharded_test;  // NOLINT: arrays as lists of numbers
using Json = nlohmann::json;

DType dtype_named(const std::string& name) {
  for (const DType dtype : kDTypes)
    if (to_string(dtype) == name) return dtype;
  throw std::runtime_error("no dtype " + name);
}

SlowArray array_of(DType dtype, const Dims& dims, const Json& data) {
  SlowArray array = {dtype, dims, {}};
  for (const Json& x : data) {
    Number number;
    if (x.is_boolean())
      number.integer = x.get<bool>() ? 1 : 0;
    else if (whole(dtype))
      number.integer = x.get<std::int64_t>();
    else if (x.is_number())
      number.real = rounded(dtype, x.get<double>());
    else
      number.real = std::stod(x.get<std::string>());  // "nan", "inf", "-inf"
    array.cell.push_back(number);
  }
  return array;
}
SlowArray array_of(DType dtype, const Json& json) {
  return array_of(dtype, json.at("shape").get<Dims>(), json.at("data"));
}

SliceBound bound(const std::string& text) {
  if (text.empty()) return {};
  if (text.starts_with("tensor")) return Tensor::scalar(std::int64_t{std::stoll(text.substr(7))});
  return std::int64_t{std::stoll(text)};
}

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == by)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

Index part(const std::string& text) {
  if (text == "...") return Ellipsis{};
  if (text == "newaxis") return NewAxis{};
  const std::vector<std::string> bounds = split(text, ':');
  if (bounds.size() > 1)
    return Slice{bound(bounds[0]), bound(bounds[1]),
                 bounds.size() > 2 ? bound(bounds[2]) : SliceBound{}};
  if (text.starts_with("tensor")) return Tensor::scalar(std::int64_t{std::stoll(text.substr(7))});
  return std::int64_t{std::stoll(text)};
}

std::vector<Index> index_of(const Json& c) {
  std::vector<Index> parts;
  if (c.contains("mask")) {
    if (c["mask"] == "scalar")
      parts.emplace_back(true);
    else
      parts.emplace_back(to_tensor(array_of(DType::kBool, c["mask"])));
  } else if (!c["spec"].get<std::string>().empty()) {
    for (const std::string& text : split(c["spec"], ',')) parts.push_back(part(text));
  }
  return parts;
}

ScatterOperation scatter_named(const std::string& op) {
  static const std::map<std::string, ScatterOperation> kAll = {
      {"scatter_add", ScatterOperation::kAdd},      {"scatter_sub", ScatterOperation::kSub},
      {"scatter_mul", ScatterOperation::kMul},      {"scatter_div", ScatterOperation::kDiv},
      {"scatter_min", ScatterOperation::kMin},      {"scatter_max", ScatterOperation::kMax},
      {"scatter_update", ScatterOperation::kUpdate}};
  return kAll.at(op);
}

/// What the case's operation gives: a value, or the whole table after a change.
Tensor perform(const Json& c, ShardedVariable& variable) {
  const std::string op = c["op"];
  const DType dtype = dtype_named(c["dtype"]);
  const auto indices = [&] {
    return to_tensor(array_of(dtype_named(c["indices"]["dtype"]), c["indices"]));
  };
  if (op == "getitem") return variable.at(index_of(c));
  if (op == "sparse_read") return variable.sparse_read(indices());
  if (op.starts_with("assign")) {
    const Tensor value = to_tensor(array_of(dtype, c["value"]));
    if (op == "assign_add") return variable.assign_add(value).value();
    if (op == "assign_sub") return variable.assign_sub(value).value();
    return variable.assign(value).value();
  }
  const Tensor values = to_tensor(array_of(dtype, c["values"]));
  if (op == "batch_scatter_update") return variable.batch_scatter_update(indices(), values).value();
  return variable.scatter(scatter_named(op), indices(), values).value();
}

std::string category_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const IndexError&) {
    return "OutOfRange";
  } catch (const ValueError&) {
    return "InvalidArgument";
  } catch (const TypeError&) {
    return "TypeError";
  }
  return "no error";
}

/// An id outside of the variable is out of range here whatever is done with it.
std::string expected_category(const Json& c, const Json& wanted) {
  const std::string category = wanted["category"];
  if (!c.contains("indices") || c["indices"]["shape"].size() != 1) return category;
  std::int64_t rows = 0;
  for (const Json& size : c["sizes"]) rows += size.get<std::int64_t>();
  for (const Json& i : c["indices"]["data"])
    if (i.get<std::int64_t>() < 0 || i.get<std::int64_t>() >= rows) return "OutOfRange";
  return category;
}

void check(const Json& c) {
  const DType dtype = dtype_named(c["dtype"]);
  const Dims sizes = c["sizes"];
  Dims dims = {std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0})};
  for (const Json& dim : c["tail"]) dims.push_back(dim);
  const SlowArray table = array_of(dtype, dims, c["table"]);
  ShardedVariable variable = sharded(table, sizes);
  const Json& wanted = c.contains("correct") ? c["correct"] : c["tf"];
  if (wanted.contains("category")) {
    EXPECT_EQ(category_of([&] { perform(c, variable); }), expected_category(c, wanted));
    EXPECT_TRUE(agree(to_array(variable.value()), table)) << "changed in spite of the error";
    return;
  }
  const SlowArray expected =
      wanted.contains("after") ? array_of(dtype, dims, wanted["after"]) : array_of(dtype, wanted);
  const SlowArray result = to_array(perform(c, variable));
  EXPECT_TRUE(agree(result, expected, whole(dtype) ? 0 : 1e-6))
      << shown(result) << "\n  not " << shown(expected);
}

TEST(ShardedGolden, AgreesWithTensorFlow) {
  std::ifstream file(source_path("tests/golden/sharded_ops.json"));
  const Json all = Json::parse(file);
  int checked = 0, lookups = 0;
  for (const Json& c : all["cases"]) {
    SCOPED_TRACE("case " + c["id"].dump() + ": " + c["op"].get<std::string>());
    if (c["op"] == "embedding_lookup") {
      ++lookups;
    } else {
      ASSERT_NO_THROW(check(c));
      ++checked;
    }
  }
  EXPECT_EQ(checked, 451);
  EXPECT_EQ(lookups, 50);
}

}  // namespace
}  // namespace embertable
