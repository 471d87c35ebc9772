"""What src/exchange/mpi/*_abi.h says of each MPI's ABI is what its own header says, and nothing is linked with MPI.

    abi_headers_test.py COMPILER FILE...   compares with the headers of this machine, and of the virtual environments
                                           that EMBERTABLE_MPI_HEADERS names; no FILE needs a library of MPI

An ABI that no header is found for is named; its constants cannot change, since programs are linked against them.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# ABI -> its header, where Debian has it, and what tells it from the header of another MPI.
HEADERS = {
    "openmpi": ("mpi.h", ["/usr/lib/*/openmpi/include"], "OMPI_MAJOR_VERSION"),
    "mpich": ("mpi.h", ["/usr/include/*/mpich", "/usr/include/mpich-*"], "MPICH_VERSION"),
    "standard": ("mpi_abi.h", [], "MPI_ABI_VERSION"),
}

NUMBERS = """
static_assert(ours::kAnySource == MPI_ANY_SOURCE);
static_assert(ours::kUndefined == MPI_UNDEFINED);
static_assert(ours::kThreadSerialized == MPI_THREAD_SERIALIZED);
static_assert(ours::kMaxErrorString >= MPI_MAX_ERROR_STRING);
static_assert(ours::kMaxLibraryVersion >= MPI_MAX_LIBRARY_VERSION_STRING);
static_assert(MPI_SUCCESS == 0);

static_assert(sizeof(ours::Comm) == sizeof(MPI_Comm));
static_assert(sizeof(ours::Datatype) == sizeof(MPI_Datatype));
static_assert(sizeof(ours::Errhandler) == sizeof(MPI_Errhandler));
static_assert(sizeof(ours::Request) == sizeof(MPI_Request));
static_assert(sizeof(ours::Status) == sizeof(MPI_Status));
static_assert(alignof(ours::Status) == alignof(MPI_Status));
static_assert(offsetof(ours::Status, MPI_SOURCE) == offsetof(MPI_Status, MPI_SOURCE));
static_assert(offsetof(ours::Status, MPI_TAG) == offsetof(MPI_Status, MPI_TAG));
static_assert(offsetof(ours::Status, MPI_ERROR) == offsetof(MPI_Status, MPI_ERROR));

// The calls of calls.inl, with this header's handles in place of ours.
template <class Function> using Pointer = Function*;
#define SAME(name, ...) static_assert(std::is_same_v<decltype(&name), Pointer<int(__VA_ARGS__)>>, #name)
SAME(MPI_Comm_dup, MPI_Comm, MPI_Comm*);
SAME(MPI_Comm_free, MPI_Comm*);
SAME(MPI_Comm_rank, MPI_Comm, int*);
SAME(MPI_Comm_set_errhandler, MPI_Comm, MPI_Errhandler);
SAME(MPI_Comm_size, MPI_Comm, int*);
SAME(MPI_Error_string, int, char*, int*);
SAME(MPI_Finalize);
SAME(MPI_Finalized, int*);
SAME(MPI_Get_library_version, char*, int*);
SAME(MPI_Init_thread, int*, char***, int, int*);
SAME(MPI_Initialized, int*);
SAME(MPI_Iprobe, int, int, MPI_Comm, int*, MPI_Status*);
SAME(MPI_Irecv, void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
SAME(MPI_Isend, const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
SAME(MPI_Query_thread, int*);
SAME(MPI_Testsome, int, MPI_Request*, int*, int*, MPI_Status*);
"""

HANDLES = {
    # The handles are the addresses of these objects.
    "openmpi": """
template <class Object> bool same(const void* ours_, Object& theirs) { return ours_ == &theirs; }
bool all_same() {
  return same(MPI_COMM_WORLD, ompi_mpi_comm_world) && same(MPI_COMM_NULL, ompi_mpi_comm_null) &&
         same(MPI_BYTE, ompi_mpi_byte) && same(MPI_REQUEST_NULL, ompi_request_null) &&
         same(MPI_ERRORS_RETURN, ompi_mpi_errors_return);
}
static_assert(std::is_same_v<decltype(&MPI_Comm_f2c), MPI_Comm (*)(int)>);
""",
    "mpich": """
static_assert(ours::Handles().comm_world == MPI_COMM_WORLD);
static_assert(ours::Handles().comm_null == MPI_COMM_NULL);
static_assert(ours::Handles().byte == MPI_BYTE);
static_assert(ours::Handles().request_null == MPI_REQUEST_NULL);
static_assert(ours::Handles().errors_return == MPI_ERRORS_RETURN);
static_assert(MPI_Comm_f2c(7) == 7);
""",
}


def numbers_of_standard(header):
    """The standard's header casts numbers to pointers, which no constant expression may."""
    checks = ""
    for ours, theirs in (("kCommWorld", "MPI_COMM_WORLD"), ("kCommNull", "MPI_COMM_NULL"), ("kByte", "MPI_BYTE"),
                         ("kRequestNull", "MPI_REQUEST_NULL"), ("kErrorsReturn", "MPI_ERRORS_RETURN")):
        line = next(line for line in header.read_text().splitlines() if line.startswith(f"#define {theirs} "))
        checks += f"static_assert(ours::{ours} == {line.rsplit(')', 2)[1]});\n"
    return checks + "static_assert(std::is_same_v<decltype(&MPI_Comm_fromint), MPI_Comm (*)(int)>);\n"


def find_headers(abi):
    name, folders, mark = HEADERS[abi]
    places = [path for folder in folders for path in pathlib.Path("/").glob(folder[1:])]
    places += [pathlib.Path(place) / "include" for place in os.environ.get("EMBERTABLE_MPI_HEADERS", "").split(":") if place]
    for place in places:
        header = place / name
        if header.exists() and f"#define {mark}" in header.read_text():
            yield header


def compare(compiler, abi, header):
    text = "#include <cstddef>\n#include <cstdint>\n#include <string>\n#include <type_traits>\n"
    text += f'#include "exchange/mpi/{abi}_abi.h"\n#include "{header}"\n'
    text += f"namespace ours = embertable::mpi::{abi};\n" + NUMBERS
    text += numbers_of_standard(header) if abi == "standard" else HANDLES[abi]
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / f"{abi}.cc"
        source.write_text(text)
        includes = [f"-I{ROOT / 'src'}", f"-I{ROOT / 'include'}", f"-I{header.parent}"]
        return subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX",
                               *includes, source], capture_output=True, text=True).stderr


def links_mpi(file):
    needed = subprocess.run(["readelf", "--dynamic", file], capture_output=True, text=True, check=True).stdout
    return [line for line in needed.splitlines() if "NEEDED" in line and ("libmpi" in line or "libopen-" in line)]


def main():
    compiler, *files = sys.argv[1:]
    problems = 0
    for abi in HEADERS:
        headers = list(find_headers(abi))
        for header in headers:
            errors = compare(compiler, abi, header)
            problems += bool(errors)
            print(f"{abi}: {header}: {errors or 'the same'}")
        if not headers:
            print(f"{abi}: no header of it is installed")
    for file in files:
        lines = links_mpi(file)
        problems += bool(lines)
        print(f"{file}: {lines or 'needs no MPI'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
