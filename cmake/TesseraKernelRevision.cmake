# tessera_kernel_revision(TARGET NAMESPACE SOURCES patterns... [SETTINGS texts...]): adds a
# generated source file with `const char* NAMESPACE::kernel_revision()` to TARGET. The function
# returns 16 hex digits that change with everything that decides results and times: the content of
# SOURCES, SETTINGS, the compiler, and the flags and options of the build. SOURCES are patterns
# relative to the project's folder. A folder stands for all sources below it except tests, and for
# its CMakeLists.txt, which has the flags of its target. The digits are computed by the build; if
# they change, no other file of TARGET is compiled again.
#
# Shared libraries and the processor may differ where a program runs: they are ingredients of their
# own.
function(tessera_kernel_revision target namespace)
  cmake_parse_arguments(ARG "" "" "SOURCES;SETTINGS" ${ARGN})
  set(files cmake/TesseraTargets.cmake)
  foreach(source IN LISTS ARG_SOURCES)
    set(patterns ${PROJECT_SOURCE_DIR}/${source})
    if(IS_DIRECTORY ${patterns})
      set(patterns *.cc *.h *.inc *.cu *.cuh CMakeLists.txt)
      list(TRANSFORM patterns PREPEND ${PROJECT_SOURCE_DIR}/${source}/)
    endif()
    file(GLOB_RECURSE found CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${patterns})
    if(NOT found)
      message(FATAL_ERROR "expected sources in '${source}', found none")
    endif()
    list(FILTER found EXCLUDE REGEX "_test\\.[a-z]+$|/test_[a-z_]+\\.h$")
    list(APPEND files ${found})
  endforeach()
  list(REMOVE_DUPLICATES files)
  list(SORT files)

  string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
  set(lines
    "compiler ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
    "processors ${CMAKE_SYSTEM_PROCESSOR}"
    "build type ${build_type}"
    "flags ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}}"
    "optimised at link time ${CMAKE_INTERPROCEDURAL_OPTIMIZATION}"
    "checks ${TESSERA_CHECKS}"
    "sanitizers ${TESSERA_SANITIZE}"
    "threads ${TESSERA_THREADS}"
    "files joined ${TESSERA_JOIN}"
    ${ARG_SETTINGS})
  # Flags may contain paths, for example -ffile-prefix-map.
  list(TRANSFORM lines REPLACE "${PROJECT_BINARY_DIR}" "<build>")
  list(TRANSFORM lines REPLACE "${PROJECT_SOURCE_DIR}" "<source>")
  foreach(file IN LISTS files)
    list(APPEND lines "source ${file}")
  endforeach()
  list(JOIN lines "\n" text)
  # The list of sources is in a file instead of the command, so that removing a source counts as a
  # change too.
  set(inputs ${CMAKE_CURRENT_BINARY_DIR}/${target}_revision.txt)
  file(GENERATE OUTPUT ${inputs} CONTENT "${text}\n")

  set(output ${CMAKE_CURRENT_BINARY_DIR}/${target}_revision.cc)
  set(script ${PROJECT_SOURCE_DIR}/cmake/write_kernel_revision.cmake)
  list(TRANSFORM files PREPEND ${PROJECT_SOURCE_DIR}/)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DINPUTS=${inputs}
      -DNAMESPACE=${namespace} -DOUTPUT=${output} -P ${script}
    DEPENDS ${script} ${inputs} ${files}
    COMMENT "Computing the revision of the kernels of ${target}"
    VERBATIM)
  # Joined with others, it would compile these again.
  set_source_files_properties(${output} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE ${output})
endfunction()
