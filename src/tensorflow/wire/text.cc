#include "tensorflow/wire/text.h"

#include <fmt/format.h>

#include <cmath>

namespace embertable::wire {
namespace {

using Mode = TPUEmbeddingConfiguration::Mode;
using ShardingStrategy = TPUEmbeddingConfiguration::ShardingStrategy;
using HotIdStatus = HotIdReplicationConfiguration::Status;

/// Returns the proto's name of a value, or "" if it has none.
std::string_view name_of(Mode mode) {
  switch (mode) {
    case Mode::kUnspecified:
      return "UNSPECIFIED";
    case Mode::kInference:
      return "INFERENCE";
    case Mode::kTraining:
      return "TRAINING";
    case Mode::kBackwardPassOnly:
      return "BACKWARD_PASS_ONLY";
  }
  return "";
}

std::string_view name_of(ShardingStrategy strategy) {
  switch (strategy) {
    case ShardingStrategy::kDivDefault:
      return "DIV_DEFAULT";
    case ShardingStrategy::kMod:
      return "MOD";
  }
  return "";
}

std::string_view name_of(HotIdStatus status) {
  switch (status) {
    case HotIdStatus::kUnspecified:
      return "UNSPECIFIED";
    case HotIdStatus::kEnabled:
      return "ENABLED";
    case HotIdStatus::kDisabled:
      return "DISABLED";
    case HotIdStatus::kMigrationOnly:
      return "MIGRATION_ONLY";
  }
  return "";
}

std::string_view name_of(Status status) {
  return status > Status::kDisabled ? "" : name_of(static_cast<HotIdStatus>(status));
}

std::string in_quotes(std::string_view bytes) {
  std::string text = "\"";
  for (const char c : bytes) {
    if (c == '"' || c == '\\') {
      text.append(1, '\\').append(1, c);
    } else if (c == '\n') {
      text += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) {
      text += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    } else {
      text += c;
    }
  }
  return text + "\"";
}

template <class Number>
requires std::is_arithmetic_v<Number> std::string value_text(Number value) {
  if constexpr (std::is_floating_point_v<Number>) {
    if (std::isnan(value)) return "nan";  // either sign gives "nan", which protobuf reads
  }
  return fmt::format("{}", value);
}
std::string value_text(const std::string& text) { return in_quotes(text); }
template <class Enum>
requires std::is_enum_v<Enum> std::string value_text(Enum value) {
  const std::string_view name = name_of(value);
  return name.empty() ? value_text(static_cast<std::int32_t>(value)) : std::string(name);
}

template <class T>
constexpr bool kIsScalar =
    std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string>;

template <class Message>
void print_fields(const Message& message, std::string& text, std::size_t indent);

class FieldPrinter {
 public:
  FieldPrinter(std::string& text, std::size_t indent) : text_(text), indent_(indent) {}

  template <class T>
  requires kIsScalar<T>
  void operator()(std::uint32_t, std::string_view name, const T& value) {
    bool is_set = value != T{};
    if constexpr (std::is_floating_point_v<T>) is_set = is_set || std::signbit(value);
    if (is_set) put(name, value);
  }
  template <class T>
  void operator()(std::uint32_t, std::string_view name, const std::vector<T>& values) {
    for (const T& value : values) put(name, value);
  }
  template <class T>
  void operator()(std::uint32_t, std::string_view name, const std::optional<T>& value) {
    if (value) put(name, *value);
  }
  template <class Variant, class Member>
  void operator()(std::uint32_t, std::string_view name, const Alternative<Variant, Member>& field) {
    if (const auto* member = std::get_if<Member>(&field.of)) put(name, *member);
  }

 private:
  template <class T>
  void put(std::string_view name, const T& value) {
    text_.append(indent_, ' ').append(name);
    if constexpr (kIsScalar<T>) {
      text_.append(": ").append(value_text(value)).append("\n");
    } else {
      text_.append(" {\n");
      print_fields(value, text_, indent_ + 2);
      text_.append(indent_, ' ').append("}\n");
    }
  }

  std::string& text_;
  std::size_t indent_;
};

template <class Message>
void print_fields(const Message& message, std::string& text, std::size_t indent) {
  FieldPrinter printer(text, indent);
  each_field(message, printer);
  if (message.unknown_fields.empty()) return;
  text.append(indent, ' ');
  text += fmt::format("# {} bytes of unknown fields\n", message.unknown_fields.size());
}

}  // namespace

template <class Message>
std::string print(const Message& message) {
  std::string text;
  print_fields(message, text, 0);
  return text;
}

template std::string print(const TPUEmbeddingConfiguration&);
template std::string print(const OptimizationParameters&);
template std::string print(const StateVariableSpecification&);
template std::string print(const SparseCoreTableLayouts&);

}  // namespace embertable::wire
