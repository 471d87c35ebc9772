#include <fmt/format.h>

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

/// Returns the text with which `rest` begins, up to its quotation mark; empty if there is none.
std::optional<std::string> unquoted(std::string_view rest) {
  std::string text;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] == '"') return text;
    if (rest[i] != '\\' || i + 1 == rest.size()) {
      text += rest[i];
      continue;
    }
    const auto digit = [&](std::size_t at) {
      return at < rest.size() && rest[at] >= '0' && rest[at] <= '7' ? rest[at] - '0' : -1;
    };
    if (digit(i + 1) < 0) {
      text += rest[++i];
      continue;
    }
    int byte = 0;
    for (int k = 0; k < 3 && digit(i + 1) >= 0; ++k) byte = byte * 8 + digit(++i);
    text += static_cast<char>(byte);
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
