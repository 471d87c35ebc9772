#include "tensorflow/wire/write.h"

#include <fmt/format.h>

#include <bit>
#include <protozero/pbf_writer.hpp>

#include "base/bytes.h"
#include "embertable/errors.h"

namespace embertable::wire {
namespace {

template <class Message>
std::string written(const Message& message, const std::string& path);

/// Writes each field that is not at its default.
class FieldWriter {
 public:
  /// Borrows both. `path` names the message in errors.
  FieldWriter(std::string& out, const std::string& path) : out_(out), path_(path) {}

  void operator()(std::uint32_t number, std::string_view name, bool value) {
    if (value) put(number, name, value);
  }
  void operator()(std::uint32_t number, std::string_view name, std::int32_t value) {
    if (value != 0) put(number, name, value);
  }
  void operator()(std::uint32_t number, std::string_view name, std::int64_t value) {
    if (value != 0) put(number, name, value);
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void operator()(std::uint32_t number, std::string_view name, Enum value) {
    (*this)(number, name, static_cast<std::int32_t>(value));
  }
  void operator()(std::uint32_t number, std::string_view name, float value) {
    if (std::bit_cast<std::uint32_t>(value) != 0) put(number, name, value);  // -0 is a value
  }
  void operator()(std::uint32_t number, std::string_view name, double value) {
    if (std::bit_cast<std::uint64_t>(value) != 0) put(number, name, value);
  }
  void operator()(std::uint32_t number, std::string_view name, const std::string& text) {
    if (text.empty()) return;
    if (!is_utf8(text)) throw ValueError(fmt::format("{}.{}: a text must be UTF-8", path_, name));
    out_.add_string(number, text);
  }
  template <class Number>
  requires std::is_integral_v<Number>
  void operator()(std::uint32_t number, std::string_view, const std::vector<Number>& values) {
    if constexpr (sizeof(Number) == 4) {
      out_.add_packed_int32(number, values.begin(), values.end());
    } else {
      out_.add_packed_int64(number, values.begin(), values.end());
    }
  }
  template <class Message>
  void operator()(std::uint32_t number, std::string_view name,
                  const std::vector<Message>& messages) {
    if (messages.size() > most_of<Message>()) {
      throw ValueError(fmt::format("{}.{}: there must be at most {}, got {}", path_, name,
                                   most_of<Message>(), messages.size()));
    }
    for (const Message& message : messages) put(number, name, message);
  }
  void operator()(std::uint32_t number, std::string_view, const std::optional<std::string>& bytes) {
    if (bytes) out_.add_bytes(number, *bytes);
  }
  template <class Message>
  void operator()(std::uint32_t number, std::string_view name,
                  const std::optional<Message>& message) {
    if (message) put(number, name, *message);
  }
  template <class Variant, class Member>
  void operator()(std::uint32_t number, std::string_view name,
                  const Alternative<Variant, Member>& field) {
    if (const auto* member = std::get_if<Member>(&field.of)) put(number, name, *member);
  }

 private:
  template <class T>
  void put(std::uint32_t number, std::string_view name, const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      out_.add_bool(number, value);
    } else if constexpr (std::is_same_v<T, std::int32_t>) {
      out_.add_int32(number, value);
    } else if constexpr (std::is_same_v<T, std::int64_t>) {
      out_.add_int64(number, value);
    } else if constexpr (std::is_same_v<T, float>) {
      out_.add_float(number, value);
    } else if constexpr (std::is_same_v<T, double>) {
      out_.add_double(number, value);
    } else {
      out_.add_message(number, written(value, fmt::format("{}.{}", path_, name)));
    }
  }

  protozero::pbf_writer out_;
  const std::string& path_;
};

template <class Message>
std::string written(const Message& message, const std::string& path) {
  std::string out;
  FieldWriter writer(out, path);
  each_field(message, writer);
  return out.append(message.unknown_fields);
}

}  // namespace

template <class Message>
std::string write(const Message& message, std::string_view name) {
  std::string bytes = written(message, std::string(name));
  if (bytes.size() > kMaxBytes) {
    throw ValueError(
        fmt::format("{}: there must be at most {} bytes, got {}", name, kMaxBytes, bytes.size()));
  }
  return bytes;
}

template std::string write(const TPUEmbeddingConfiguration&, std::string_view);
template std::string write(const OptimizationParameters&, std::string_view);
template std::string write(const StateVariableSpecification&, std::string_view);
template std::string write(const TPUEmbeddingError&, std::string_view);
template std::string write(const SparseCoreTableLayouts&, std::string_view);

}  // namespace embertable::wire
