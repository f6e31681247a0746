# Shared by the folders of backends that need a library: an option, and a reason if the library is
# missing. These are macros, because they set variables of the calling folder and return from it.

# tessera_backend_option(ONEDNN onednn): defines the cache option TESSERA_ONEDNN (AUTO, ON or OFF),
# and sets `reason`, which says why the backend is not built, if the option is OFF; otherwise
# `reason` is empty. A caller that sets `reason` because a library is missing or too old must set
# `lacks_library` to ON.
macro(tessera_backend_option option name)
  set(TESSERA_${option} "AUTO" CACHE STRING "Build the ${name} backend: AUTO (if found), ON or OFF")
  set_property(CACHE TESSERA_${option} PROPERTY STRINGS AUTO ON OFF)
  set(reason "")
  set(lacks_library OFF)
  if(TESSERA_${option} STREQUAL "OFF")
    set(reason "switched off when Tessera was configured (TESSERA_${option}=OFF)")
  endif()
endmacro()

# tessera_leave_out_backend(ONEDNN onednn): returns from the folder if `reason` is not empty.
# Removes the plug-in that an earlier configuration built, so that nobody loads it. If the option is
# ON, this is an error.
macro(tessera_leave_out_backend option name)
  set_property(GLOBAL PROPERTY TESSERA_BACKEND_REASON_${name} "${reason}")
  set_property(GLOBAL PROPERTY TESSERA_BACKEND_LACKS_LIBRARY_${name} ${lacks_library})
  if(reason)
    if(TESSERA_${option} STREQUAL "ON")
      message(FATAL_ERROR "TESSERA_${option}=ON, but ${reason}")
    endif()
    message(STATUS "backend ${name} is left out: ${reason}")
    file(REMOVE ${PROJECT_BINARY_DIR}/lib/tessera/backend_${name}.so)
    return()
  endif()
endmacro()

# tessera_library_folders(TARGET BESIDE [FOUND]): where TARGET, built or installed, searches for its
# library before the system's folders: first in BESIDE, which is relative to TARGET ($ORIGIN/...),
# for distributions that ship the library together with Tessera; then in FOUND, the folder on this
# machine. A wheel has FOUND relative to TARGET if it is a Python package's.
function(tessera_library_folders target beside)
  set(installed ${ARGN})
  if(ARGN)
    tessera_wheel_path(installed ${target} ${ARGN})
    if(NOT IS_ABSOLUTE ${installed})
      set(installed $ORIGIN/${installed})
    endif()
  endif()
  set_target_properties(${target} PROPERTIES
    BUILD_RPATH "${beside};${ARGN}"
    INSTALL_RPATH "${beside};${installed}"
    # No folder besides FOUND is needed. CMake would add FOUND as an absolute path.
    INSTALL_RPATH_USE_LINK_PATH OFF)
endfunction()
