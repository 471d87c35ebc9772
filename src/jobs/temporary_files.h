#pragma once

// For tests: a folder of its own that goes when the test ends.

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace embertable::jobs {

class TemporaryFiles {
 public:
  TemporaryFiles() {
    std::string path = (std::filesystem::temp_directory_path() / "embertable-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    root_ = path;
  }
  ~TemporaryFiles() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  TemporaryFiles(const TemporaryFiles&) = delete;
  TemporaryFiles& operator=(const TemporaryFiles&) = delete;

  std::string path(const std::string& name = "") const { return (root_ / name).string(); }

  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }

  std::string write_compressed(const std::string& name, const std::string& content) const {
    const gzFile file = gzopen(path(name).c_str(), "wb");
    gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
    gzclose(file);
    return path(name);
  }

 private:
  std::filesystem::path root_;
};

/// What a call throws as an Error, with `root` cut out of the text.
template <class Error, class Call>
std::string refusal(const std::string& root, Call call) {
  try {
    call();
  } catch (const Error& error) {
    std::string text = error.what();
    for (std::size_t at; !root.empty() && (at = text.find(root)) != std::string::npos;)
      text.erase(at, root.size());
    return text;
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace embertable::jobs
