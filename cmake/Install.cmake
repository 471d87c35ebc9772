# `cmake --install build --prefix DIR` installs the command line, the shared library, the public headers and the package
# that find_package(embertable) reads, a file for pkg-config, a manual page and completion for shells, and the licence,
# documents and examples.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/embertable)
install(TARGETS embertable)
install(TARGETS embertable_library EXPORT embertable_targets
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/embertable TYPE INCLUDE)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
        PATTERN data EXCLUDE)
file(RELATIVE_PATH prefix_from_here /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_CURRENT_LIST_DIR}/embertable.pc.in embertable.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/embertable.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The manual page and the scripts for shells are what the command prints.
foreach(printed "manual|man/man1/embertable.1" "completion bash|bash-completion/completions/embertable"
        "completion zsh|zsh/site-functions/_embertable" "completion fish|fish/vendor_completions.d/embertable.fish")
  string(REPLACE "|" ";" printed "${printed}")
  list(GET printed 0 words)
  list(GET printed 1 file)
  set(file "\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATAROOTDIR}/${file}")
  install(CODE "
    get_filename_component(folder \"${file}\" DIRECTORY)
    file(MAKE_DIRECTORY \"\${folder}\")
    execute_process(COMMAND $<TARGET_FILE:embertable> ${words} OUTPUT_FILE \"${file}\" COMMAND_ERROR_IS_FATAL ANY)")
endforeach()
install(EXPORT embertable_targets NAMESPACE embertable:: DESTINATION ${package_dir}
        FILE embertable-config.cmake)

write_basic_package_version_file(embertable-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/embertable-config-version.cmake DESTINATION ${package_dir})
