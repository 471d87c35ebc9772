# `cmake --install build --prefix DIR` installs the command line, the shared library, the public headers and the package
# that find_package(embertable) reads.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/embertable)
install(TARGETS embertable)
install(TARGETS embertable_library EXPORT embertable_targets
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/embertable TYPE INCLUDE)
install(EXPORT embertable_targets NAMESPACE embertable:: DESTINATION ${package_dir}
        FILE embertable-config.cmake)

write_basic_package_version_file(embertable-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/embertable-config-version.cmake DESTINATION ${package_dir})
