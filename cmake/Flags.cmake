# Compiler flags of every source of the project.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release or Debug" FORCE)
endif()

# The same bits on every machine need no fused multiply-add, and never -march, -ffast-math or its parts. Wider
# instructions are only in pragma regions of the kernels and are chosen at run time.
add_compile_options(-ffp-contract=off -fno-math-errno)

add_compile_options(
  -Wall -Wextra -Werror
  -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wextra-semi -Wundef -Wvla -Wpointer-arith
  -Wcast-qual -Wimplicit-fallthrough
  -Wno-missing-field-initializers # designated initializers leave the rest to its defaults
  -Wno-psabi)                     # vectors wider than the baseline stay within one file
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-restrict) # gcc 12 wrongly warns of `"text" + std::string` (PR 105651)
  # gcc begins to look for garbage at 128 MiB, which takes a tenth of the time of units of several sources. One that
  # took 1.3 GB of memory takes 1.6.
  add_compile_options(--param=ggc-min-heapsize=1048576)
endif()

if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
endif()

# Whether this machine runs kernels of the level avx512.
set(avx512_here ON)
if(EXISTS /proc/cpuinfo)
  file(STRINGS /proc/cpuinfo avx512_flags REGEX "^flags.* avx512bw .*avx512vl" LIMIT_COUNT 1)
  if(NOT avx512_flags)
    set(avx512_here OFF)
  endif()
endif()
set(EMBERTABLE_AVX512 ${avx512_here} CACHE BOOL "Compile what only this machine runs for AVX-512 too")

if(EMBERTABLE_SANITIZE)
  if(NOT EMBERTABLE_AVX512)
    add_compile_definitions(EMBERTABLE_WITHOUT_AVX512)
  endif()
  set(sanitize -fsanitize=${EMBERTABLE_SANITIZE} -fno-omit-frame-pointer)
  add_compile_options(${sanitize} -fno-sanitize-recover=all)
  add_link_options(${sanitize})
  # Dozens of programs with debug information: lld takes a quarter of the time of the system's linker.
  find_program(LLD NAMES ld.lld-14 ld.lld)
  if(LLD AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    add_link_options(-fuse-ld=${LLD})
  endif()
endif()

# One cache serves every clone and work tree: paths in the checkout count as relative ones.
find_program(CCACHE ccache)
if(CCACHE)
  set(CCACHE env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=true ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
