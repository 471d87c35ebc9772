#include "embertable/tensorflow/object_graph.h"

#include <fmt/format.h>

#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "embertable/errors.h"
#include "tensorflow/bundle/sub_message.h"

namespace embertable {
namespace {

using protozero::pbf_tag_type;

// Field numbers of TrackableObjectGraph and its messages.
constexpr pbf_tag_type kNode = 1;
constexpr pbf_tag_type kChild = 1, kAttribute = 2, kSlot = 3, kSaver = 4, kHasValues = 5;
constexpr pbf_tag_type kFirst = 1, kSecond = 2, kThird = 3;

constexpr std::string_view kAttributesPart = "/.ATTRIBUTES/VARIABLE_VALUE";

constexpr std::uint32_t number_field(pbf_tag_type tag) {
  return protozero::tag_and_type(tag, protozero::pbf_wire_type::varint);
}
constexpr std::uint32_t bytes_field(pbf_tag_type tag) {
  return protozero::tag_and_type(tag, protozero::pbf_wire_type::length_delimited);
}

void add_text(protozero::pbf_writer& writer, pbf_tag_type tag, const std::string& text) {
  if (!text.empty()) writer.add_string(tag, text);
}
void add_node_number(protozero::pbf_writer& writer, pbf_tag_type tag, std::int32_t node) {
  if (node != 0) writer.add_int32(tag, node);
}

void write_node(protozero::pbf_writer& writer, const ObjectGraph::Node& node) {
  using protozero::pbf_writer;
  for (const ObjectGraph::Child& child : node.children) {
    formats::add_sub_message(writer, kChild, [&](pbf_writer& one) {
      add_node_number(one, kFirst, child.node);
      add_text(one, kSecond, child.name);
    });
  }
  for (const ObjectGraph::Attribute& attribute : node.attributes) {
    formats::add_sub_message(writer, kAttribute, [&](pbf_writer& one) {
      add_text(one, kFirst, attribute.name);
      add_text(one, kSecond, attribute.full_name);
      add_text(one, kThird, attribute.key);
    });
  }
  for (const ObjectGraph::Slot& slot : node.slots) {
    formats::add_sub_message(writer, kSlot, [&](pbf_writer& one) {
      add_node_number(one, kFirst, slot.variable);
      add_text(one, kSecond, slot.name);
      add_node_number(one, kThird, slot.slot_variable);
    });
  }
  if (node.registered_saver) {
    formats::add_sub_message(writer, kSaver, [&](pbf_writer& one) {
      add_text(one, kFirst, node.registered_saver->name);
      add_text(one, kSecond, node.registered_saver->object_name);
    });
  }
  if (node.has_checkpoint_values) {
    formats::add_sub_message(writer, kHasValues, [&](pbf_writer& one) {  // a BoolValue
      if (*node.has_checkpoint_values) one.add_bool(kFirst, true);
    });
  }
}

/// The fields 1 to 3 of a small message: numbers and texts.
struct Fields {
  std::int32_t number[4] = {};
  std::string text[4];

