// Object graphs, and names in keys.
#include "embertable/tensorflow/object_graph.h"

#include <gtest/gtest.h>

#include "embertable/errors.h"
#include "testing/golden_messages.h"

namespace embertable::formats {
namespace {

// The graph of one object with its counter, as tf.train.Checkpoint(s=...) writes it.
TEST(ObjectGraph, OfOneVariableAndTheCounter) {
  const std::string bytes = wire::from_hex(
      "0a190a0508011201730a100802120c736176655f636f756e7465720a30122e0a0e5641524941424c455f56414c55"
      "45"
      "1a1c732f2e415454524942555445532f5641524941424c455f56414c55450a3b12390a0e5641524941424c455f56"
      "41"
      "4c55451a27736176655f636f756e7465722f2e415454524942555445532f5641524941424c455f56414c5545");
  ObjectGraph graph = ObjectGraph::of_root();
  for (const char* name : {"s", "save_counter"}) {
    const std::int32_t node = graph.variable(0, name, variable_key({name}));
    ObjectGraph::Node& variable = graph.nodes[node];
    variable.attributes[0].full_name.clear();
    variable.has_checkpoint_values.reset();
  }
  EXPECT_EQ(wire::to_hex(serialize(graph)), wire::to_hex(bytes));
  EXPECT_EQ(parse_object_graph(bytes), graph);
}

TEST(ObjectGraph, NamesAreEscapedAndBack) {
  for (const char* name : {"a", "item.v2/main", "..", ".S", "a/.b", "/"})
    EXPECT_EQ(unescape_name(escape_name(name)), name);
  EXPECT_EQ(variable_key({"embedding", "item.v2/main"}),
            "embedding/item..v2.Smain/.ATTRIBUTES/VARIABLE_VALUE");
  EXPECT_EQ(variable_key({"", "a"}), "/a/.ATTRIBUTES/VARIABLE_VALUE");
  EXPECT_EQ(variable_key({"a", ""}), "a//.ATTRIBUTES/VARIABLE_VALUE");
}

TEST(ObjectGraph, WhatHasNoFieldsIsWrittenToo) {
  const std::string bytes("\x0a\x00\x0a\x04\x0a\x00\x2a\x00", 8);  // a node; a child, false
  const ObjectGraph graph = parse_object_graph(bytes);
  EXPECT_EQ(graph.nodes.size(), 2u);
  EXPECT_EQ(wire::to_hex(serialize(graph)), wire::to_hex(bytes));
}

TEST(ObjectGraph, RefusesWhatIsNone) {
  EXPECT_THROW(parse_object_graph("\x0a\x05"), DataLoss);
  EXPECT_THROW(parse_object_graph(std::string("\x0a\x04\x0a\x02\x08\x01", 6)), DataLoss);
  EXPECT_THROW(ObjectGraph::of_root().child(1, "x"), IndexError);
}

}  // namespace
}  // namespace embertable::formats
