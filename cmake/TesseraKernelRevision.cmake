# tessera_kernel_revision(TARGET NAMESPACE SOURCES patterns... [SETTINGS texts...]): gives TARGET a
# generated source file with `const char* NAMESPACE::kernel_revision()`: 16 hex digits that change with what
# decides results and times. That is the content of SOURCES, SETTINGS, the compiler, and the flags and
# options of the build. SOURCES are patterns, relative to the project's folder; of a folder all sources below
# it count but tests, and its CMakeLists.txt, which has the flags of its target. The digits are computed when
# something is built, and no other file of TARGET is compiled again because of them.
#
# Libraries that are loaded and processors may differ where a program runs: they are ingredients of their own.
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
    ${ARG_SETTINGS})
  # Flags may name folders, as -ffile-prefix-map does.
  list(TRANSFORM lines REPLACE "${PROJECT_BINARY_DIR}" "<build>")
  list(TRANSFORM lines REPLACE "${PROJECT_SOURCE_DIR}" "<source>")
  foreach(file IN LISTS files)
    list(APPEND lines "source ${file}")
  endforeach()
  list(JOIN lines "\n" text)
  # A list in a file, not in the command: then a file that is gone counts as a change too.
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
  target_sources(${target} PRIVATE ${output})
endfunction()
