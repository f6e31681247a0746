# CPack runs this after the files of each package were installed into a folder of their own. Makes
# the changes that Debian expects of packages, and not of other installed copies.

# CPack passes it to dpkg-shlibdeps.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CPACK_TOPLEVEL_DIRECTORY}/libraries_of_plugins)
# dpkg-shlibdeps wants to see every library that a file is linked with. Links those that `library`
# finds in `folders` into a folder that it searches: no package has them, so nothing depends on them.
function(link_needed_libraries library folders)
  execute_process(COMMAND readelf -d ${library} OUTPUT_VARIABLE lines COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "\\(NEEDED\\)[^\n]*" lines "${lines}")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE ".*: (.*)" "\\1" name "${line}")
    string(REGEX REPLACE "[][]" "" name "${name}")
    foreach(folder IN LISTS folders)
      if(IS_ABSOLUTE "${folder}" AND EXISTS ${folder}/${name})
        file(MAKE_DIRECTORY ${CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS})
        file(CREATE_LINK ${folder}/${name}
          ${CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS}/${name} SYMBOLIC)
      endif()
    endforeach()
  endforeach()
endfunction()

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  set(prefix ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}${CPACK_PACKAGING_INSTALL_PREFIX})
  string(TOUPPER ${component} upper)
  set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})

  # Removes search paths that are valid only on the machine of the build: on another machine
  # somebody else may own these folders, and put libraries there. Relative paths remain.
  file(GLOB_RECURSE libraries ${prefix}/lib/tessera/*.so)
  foreach(library IN LISTS libraries)
    unset(rpath)
    unset(runpath)
    file(READ_ELF ${library} RPATH rpath RUNPATH runpath)
    string(REPLACE ":" ";" folders "${rpath}${runpath}")
    if(folders)
      link_needed_libraries(${library} "${folders}")
      list(FILTER folders INCLUDE REGEX "^\\$ORIGIN")
      list(JOIN folders ":" folders)
      file(RPATH_SET FILE ${library} NEW_RPATH "${folders}")
    endif()
  endforeach()

  set(documents ${prefix}/share/doc/${package})
  file(MAKE_DIRECTORY ${documents})
  file(REMOVE ${documents}/LICENSE)
  file(WRITE ${documents}/copyright
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: tessera

Files: *
Copyright: 2026 the Tessera developers
License: Apache-2.0
 On Debian systems, the text of the Apache License 2.0 is in the file
 /usr/share/common-licenses/Apache-2.0.
")
  string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
  file(WRITE ${documents}/changelog
"tessera (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * Version ${CPACK_PACKAGE_VERSION}; made by cpack from its source tree.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
  file(GLOB texts ${documents}/changelog ${prefix}/share/man/man1/*.1)
  execute_process(COMMAND gzip -9 -n ${texts} COMMAND_ERROR_IS_FATAL ANY)
  # Debian's zsh searches another folder than zsh's own build does.
  if(EXISTS ${prefix}/share/zsh/site-functions)
    file(RENAME ${prefix}/share/zsh/site-functions ${prefix}/share/zsh/vendor-completions)
  endif()
endforeach()
