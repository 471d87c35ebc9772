#include "tensorflow/wire/read.h"

#include <fmt/format.h>

#include <bit>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "embertable/errors.h"
#include "tensorflow/wire/cursor.h"

namespace embertable::wire {
namespace {

template <class T>
constexpr bool kIsVarint = std::is_integral_v<T> || std::is_enum_v<T>;

template <class T>
T from_varint(std::uint64_t number) {
  if constexpr (std::is_same_v<T, bool>) {
    return number != 0;
  } else {
    return static_cast<T>(number);
  }
}

template <class T>
struct WireTypeOf {
  static constexpr WireType kValue = kIsVarint<T>                ? WireType::kVarint
                                     : std::is_same_v<T, float>  ? WireType::kFixed32
                                     : std::is_same_v<T, double> ? WireType::kFixed64
                                                                 : WireType::kBytes;
};

template <class Message>
void read_fields(Input& input, std::string_view bytes, Message& message);

/// Reads the value of one tag into the field that has its number, if there is one and the tag's
/// wire type is one of its.
class FieldReader {
 public:
  FieldReader(Input& input, Cursor& cursor, Tag tag) : input_(input), cursor_(cursor), tag_(tag) {}

  bool done() const noexcept { return done_; }

  void operator()(std::uint32_t number, std::string_view name, auto&& field) {
    if (number != tag_.number || done_) return;
    input_.fields.push_back(name);
    done_ = take(field);
    input_.fields.pop_back();
  }

 private:
  template <class T>
  bool take(T& field) {
    if (tag_.type != WireTypeOf<T>::kValue) return false;
    take_value(field);
    return true;
  }

  template <class Message>
  bool take(std::optional<Message>& field) {
    if (tag_.type != WireType::kBytes) return false;
    if (!field) field.emplace();
    take_value(*field);
    return true;
  }

  /// Keeps a serialized message unparsed: two of them merge by concatenation.
  bool take(std::optional<std::string>& field) {
    if (tag_.type != WireType::kBytes) return false;
    if (!field) field.emplace();
    field->append(cursor_.bytes());
    return true;
  }

  template <class Element>
  bool take(std::vector<Element>& field) {
    if constexpr (kIsVarint<Element>) {
      if (tag_.type == WireType::kVarint) {
        field.push_back(from_varint<Element>(cursor_.varint()));
        return true;
      }
    }
    if (tag_.type != WireType::kBytes) return false;
    if constexpr (kIsVarint<Element>) {
      Cursor packed(input_, cursor_.bytes());
      while (!packed.at_end()) field.push_back(from_varint<Element>(packed.varint()));
    } else {
      if (field.size() == most_of<Element>())
        input_.refuse(cursor_.at(), fmt::format("there must be at most {}", field.size()));
      take_value(field.emplace_back());
    }
    return true;
  }

  template <class Variant, class Member>
  bool take(Alternative<Variant, Member>& field) {
    if (tag_.type != WireTypeOf<Member>::kValue) return false;
    if (!std::holds_alternative<Member>(field.of)) field.of.template emplace<Member>();
    take_value(std::get<Member>(field.of));
    return true;
  }

  template <class T>
  void take_value(T& value) {
    if constexpr (kIsVarint<T>) {
      value = from_varint<T>(cursor_.varint());
    } else if constexpr (std::is_same_v<T, float>) {
      value = std::bit_cast<float>(cursor_.fixed32());
    } else if constexpr (std::is_same_v<T, double>) {
      value = std::bit_cast<double>(cursor_.fixed64());
    } else if constexpr (std::is_same_v<T, std::string>) {
      const char* start = cursor_.at();
      const std::string_view text = cursor_.bytes();
      if (!is_utf8(text)) input_.refuse(start, "a text must be UTF-8");
      value = text;
    } else {
      const std::string_view bytes = cursor_.bytes();
      read_fields(input_, bytes, value);
    }
  }

  Input& input_;
  Cursor& cursor_;
  Tag tag_;
  bool done_ = false;
};

template <class Message>
void read_fields(Input& input, std::string_view bytes, Message& message) {
  Cursor cursor(input, bytes);
  while (!cursor.at_end()) {
    const char* start = cursor.at();
    const Tag tag = cursor.tag();
    FieldReader reader(input, cursor, tag);
    each_field(message, reader);
    if (reader.done()) continue;
    cursor.skip(tag);
    message.unknown_fields.append(start, cursor.at());
  }
}

}  // namespace

template <class Message>
Message read(std::string_view bytes, std::string_view name) {
  Input input{name, bytes};
  if (bytes.size() > kMaxBytes) {
    throw ValueError(
        fmt::format("{}: there must be at most {} bytes, got {}", name, kMaxBytes, bytes.size()));
  }
  Message message;
  read_fields(input, bytes, message);
  return message;
}

template TPUEmbeddingConfiguration read(std::string_view, std::string_view);
template OptimizationParameters read(std::string_view, std::string_view);
template StateVariableSpecification read(std::string_view, std::string_view);
template TPUEmbeddingError read(std::string_view, std::string_view);
template SparseCoreTableLayouts read(std::string_view, std::string_view);

}  // namespace embertable::wire
