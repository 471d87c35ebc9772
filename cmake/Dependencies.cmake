# External libraries. None is visible in a public header, and an installed Embertable needs only zlib and zstd.

find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)

# These are used as headers alone, whatever else a distribution packs with them. The templates of {fmt} 9 are compiled
# once, in src/base/fmt_library.cc.
add_library(embertable_headers INTERFACE)
target_compile_definitions(embertable_headers INTERFACE XXH_INLINE_ALL)
foreach(header CLI/CLI.hpp fmt/format.h nlohmann/json.hpp toml++/toml.h xxhash.h)
  string(MAKE_C_IDENTIFIER "INCLUDE_DIR_${header}" dir)
  find_path(${dir} ${header} REQUIRED)
  target_include_directories(embertable_headers SYSTEM INTERFACE ${${dir}})
endforeach()
file(STRINGS ${INCLUDE_DIR_fmt_format_h}/fmt/core.h fmt_version REGEX "define FMT_VERSION ")
string(REGEX MATCH "[0-9]+$" fmt_version "${fmt_version}")
if(fmt_version LESS 90000 OR NOT fmt_version LESS 100000)
  target_compile_definitions(embertable_headers INTERFACE FMT_HEADER_ONLY)
endif()

# The jobs need zstd.
find_path(ZSTD_INCLUDE_DIR zstd.h REQUIRED)
find_library(ZSTD_LIBRARY zstd REQUIRED)

# The tensor bundle needs snappy. If there is a static archive that may become a part of shared libraries, it is used,
# so that nothing installed needs snappy.
find_path(SNAPPY_INCLUDE_DIR snappy.h REQUIRED)
find_library(SNAPPY_LIBRARY NAMES libsnappy-shared.a snappy REQUIRED)

if(EMBERTABLE_TESTS)
  find_package(GTest REQUIRED)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
endif()
