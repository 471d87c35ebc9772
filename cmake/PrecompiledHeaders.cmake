# embertable_precompiled(<target>)
#
# Precompiles the headers that most of the target's sources share, which saves at least a third of the compile time under
# sanitizers. For targets that are not optimized. The preset `dev` does not, so that a missing include is found.
function(embertable_precompiled target)
  if(NOT TARGET precompiled_headers)
    return()
  endif()
  target_precompile_headers(${target} REUSE_FROM precompiled_headers)
  embertable_lets_ccache_precompile(${target})
endfunction()

# Compiled headers contain the path of the build folder. This makes ccache use a checksum of ours instead of their
# bytes.
function(embertable_lets_ccache_precompile target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  else()
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  endif()
  if(CCACHE)
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER
      "env;CCACHE_SLOPPINESS=pch_defines,time_macros;CCACHE_PCH_EXTSUM=1;${CCACHE}")
  endif()
endfunction()

# Writes the checksum of the headers' contents, as this compiler reads them. Without it, ccache reads the compiled
# headers.
function(embertable_write_checksum)
  list(TRANSFORM ARGN PREPEND "#include " OUTPUT_VARIABLE lines)
  list(JOIN lines "\n" lines)
  file(CONFIGURE OUTPUT precompiled_headers.h CONTENT "${lines}\n")
  string(TOUPPER "CMAKE_CXX_FLAGS_${CMAKE_BUILD_TYPE}" of_type)
  separate_arguments(options UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${${of_type}}")
  set(read ${CMAKE_CXX_COMPILER} -std=c++20 ${options} -x c++ ${CMAKE_CURRENT_BINARY_DIR}/precompiled_headers.h)
  execute_process(COMMAND ${read} -M OUTPUT_VARIABLE files ERROR_QUIET)
  string(REGEX MATCHALL "/[^ \\\n]+" files "${files}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  execute_process(COMMAND ${read} -E -P RESULT_VARIABLE failed OUTPUT_VARIABLE text ERROR_QUIET)
  if(NOT failed)
    string(SHA256 sum "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${EMBERTABLE_SANITIZE} ${options} ${text}")
    foreach(suffix pch gch)
      file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/precompiled_headers.dir/cmake_pch.hxx.${suffix}.sum ${sum})
    endforeach()
  endif()
endfunction()

if(EMBERTABLE_TESTS AND EMBERTABLE_UNITY AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS
   AND (EMBERTABLE_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Release"))
  set(headers
    <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <cstring> <functional> <limits> <map> <memory> <mutex>
    <numeric> <optional> <random> <set> <span> <string> <string_view> <thread> <utility> <variant> <vector>
    <fmt/format.h> <gmock/gmock.h> <gtest/gtest.h>)
  file(CONFIGURE OUTPUT precompiled_headers.cc CONTENT "")
  add_library(precompiled_headers OBJECT ${CMAKE_CURRENT_BINARY_DIR}/precompiled_headers.cc)
  target_link_libraries(precompiled_headers PRIVATE embertable_headers GTest::gmock Threads::Threads)
  target_compile_options(precompiled_headers PRIVATE ${EMBERTABLE_NOT_OPTIMIZED})
  target_precompile_headers(precompiled_headers PRIVATE ${headers})
  embertable_lets_ccache_precompile(precompiled_headers)
  embertable_write_checksum(${headers})
endif()
