#include "apps/doctor/folder.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <utility>

#include "embertable/errors.h"

namespace embertable::doctor {
namespace {

namespace fs = std::filesystem;
using checkpoint::Directory;

/// Returns the type of the file system that has this path, by /proc/self/mountinfo.
std::string type_of(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return "";
  const std::string device =
      std::to_string(major(status.st_dev)) + ":" + std::to_string(minor(status.st_dev));
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string id, parent, mounted, word;
    words >> id >> parent >> mounted;
    if (mounted != device) continue;
    while (words >> word && word != "-") continue;
    words >> word;
    return word;
  }
  return "";
}

class Trial {
 public:
  Trial(Directory& directory, fs::path path, std::vector<Tried>& tried)
      : directory_(directory), path_(std::move(path)), tried_(tried) {}

  void run() {
    attempt("write", [&] { write("a"); });
    attempt("flush files", [&] { write("b"); });
    attempt("rename", [&] { directory_.rename("b", "c"); });
    attempt("rename folders", [&] {
      directory_.make_directory("step.new");
      directory_.rename("step.new", "step");
    });
    attempt("flush folders", [&] { directory_.sync(); });
    attempt("lock", [&] { lock_and_be_refused(); });
    attempt("follow links", [&] { follow_link(); });
    attempt("map", [&] { map("a"); });
  }

 private:
  void attempt(const char* what, const std::function<void()>& act) {
    try {
      act();
      tried_.push_back({what, ""});
    } catch (const std::exception& error) {
      tried_.push_back({what, error.what()});
    }
  }

  void write(const std::string& name) {
    const std::unique_ptr<checkpoint::File> file = directory_.create(name);
    file->write(checkpoint::bytes_of(name));
    if (name == "b") file->sync();
  }

  void lock_and_be_refused() {
    const std::unique_ptr<checkpoint::FileLock> held = directory_.lock("lock");
    try {
      const std::unique_ptr<checkpoint::FileLock> second = directory_.lock("lock");
    } catch (const StateError&) {
      return;
    }
    throw IoError("a second lock was given while the first one is held");
  }

  void follow_link() {
    fs::create_directory_symlink("step", path_ / "link");
    if (directory_.enter("link") == nullptr) throw IoError("a link to a folder is not followed");
  }

  void map(const std::string& name) {
    const std::unique_ptr<checkpoint::File> file = directory_.open_file(name);
    if (!file) throw IoError(name + ": it is missing");
    const std::unique_ptr<checkpoint::FileMap> map = file->map();
    if (std::ssize(map->bytes()) != 1) throw IoError(name + ": the map has another size");
  }

  Directory& directory_;
  const fs::path path_;
  std::vector<Tried>& tried_;
};

}  // namespace

Folder look_at_folder(const fs::path& path, checkpoint::FileSystem& files) {
  Folder folder{.path = path, .type = type_of(path), .free_bytes = 0, .unusable = "", .tried = {}};
  std::error_code none;
  const fs::space_info space = fs::space(path, none);
  if (!none) folder.free_bytes = static_cast<std::int64_t>(space.available);
  const std::string name = ".embertable-doctor-" + std::to_string(::getpid());
  try {
    const std::unique_ptr<Directory> opened = files.open_directory(path);
    opened->make_directory(name);
    if (const std::unique_ptr<Directory> inner = opened->open(name))
      Trial(*inner, path / name, folder.tried).run();
    checkpoint::remove_all(*opened, name);
  } catch (const IoError& error) {
    folder.unusable = error.what();
  }
  return folder;
}

}  // namespace embertable::doctor
