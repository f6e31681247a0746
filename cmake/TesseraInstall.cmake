# The files that `cmake --install` copies: libtessera with its headers, the plug-ins, the programs
# with their manual page and completion, and the files by which CMake and pkg-config find the
# library. docs/decisions/0045 gives the reasons. The components are those of the Debian packages
# (TesseraDebianPackages.cmake): `runtime` has the files to run models, `development` the additional
# files to build programs.
include(CMakePackageConfigHelpers)
set(runtime COMPONENT runtime)
set(development COMPONENT development)

# libtessera and the programs search for plug-ins here, relative to their own files
# (src/api/options/backends.cc).
set(TESSERA_PLUGIN_DIR lib/tessera)

install(TARGETS tessera EXPORT tessera-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ${runtime} NAMELINK_COMPONENT development
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/tessera DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} ${development}
  FILES_MATCHING PATTERN *.h)
set(libraries_of_static "")
if(TARGET tessera_static)
  install(TARGETS tessera_static EXPORT tessera-targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} ${development}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  get_target_property(libraries_of_static tessera_static INTERFACE_LINK_LIBRARIES)
  # Programs in C link with these, too.
  list(APPEND libraries_of_static stdc++ m)
  list(TRANSFORM libraries_of_static PREPEND -l REGEX "^[^-]")
  list(JOIN libraries_of_static " " libraries_of_static)
endif()
install(TARGETS tessera_worker RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} ${runtime})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} ${runtime})

get_property(plugins GLOBAL PROPERTY TESSERA_PLUGIN_TARGETS)
install(TARGETS ${plugins} LIBRARY DESTINATION ${TESSERA_PLUGIN_DIR} ${runtime})
if(TARGET tessera_openvino_compiler)
  install(TARGETS tessera_openvino_compiler
    LIBRARY DESTINATION ${TESSERA_PLUGIN_DIR}/openvino ${runtime})
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tessera)
install(EXPORT tessera-targets NAMESPACE tessera:: DESTINATION ${package_dir} ${development})
configure_package_config_file(
  cmake/tessera-config.cmake.in ${PROJECT_BINARY_DIR}/cmake/tessera-config.cmake
  INSTALL_DESTINATION ${package_dir} PATH_VARS TESSERA_PLUGIN_DIR CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/cmake/tessera-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/cmake/tessera-config.cmake
  ${PROJECT_BINARY_DIR}/cmake/tessera-config-version.cmake
  DESTINATION ${package_dir} ${development})

file(RELATIVE_PATH prefix_of_pc /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" prefix_of_pc "${prefix_of_pc}")
configure_file(cmake/tessera.pc.in ${PROJECT_BINARY_DIR}/cmake/tessera.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/cmake/tessera.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig ${development})

if(NOT TARGET tessera_program)
  return()
endif()
install(TARGETS tessera_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} ${runtime})

# The manual page and the completion of shells come from the options that the program has.
function(tessera_install_text kind folder file)
  set(output ${PROJECT_BINARY_DIR}/share/${file})
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/share
    COMMAND tessera_program completion ${kind} > ${output}
    DEPENDS tessera_program
    VERBATIM)
  add_custom_target(tessera_${kind}_text ALL DEPENDS ${output})
  if(TARGET shipped)
    add_dependencies(shipped tessera_${kind}_text)
  endif()
  install(FILES ${output} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder} ${runtime} RENAME ${ARGN})
endfunction()
tessera_install_text(man man/man1 tessera.1 tessera.1)
tessera_install_text(bash bash-completion/completions tessera.bash tessera)
tessera_install_text(zsh zsh/site-functions _tessera _tessera)
