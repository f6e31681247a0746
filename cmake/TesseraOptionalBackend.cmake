# What the folders of backends share that need a library: an option, and a reason where it is missing.
# Macros, as they set variables of the folder and return from it.

# tessera_backend_option(ONEDNN onednn): the cache option TESSERA_ONEDNN (AUTO, ON or OFF), and
# `reason`, which says why the backend is left out: set where it is OFF, else empty. Whoever sets `reason`
# because a library is missing or too old sets `lacks_library` to ON.
macro(tessera_backend_option option name)
  set(TESSERA_${option} "AUTO" CACHE STRING "Build the ${name} backend: AUTO (if found), ON or OFF")
  set_property(CACHE TESSERA_${option} PROPERTY STRINGS AUTO ON OFF)
  set(reason "")
  set(lacks_library OFF)
  if(TESSERA_${option} STREQUAL "OFF")
    set(reason "switched off when Tessera was configured (TESSERA_${option}=OFF)")
  endif()
endmacro()

# tessera_leave_out_backend(ONEDNN onednn): leaves the folder where `reason` is not empty. What an earlier
# configuration built goes, so that nobody loads it. An error where the option is ON.
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
