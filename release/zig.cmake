# Compiles for glibc 2.28 with the compiler of the Python package `ziglang`, which brings its own C and C++ libraries.
# release/build_wheels.py writes the launchers that this file names into EMBERTABLE_WHEEL_DIR.

list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES EMBERTABLE_WHEEL_DIR)
set(CMAKE_C_COMPILER ${EMBERTABLE_WHEEL_DIR}/bin/clang)
set(CMAKE_CXX_COMPILER ${EMBERTABLE_WHEEL_DIR}/bin/clang++)
list(PREPEND CMAKE_PREFIX_PATH ${EMBERTABLE_WHEEL_DIR}/prefix)
set(CMAKE_EXE_LINKER_FLAGS_INIT -s)
set(CMAKE_MODULE_LINKER_FLAGS_INIT -s)