  explicit Fields(protozero::pbf_reader reader) {
    while (reader.next()) {
      const pbf_tag_type tag = reader.tag();
      if (tag <= kThird && reader.tag_and_type() == number_field(tag)) {
        number[tag] = static_cast<std::int32_t>(reader.get_uint64());
      } else if (tag <= kThird && reader.tag_and_type() == bytes_field(tag)) {
        text[tag] = reader.get_string();
      } else {
        reader.skip();
      }
    }
  }
};

ObjectGraph::Node read_node(protozero::pbf_reader reader) {
  ObjectGraph::Node node;
  while (reader.next()) {
    const std::uint32_t field = reader.tag_and_type();
    if (field > bytes_field(kHasValues) || field != bytes_field(reader.tag())) {
      reader.skip();
      continue;
    }
    const pbf_tag_type tag = reader.tag();
    Fields fields(reader.get_message());
    if (tag == kChild) {
      node.children.push_back({fields.number[kFirst], std::move(fields.text[kSecond])});
    } else if (tag == kAttribute) {
      node.attributes.push_back({std::move(fields.text[kFirst]), std::move(fields.text[kSecond]),
                                 std::move(fields.text[kThird])});
    } else if (tag == kSlot) {
      node.slots.push_back(
          {fields.number[kFirst], std::move(fields.text[kSecond]), fields.number[kThird]});
    } else if (tag == kSaver) {
      node.registered_saver = {std::move(fields.text[kFirst]), std::move(fields.text[kSecond])};
    } else {
      node.has_checkpoint_values = fields.number[kFirst] != 0;
    }
  }
  return node;
}

void check_nodes(const ObjectGraph& graph) {
  const auto check = [&](std::int32_t node) {
    if (node < 0 || node >= std::ssize(graph.nodes))
      throw DataLoss(
          fmt::format("object graph: there is no node {} of {}", node, graph.nodes.size()));
  };
  for (const ObjectGraph::Node& node : graph.nodes) {
    for (const ObjectGraph::Child& child : node.children) check(child.node);
    for (const ObjectGraph::Slot& slot : node.slots)
      check(slot.variable), check(slot.slot_variable);
  }
}

}  // namespace

std::int32_t ObjectGraph::child(std::int32_t parent, const std::string& name) {
  if (parent < 0 || parent >= std::ssize(nodes)) {
    throw IndexError(
        fmt::format("object graph: node must be 0 <= node < {}, got {}", nodes.size(), parent));
  }
  auto& children = nodes[parent].children;
  for (const Child& one : children)
    if (one.name == name) return one.node;
  const auto node = static_cast<std::int32_t>(nodes.size());
  children.push_back({node, name});
  nodes.emplace_back();
  return node;
}

std::int32_t ObjectGraph::variable(std::int32_t parent, const std::string& name,
                                   const std::string& key) {
  const std::int32_t node = child(parent, name);
  Node& variable = nodes[node];
  variable.attributes = {{.name = "VARIABLE_VALUE", .full_name = name, .key = key}};
  variable.has_checkpoint_values = true;
  return node;
}

std::string serialize(const ObjectGraph& graph) {
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  for (const ObjectGraph::Node& node : graph.nodes) {
    formats::add_sub_message(writer, kNode,
                             [&](protozero::pbf_writer& one) { write_node(one, node); });
  }
  return bytes;
}

ObjectGraph parse_object_graph(std::string_view bytes) {
  ObjectGraph graph;
  try {
    protozero::pbf_reader reader(bytes.data(), bytes.size());
    while (reader.next()) {
      if (reader.tag_and_type() == bytes_field(kNode)) {
        graph.nodes.push_back(read_node(reader.get_message()));
      } else {
        reader.skip();
      }
    }
  } catch (const protozero::exception& error) {
    throw DataLoss(fmt::format("object graph: {}", error.what()));
  }
  check_nodes(graph);
  return graph;
}

std::string escape_name(std::string_view name) {
  std::string escaped;
  for (const char c : name) {
    if (c == '.') {
      escaped += "..";
    } else if (c == '/') {
      escaped += ".S";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string unescape_name(std::string_view escaped) {
  std::string name;
  for (std::size_t i = 0; i < escaped.size(); ++i) {
    const char next = i + 1 < escaped.size() ? escaped[i + 1] : '\0';
    const bool is_escape = escaped[i] == '.' && (next == '.' || next == 'S');
    name += is_escape && next == 'S' ? '/' : escaped[i];
    if (is_escape) ++i;
  }
  return name;
}

std::string variable_key(const std::vector<std::string>& names) {
  std::string key;
  for (std::size_t i = 0; i < names.size(); ++i) key += (i == 0 ? "" : "/") + escape_name(names[i]);
  return key.append(kAttributesPart);
}

}  // namespace embertable
