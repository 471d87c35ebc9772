#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "checkpoint/file.h"
#include "checkpoint/new_file.h"
#include "embertable/errors.h"
#include "embertable/tensorflow/tensor_bundle.h"
#include "tensorflow/bundle/bundle_files.h"

namespace embertable {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStateName = "checkpoint";
constexpr std::string_view kLatestField = "model_checkpoint_path: \"";
constexpr std::int64_t kMaxStateBytes = 64 << 20;

/// Returns a text in protobuf's text format.
std::string text_format_of(std::string_view text) {
  std::string escaped = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      escaped.append("\\").append(1, c);
    } else if (byte < 0x20 || byte >= 0x7f) {
      escaped += fmt::format("\\{:03o}", byte);
    } else {
      escaped += c;
    }
  }
  return escaped + "\"";
}

/// Takes at most `most` digits from the front of `rest`. Empty if there is none.
std::optional<char> take_byte(std::string_view& rest, int base, std::size_t most) {
  unsigned byte = 0;
  const char* const end = rest.data() + std::min(most, rest.size());
  const char* const last = std::from_chars(rest.data(), end, byte, base).ptr;
  if (last == rest.data()) return std::nullopt;
  rest.remove_prefix(static_cast<std::size_t>(last - rest.data()));
  return static_cast<char>(byte);
}

/// Takes the byte that an escape stands for, whose backslash has been taken. Empty for one that no
/// text format has. Source: protobuf, io/tokenizer.cc, ParseStringAppend; the escapes of C.
std::optional<char> take_escape(std::string_view& rest) {
  if (const std::optional<char> byte = take_byte(rest, 8, 3)) return byte;
  constexpr std::string_view kNames = "abfnrtv\\'\"?", kBytes = "\a\b\f\n\r\t\v\\'\"?";
  if (rest.empty()) return std::nullopt;
  const char name = rest.front();
  rest.remove_prefix(1);
  if (name == 'x' || name == 'X') return take_byte(rest, 16, 2);
  const std::size_t at = kNames.find(name);
  return at == std::string_view::npos ? std::nullopt : std::optional(kBytes[at]);
}

/// Returns the text with which `rest` begins, up to its quotation mark; empty if it is none.
std::optional<std::string> unquoted(std::string_view rest) {
  std::string text;
  while (!rest.empty()) {
    const char c = rest.front();
    rest.remove_prefix(1);
    if (c == '"') return text;
    const std::optional<char> byte = c == '\\' ? take_escape(rest) : c;
    if (!byte) return std::nullopt;
    text += *byte;
  }
  return std::nullopt;
}

}  // namespace

void write_bundle_state(const fs::path& directory, const std::string& name) {
  const std::string text = fmt::format(
      "model_checkpoint_path: {0}\nall_model_checkpoint_paths: {0}\n", text_format_of(name));
  if (std::ssize(text) > kMaxStateBytes)
    throw ValueError(fmt::format("write_bundle_state: the name must take at most {} bytes, got {}",
                                 kMaxStateBytes, text.size()));
  checkpoint::NewFile file(checkpoint::local_files(), directory / kStateName);
  file.write(checkpoint::bytes_of(text));
  file.commit();
}

std::optional<fs::path> latest_bundle(const fs::path& directory) {
  checkpoint::FileSystem& files = checkpoint::local_files();
  const fs::path path = directory / kStateName;
  if (!files.stat(path)) return std::nullopt;
  const std::string text = checkpoint::read_file(files, path, kMaxStateBytes);
  std::size_t at = text.find(kLatestField);
  while (at != std::string::npos && at > 0 && text[at - 1] != '\n')  // not all_model_...
    at = text.find(kLatestField, at + 1);
  const auto name = at == std::string::npos
                        ? std::nullopt
                        : unquoted(std::string_view(text).substr(at + kLatestField.size()));
  if (!name || name->empty())
    throw DataLoss(
        fmt::format("{}: cannot read: there is no model_checkpoint_path", path.string()));
  const fs::path prefix = directory / *name;
  if (!files.stat(formats::index_path(prefix))) return std::nullopt;
  return prefix;
}

}  // namespace embertable
