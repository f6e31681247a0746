# The contents of the Python wheel: the folder `tessera` of site-packages, and the command
# `tessera`. pyproject.toml builds the target and installs the component; `cmake --install` without
# a component leaves it out. docs/decisions/0046 gives the reasons.
set(package tessera)
set(component COMPONENT wheel EXCLUDE_FROM_ALL)
get_property(plugins GLOBAL PROPERTY TESSERA_PLUGIN_TARGETS)

add_custom_target(tessera_wheel DEPENDS
  tessera_python_package tessera_python_stub tessera_program tessera_worker ${plugins})

# The module and the programs search for plug-ins in backends/ and for the worker in their own
# folder (src/api/options/backends.cc, src/base/process/module_folder.h).
install(TARGETS tessera_python LIBRARY DESTINATION ${package} ${component})
install(TARGETS tessera_program tessera_worker RUNTIME DESTINATION ${package} ${component})
install(TARGETS ${plugins} LIBRARY DESTINATION ${package}/backends ${component})
if(TARGET tessera_openvino_compiler)
  install(TARGETS tessera_openvino_compiler
    LIBRARY DESTINATION ${package}/backends/openvino ${component})
endif()

# The one oneTBB that module, program, oneDNN and OpenVINO share in a process: the name must stay as
# it is, so tools/wheel leaves it to this rule.
if(TESSERA_WHEEL AND TESSERA_THREADS STREQUAL "tbb")
  find_package(TBB REQUIRED)
  install(FILES $<TARGET_FILE:TBB::tbb> DESTINATION ${package} ${component}
    RENAME $<TARGET_SONAME_FILE_NAME:TBB::tbb>)
  set_target_properties(tessera_python tessera_program tessera_worker PROPERTIES
    INSTALL_RPATH $ORIGIN)
endif()
# The licenses of libraries in the wheel: libtbb, and those that tools/wheel adds.
if(TESSERA_WHEEL)
  foreach(library libprotobuf-lite libre2 libsodium libtbb libxxhash)
    file(GLOB license /usr/share/doc/${library}[0-9]*/copyright)
    if(license)
      install(FILES ${license} DESTINATION ${package}/licenses ${component} RENAME ${library}.txt)
    endif()
  endforeach()
endif()

get_target_property(python_files tessera_python_package TESSERA_FILES)
foreach(file IN LISTS python_files)
  cmake_path(GET file PARENT_PATH folder)
  install(FILES python/tessera/${file} DESTINATION ${package}/${folder} ${component})
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/python/tessera/_core.pyi DESTINATION ${package} ${component})

# Without a wheel, the component is installed into the site-packages of an environment.
set(scripts ../../../bin)
if(TESSERA_WHEEL)
  set(scripts ${SKBUILD_SCRIPTS_DIR})
endif()
install(PROGRAMS python/tessera_command.py DESTINATION ${scripts} RENAME tessera ${component})
