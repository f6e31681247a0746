# What the Python wheel contains: the folder `tessera` of site-packages, and the command `tessera`.
# pyproject.toml builds the target and installs the component; `cmake --install` without a component
# leaves it out. docs/decisions/0046 gives the reasons.
set(package tessera)
set(component COMPONENT wheel EXCLUDE_FROM_ALL)
get_property(plugins GLOBAL PROPERTY TESSERA_PLUGIN_TARGETS)

add_custom_target(tessera_wheel DEPENDS
  tessera_python_package tessera_python_stub tessera_program tessera_worker ${plugins})

# The module and the programs search for plug-ins in backends/ and for the worker in their own
# folder (src/api/backends.cc, src/base/module_folder.h).
install(TARGETS tessera_python LIBRARY DESTINATION ${package} ${component})
install(TARGETS tessera_program tessera_worker RUNTIME DESTINATION ${package} ${component})
install(TARGETS ${plugins} LIBRARY DESTINATION ${package}/backends ${component})
if(TARGET tessera_openvino_compiler)
  install(TARGETS tessera_openvino_compiler
    LIBRARY DESTINATION ${package}/backends/openvino ${component})
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
