# embertable_precompiled(<target>)
#
# Under sanitizers, precompiles the headers that most of the target's sources share, which saves at least a third of the
# compile time. For targets of embertable_drives_the_library. Other builds do not, so that a missing include is found.
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
  execute_process(
    COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -D_GLIBCXX_ASSERTIONS -E -P -x c++
            ${CMAKE_CURRENT_BINARY_DIR}/precompiled_headers.h
    RESULT_VARIABLE failed OUTPUT_VARIABLE text ERROR_QUIET)
  if(NOT failed)
    string(SHA256 sum "${CMAKE_CXX_COMPILER_VERSION} ${EMBERTABLE_SANITIZE} ${CMAKE_CXX_FLAGS_DEBUG} ${text}")
    foreach(suffix pch gch)
      file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/precompiled_headers.dir/cmake_pch.hxx.${suffix}.sum ${sum})
    endforeach()
  endif()
endfunction()

if(EMBERTABLE_TESTS AND EMBERTABLE_UNITY AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
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
