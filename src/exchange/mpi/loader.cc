#include "exchange/mpi/loader.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string_view>
#include <vector>

#include "embertable/errors.h"
#include "exchange/mpi/calls_lock.h"

namespace embertable {
namespace mpi {
namespace {

/// Names of MPI libraries. Open MPI has had the first since version 1.10; MPICH, Intel MPI and Cray
/// have the second; the third is Debian's MPICH; the others are of the standard ABI.
constexpr std::array kOpenMpiNames = {"libmpi.so.40"};
constexpr std::array kMpichNames = {"libmpi.so.12", "libmpich.so.12", "libmpi_abi.so.1",
                                    "libmpi_abi.so.0"};

/// What a launcher puts into the environment of every process, and whose it is.
struct Variable {
  const char* name;
  const char* processes;  ///< null: it does not say
  bool openmpi;
  bool mpich;
};
constexpr std::array kVariables = {
    Variable{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", true, false},
    Variable{"PMI_RANK", "PMI_SIZE", false, true},
    Variable{"PMIX_RANK", nullptr, true, true},
    Variable{"SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_TASKS", true, true},
};

const Variable* launcher_variable() {
  for (const Variable& variable : kVariables)
    if (std::getenv(variable.name) != nullptr) return &variable;
  return nullptr;
}

std::string launcher_variables() {
  std::string names;
  for (const Variable& variable : kVariables)
    names += (names.empty() ? "" : ", ") + std::string(variable.name);
  return names;
}

/// A library that the loader of programs has opened.
struct SharedObject {
  void* handle;
  std::string name;
};

int list_mpi_library(dl_phdr_info* object, std::size_t /*size*/, void* names) {
  const std::string_view path = object->dlpi_name;
  if (path.substr(path.rfind('/') + 1).starts_with("libmpi"))
    static_cast<std::vector<std::string>*>(names)->emplace_back(path);
  return 0;
}

/// Lists the MPI libraries of this process, also those that a Python module loaded for itself. A
/// library that only stands on another, such as that of Fortran, is not listed.
std::vector<SharedObject> loaded_libraries() {
  std::vector<SharedObject> all;
  std::vector<std::string> names;
  ::dl_iterate_phdr(list_mpi_library, &names);
  for (const std::string& name : names) {
    void* const handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    Dl_info where{};
    const void* const init = ::dlsym(handle, "MPI_Init");
    if (init != nullptr && ::dladdr(init, &where) != 0 && name == where.dli_fname)
      all.push_back({handle, name});
  }
  if (all.empty() && ::dlsym(RTLD_DEFAULT, "MPI_Init") != nullptr)
    all.push_back({RTLD_DEFAULT, "this program"});
  return all;
}

/// Finds out the library's ABI, by what only libraries with this ABI have.
std::unique_ptr<Library> open(const SharedObject& object) {
  const Symbols symbols(object.handle, object.name);
  if (symbols.find("ompi_mpi_comm_world") != nullptr) return open_openmpi(symbols);
  int (*abi_version)(int*, int*) = nullptr;
  if (symbols.find("MPI_Abi_get_version") != nullptr) {
    symbols.get("MPI_Abi_get_version", abi_version);
    int major = -1;
    int minor = -1;  // a library of another ABI leaves them so
    if (abi_version(&major, &minor) == 0 && major >= 1) return open_standard(symbols);
  }
  std::unique_ptr<Library> mpich = open_mpich(symbols);
  const std::string version = mpich->version();
  for (const char* const name : {"MPICH", "Intel", "MVAPICH", "CRAY"})
    if (version.find(name) != std::string::npos) return mpich;
  throw IoError("mpi exchange: " + object.name +
                " has an ABI that is neither Open MPI's, nor MPICH's, " +
                "nor the standard one; it calls itself '" + version + "'");
}

/// Opens the library with this name or path. On failure adds why to `tried`.
std::unique_ptr<Library> open_file(const std::string& file, std::string& tried) {
  // Components of MPI libraries that are loaded later look for the library's symbols.
  void* const handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle != nullptr) return open({handle, file});
  tried += (tried.empty() ? "" : "; ") + std::string(::dlerror());
  return nullptr;
}

/// Returns the folders where the libraries of this process's ancestors may be, nearest first: one
/// of them is the launcher, whose library it is to be.
std::vector<std::string> launcher_folders() {
  std::vector<std::string> folders;
  std::error_code failed;
  for (int process = ::getppid(), steps = 0; process > 1 && steps < 8; ++steps) {
    const std::string entry = "/proc/" + std::to_string(process);
    const std::filesystem::path program = std::filesystem::read_symlink(entry + "/exe", failed);
    if (!failed) folders.push_back((program.parent_path().parent_path() / "lib").string());
    std::ifstream stat(entry + "/stat");
    std::string text;
    std::getline(stat, text);
    const std::size_t name_ends = text.rfind(')');  // "pid (name) state parent ..."
    if (name_ends == std::string::npos || name_ends + 4 >= text.size()) break;
    process = std::atoi(text.c_str() + name_ends + 4);
  }
  return folders;
}

std::unique_ptr<Library> find_library() {
  std::unique_ptr<Library> in_process;
  for (const SharedObject& object : loaded_libraries()) {
    std::unique_ptr<Library> one = open(object);
    const bool used = one->initialized();
    if (!in_process || used) in_process = std::move(one);
    if (used) break;
  }
  if (in_process) return in_process;

  std::string tried;
  if (const char* const file = std::getenv("EMBERTABLE_MPI_LIBRARY");
      file != nullptr && *file != 0) {
    if (std::unique_ptr<Library> named = open_file(file, tried)) return named;
    throw IoError("mpi exchange: EMBERTABLE_MPI_LIBRARY: " + tried);
  }
  const Variable* const launcher = launcher_variable();
  if (launcher == nullptr) {
    throw StateError("mpi exchange: no launcher started this process (it has none of " +
                     launcher_variables() +
                     "), and it has no MPI library. Start it with mpirun or srun, or name the "
                     "library in EMBERTABLE_MPI_LIBRARY");
  }
  std::vector<std::string> names;
  if (launcher->openmpi) names.insert(names.end(), kOpenMpiNames.begin(), kOpenMpiNames.end());
  if (launcher->mpich) names.insert(names.end(), kMpichNames.begin(), kMpichNames.end());
  for (const std::string& folder : launcher_folders()) {
    for (const std::string& name : names) {
      const std::string file = folder + "/" + name;
      if (::access(file.c_str(), R_OK) != 0) continue;
      if (std::unique_ptr<Library> beside = open_file(file, tried)) return beside;
    }
  }
  for (const std::string& name : names)
    if (std::unique_ptr<Library> known = open_file(name, tried)) return known;
  throw IoError("mpi exchange: a launcher started this process (" + std::string(launcher->name) +
                " is set), but its MPI library was not found: " + tried +
                ". Name it in EMBERTABLE_MPI_LIBRARY");
}

}  // namespace

std::mutex& calls() noexcept {
  static std::mutex one;
  return one;
}

void* Symbols::find(const char* symbol) const noexcept { return ::dlsym(handle_, symbol); }

void* Symbols::object(const char* symbol) const {
  void* const seen_by_all = ::dlsym(RTLD_DEFAULT, symbol);
  const bool library_is_seen = ::dlsym(RTLD_DEFAULT, "MPI_Init") == find("MPI_Init");
  return seen_by_all != nullptr && library_is_seen ? seen_by_all : address(symbol);
}

void* Symbols::address(const char* symbol) const {
  void* const found = find(symbol);
  if (found == nullptr) throw IoError("mpi exchange: " + name_ + " has no " + symbol);
  return found;
}

Library& library() {
  static std::mutex finding;
  static Library* found = nullptr;  // never deleted: other objects call it until the process ends
  const std::lock_guard lock(finding);
  if (found == nullptr) found = find_library().release();
  return *found;
}

}  // namespace mpi

std::optional<MpiLauncher> find_mpi_launcher() {
  const mpi::Variable* const variable = mpi::launcher_variable();
  if (variable == nullptr) return std::nullopt;
  MpiLauncher launcher{variable->name, std::nullopt};
  if (const char* const count =
          variable->processes != nullptr ? std::getenv(variable->processes) : nullptr;
      count != nullptr && std::atoi(count) > 0)
    launcher.processes = std::atoi(count);
  return launcher;
}

}  // namespace embertable
