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
# With EMBERTABLE_UNITY, as in the presets `release`, `asan` and `tsan`, up to 24 sources of a target are one unit:
# headers are read and inline functions generated only once. Two sources of a folder therefore share no names, not even
# those without linkage. The preset `dev` compiles each source by itself, so that a missing include is found and a
# changed source is compiled quickly; `./dev check` does so too.
function(embertable_unity target)
  if(EMBERTABLE_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 24)
  endif()
endfunction()

# embertable_sources_of(<variable> <folder>...)
#
# Sets the variable to the sources of these libraries, for a target that compiles them again.
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

# A test for every binary whose tests try all SIMD levels of this CPU. It reports the others as skipped.
set(EMBERTABLE_EVERY_LEVEL ${PROJECT_SOURCE_DIR}/testing/every_level_test.cc)

# embertable_tests(<name> <source>... [LABELS label...] [LIBS library...])
#
# Makes one GoogleTest binary, bin/<name>_test, and one entry of ctest. It links the whole core, including hidden
# symbols. With the label `threads` it also runs under the thread sanitizer.
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
  target_link_libraries(${test} PRIVATE ${arg_LIBS} embertable_testing embertable_core GTest::gmock GTest::gtest_main)
  embertable_unity(${test})
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    embertable_is_not_optimized(${test}) # a test's own code is not what is shipped or measured
  else()
    embertable_drives_the_library(${test})
  endif()
  if(EMBERTABLE_SANITIZE MATCHES undefined)
    # A tenth of the compile time. What reads or writes such memory, the address sanitizer finds too.
    target_compile_options(${test} PRIVATE -fno-sanitize=null,object-size)
  endif()
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

# embertable_runs_once(<target>)
#
# For code that a program runs once, such as its command line: -O1 takes 0.7 of the time to compile.
function(embertable_runs_once target)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

# embertable_is_not_optimized(<target>)
#
# That halves the compile time, and all sources of such targets start with the same headers (PrecompiledHeaders.cmake).
set(EMBERTABLE_NOT_OPTIMIZED -O0 -fPIC)
function(embertable_is_not_optimized target)
  target_compile_options(${target} PRIVATE ${EMBERTABLE_NOT_OPTIMIZED})
  embertable_precompiled(${target})
endfunction()

# embertable_drives_the_library(<target>)
#
# For code that leaves the work to others: tests, and folders of the library without loops over rows or bytes. It is not
# optimized under sanitizers. Fuzzers run optimized code.
function(embertable_drives_the_library target)
  if(EMBERTABLE_SANITIZE AND NOT EMBERTABLE_FUZZ)
    embertable_is_not_optimized(${target})
  endif()
endfunction()

# embertable_kernels(<source>...)
#
# Compiles sources of this folder with -O3. Checking every access of unrolled vectors takes minutes to compile. Under
# sanitizers, address checks are therefore calls, and checks of undefined behaviour that look at every pointer are left
# out, most of whose finds the address sanitizer has too.
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

# embertable_kernel_unit(<variable> <unit> <source>...)
#
# Appends kernels of this folder to the variable: with EMBERTABLE_UNITY as the one unit <unit>.cc, since most of the time
# of a small kernel goes to the headers of intrinsics, else one by one. Their level bodies share no names.
function(embertable_kernel_unit variable unit)
  set(kernels ${ARGN})
  if(EMBERTABLE_UNITY)
    list(TRANSFORM kernels REPLACE "(.+)" "#include \"${CMAKE_CURRENT_SOURCE_DIR}/\\1\"\n" OUTPUT_VARIABLE includes)
    list(JOIN includes "" includes)
    set(kernels ${CMAKE_CURRENT_BINARY_DIR}/${unit}.cc)
    file(CONFIGURE OUTPUT ${kernels} CONTENT "${includes}")
  endif()
  embertable_kernels(${kernels})
  set(${variable} ${${variable}} ${kernels} PARENT_SCOPE)
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
# Adds a test of the repository or of built files, which needs only Python's standard library.
function(embertable_script_test script)
  cmake_path(GET script STEM name)
  add_test(NAME ${name} COMMAND_EXPAND_LISTS
           COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/${script} ${ARGN})
  set_tests_properties(${name} PROPERTIES TIMEOUT 600)
endfunction()

# Adds the include paths: include/ (`embertable/config.h`), src/ (`base/memory.h`), and for programs and tests the root
# (`testing/executor.h`). tests/layers_test.py says who may include what.
function(embertable_includes target)
  target_include_directories(${target} PRIVATE
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE embertable_headers Threads::Threads)
endfunction()
