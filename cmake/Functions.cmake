# embertable_sources(<folder> <source>...)
#
# Compiles the sources of a folder of src/ or apps/ into the object library embertable_<folder>, with `_` for `/`.
function(embertable_sources folder)
  string(REPLACE / _ folder "${folder}")
  if(NOT ARGN)
    return()
  endif()
  add_library(embertable_${folder} OBJECT ${ARGN})
  embertable_includes(embertable_${folder})
  embertable_unity(embertable_${folder})
endfunction()

# embertable_unity(<target>)
#
# With EMBERTABLE_UNITY, as in the presets `release`, `asan` and `tsan`, two dozen sources of a target are one unit:
# headers are read, and inline functions generated, once for all. Two sources of a folder therefore share no names, those
# without linkage included. The preset `dev` compiles each source by itself, so that one which forgot an include is found
# and one that changed is soon compiled; `./dev check` does so too.
function(embertable_unity target)
  if(EMBERTABLE_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 24)
  endif()
endfunction()

# embertable_sources_of(<variable> <folder>...)
#
# Sets the variable to the sources of these libraries, for a target that compiles them once more.
function(embertable_sources_of variable)
  set(all)
  foreach(folder ${ARGN})
    get_target_property(sources embertable_${folder} SOURCES)
    get_target_property(dir embertable_${folder} SOURCE_DIR)
    list(TRANSFORM sources PREPEND ${dir}/)
    list(APPEND all ${sources})
  endforeach()
  set(${variable} ${all} PARENT_SCOPE)
endfunction()

# embertable_tests(<name> <source>... [LABELS label...] [LIBS library...])
#
# One GoogleTest binary, bin/<name>_test, and one entry of ctest. It links the whole core, hidden symbols
# included. The label `threads` has it run under the thread sanitizer too.
add_custom_target(all_tests)
add_custom_target(threads_tests)
function(embertable_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LABELS;LIBS")
  if(NOT EMBERTABLE_TESTS OR NOT arg_UNPARSED_ARGUMENTS)
    return()
  endif()
  set(test ${name}_test)
  add_executable(${test} ${arg_UNPARSED_ARGUMENTS})
  embertable_includes(${test})
  target_compile_definitions(${test} PRIVATE EMBERTABLE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${test} PRIVATE ${arg_LIBS} embertable_testing embertable_core GTest::gmock GTest::gtest_main)
  embertable_unity(${test})
  embertable_drives_the_library(${test})
  add_test(NAME ${test} COMMAND ${test})
  set(timeout 600)
  if(EMBERTABLE_SANITIZE)
    set(timeout 1800)
  endif()
  set_tests_properties(${test} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${timeout})
  add_dependencies(all_tests ${test})
  if("threads" IN_LIST arg_LABELS)
    add_dependencies(threads_tests ${test})
  endif()
endfunction()

set(EMBERTABLE_DRIVER_OPTIONS -O0 -fPIC)

# embertable_drives_the_library(<target>)
#
# Code that leaves the work to the library: under sanitizers it is not optimized, which takes the compiler half as long,
# and all of it, in libraries and programs, starts with the same headers (PrecompiledHeaders.cmake).
function(embertable_drives_the_library target)
  if(EMBERTABLE_SANITIZE)
    target_compile_options(${target} PRIVATE ${EMBERTABLE_DRIVER_OPTIONS})
    embertable_precompiled(${target})
  endif()
endfunction()

# embertable_kernels(<source>...)
#
# Sources of this folder that are worth -O3. A check at every access of unrolled vectors takes minutes to compile:
# under sanitizers those of addresses are calls, and of undefined behaviour those are left out that the address
# sanitizer sees too.
function(embertable_kernels)
  set(options $<$<CONFIG:Release>:-O3>)
  if(EMBERTABLE_SANITIZE MATCHES undefined)
    list(APPEND options -O1 -fsanitize-address-outline-instrumentation
                        -fno-sanitize=null,alignment,object-size,pointer-overflow)
  elseif(EMBERTABLE_SANITIZE)
    list(APPEND options -O1)
  endif()
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "${options}" SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# embertable_runs_here(<target>)
#
# Compiles the kernels of a target that only this machine runs, such as a test, without a level that its processor has
# no instructions for.
function(embertable_runs_here target)
  if(NOT EMBERTABLE_AVX512)
    target_compile_definitions(${target} PRIVATE EMBERTABLE_WITHOUT_AVX512)
  endif()
endfunction()

# embertable_script_test(<script>.py [argument...])
#
# A test of the repository or of what was built, in Python's standard library.
function(embertable_script_test script)
  cmake_path(GET script STEM name)
  add_test(NAME ${name} COMMAND_EXPAND_LISTS
           COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/${script} ${ARGN})
  set_tests_properties(${name} PROPERTIES TIMEOUT 600)
endfunction()

# Includes are written from include/ (`embertable/config.h`), from src/ (`base/memory.h`), and in programs
# and tests from the root (`testing/executor.h`). tests/layers_test.py says who may include what.
function(embertable_includes target)
  target_include_directories(${target} PRIVATE
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE embertable_headers Threads::Threads)
endfunction()
