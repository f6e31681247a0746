# Python packages that the build uses: onnx (for onnx.proto), oneDNN, OpenVINO. Sets
# TESSERA_SITE_PACKAGES to the folders in which they may be: those of .venv, which tools/setup
# makes, or, if a wheel is built, those of the Python that builds it. pip may give this Python two
# folders of its own.
#
# TESSERA_WHEEL: whether scikit-build-core builds Tessera's own wheel, not that of a project that
# contains Tessera.
set(TESSERA_WHEEL OFF)
if(SKBUILD AND PROJECT_IS_TOP_LEVEL)
  set(TESSERA_WHEEL ON)
endif()
if(TESSERA_WHEEL)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c
      "import sys; print(*(path for path in sys.path if path.endswith('-packages')), sep=';')"
    OUTPUT_VARIABLE TESSERA_SITE_PACKAGES OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
else()
  file(GLOB TESSERA_SITE_PACKAGES ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages)
endif()

# Where packages put files that are not of Python: <prefix>/lib/python3*/site-packages.
set(TESSERA_PYTHON_PREFIXES "")
foreach(folder IN LISTS TESSERA_SITE_PACKAGES)
  cmake_path(SET prefix NORMALIZE ${folder}/../../..)
  list(APPEND TESSERA_PYTHON_PREFIXES ${prefix})
endforeach()

# tessera_wheel_path(VARIABLE TARGET PATH): if a wheel is built and PATH is a Python package's, sets
# VARIABLE to PATH relative to the folder in which the wheel has TARGET, a plug-in; otherwise to
# PATH. pip builds in a temporary environment, but installs the same packages at the same places
# relative to each other.
function(tessera_wheel_path variable target path)
  set(${variable} ${path} PARENT_SCOPE)
  if(NOT TESSERA_WHEEL)
    return()
  endif()
  get_target_property(folder ${target} LIBRARY_OUTPUT_DIRECTORY)
  file(RELATIVE_PATH folder ${PROJECT_BINARY_DIR}/lib/tessera ${folder})
  foreach(site_packages prefix IN ZIP_LISTS TESSERA_SITE_PACKAGES TESSERA_PYTHON_PREFIXES)
    cmake_path(IS_PREFIX prefix ${path} NORMALIZE is_inside)
    if(is_inside)
      file(RELATIVE_PATH path ${site_packages}/tessera/backends/${folder} ${path})
      set(${variable} ${path} PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()
