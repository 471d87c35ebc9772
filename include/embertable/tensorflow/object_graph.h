#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "embertable/version.h"

namespace embertable {

/// Key under which a tensor bundle holds its object graph, a scalar string.
inline constexpr std::string_view kObjectGraphKey = "_CHECKPOINTABLE_OBJECT_GRAPH";

/// The objects of a checkpoint of tf.train.Checkpoint, and the tensors that belong to them: a graph
/// whose node 0 is the root. Source: TF trackable_object_graph.proto.
struct ObjectGraph {
  /// An attribute of an object that is an object too.
  struct Child {
    std::int32_t node = 0;  ///< position among `nodes`
    std::string name;       ///< name of the attribute, not escaped
    friend bool operator==(const Child&, const Child&) = default;
  };
  /// A tensor of an object.
  struct Attribute {
    std::string name = "VARIABLE_VALUE";
    std::string full_name;  ///< full name of the variable, for loading by name
    std::string key;        ///< key of the tensor
    friend bool operator==(const Attribute&, const Attribute&) = default;
  };
  /// A variable that an optimizer keeps for another one.
  struct Slot {
    std::int32_t variable = 0;       ///< node of the variable that is optimized
    std::string name;                ///< name of the slot
    std::int32_t slot_variable = 0;  ///< node of the slot's variable
    friend bool operator==(const Slot&, const Slot&) = default;
  };
  /// Names the registered function that saves and restores an object.
  struct RegisteredSaver {
    std::string name;
    std::string object_name;
    friend bool operator==(const RegisteredSaver&, const RegisteredSaver&) = default;
  };
  /// One object.
  struct Node {
    std::vector<Child> children;
    std::vector<Attribute> attributes;
    std::vector<Slot> slots;
    std::optional<RegisteredSaver> registered_saver;
    std::optional<bool> has_checkpoint_values;
    friend bool operator==(const Node&, const Node&) = default;
  };

  std::vector<Node> nodes;
  friend bool operator==(const ObjectGraph&, const ObjectGraph&) = default;

  /// Makes a graph of a root alone.
  static ObjectGraph of_root() { return {.nodes = {Node{}}}; }

  /// Returns the node of the object `name` of `parent`, made if missing. Throws IndexError unless
  /// the parent exists.
  EMBERTABLE_API std::int32_t child(std::int32_t parent, const std::string& name);

  /// Returns the same node and makes it a variable: `key` is the key of its tensor. Throws what
  /// `child` throws.
  EMBERTABLE_API std::int32_t variable(std::int32_t parent, const std::string& name,
                                       const std::string& key);
};

/// Convert to the bytes that TensorFlow stores, and back; unknown fields are skipped. Parsing
/// throws DataLoss for bytes that are no object graph, and for a node that names one that does not
/// exist.
EMBERTABLE_API std::string serialize(const ObjectGraph& graph);
EMBERTABLE_API ObjectGraph parse_object_graph(std::string_view bytes);

/// Escapes a name for the key of a tensor: "." becomes "..", "/" becomes ".S".
EMBERTABLE_API std::string escape_name(std::string_view name);

/// Reverses escape_name; leaves a "." alone that escapes nothing.
EMBERTABLE_API std::string unescape_name(std::string_view escaped);

/// Returns the key of the variable at the end of these names from the root,
/// "embedding/user.Saccumulators/.ATTRIBUTES/VARIABLE_VALUE". Names may be empty. Source: TF
/// trackable_utils.py, object_path_to_string and checkpoint_key.
EMBERTABLE_API std::string variable_key(const std::vector<std::string>& names);

}  // namespace embertable
