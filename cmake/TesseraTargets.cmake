# The functions with which every folder declares its library and its tests.

# Compiler settings that all of the project's targets share; linked privately, never exported.
add_library(tessera_settings INTERFACE)
target_compile_features(tessera_settings INTERFACE cxx_std_20)
# Initializers may omit fields of structs, because fields have default values.
target_compile_options(tessera_settings INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers
  # g++ 12 wrongly warns of overlapping and too long copies inside std::string.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-stringop-overflow>)
if(TESSERA_WERROR)
  target_compile_options(tessera_settings INTERFACE -Werror)
endif()
if(TESSERA_CHECKS)
  target_compile_definitions(tessera_settings INTERFACE TESSERA_CHECKS=1)
endif()
if(TESSERA_SANITIZE)
  # vptr and object-size find no error that the address sanitizer does not find, and slow down the
  # build. Highway's scalar code converts NaN to integers that no kernel uses.
  target_compile_options(tessera_settings INTERFACE
    -fsanitize=${TESSERA_SANITIZE} -fno-sanitize=vptr,object-size,float-cast-overflow
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(tessera_settings INTERFACE -fsanitize=${TESSERA_SANITIZE})
endif()

# Standard library headers that most files include; parsing them took a third of the build time. The
# dev preset precompiles nothing, so that missing includes are found (docs/decisions/0029).
set(common_headers <algorithm> <array> <cmath> <cstdint> <cstring> <filesystem> <functional> <limits>
  <map> <memory> <optional> <set> <span> <string> <string_view> <utility> <vector>)

# tessera_optimize(TARGET LEVEL): -O<LEVEL> instead of the release preset's -O3.
function(tessera_optimize target level)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O${level}>)
endfunction()

# Everything except kernels is compiled with -O2, which takes a sixth less time than -O3.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/common_headers.cc CONTENT "")
add_library(tessera_common_headers STATIC EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/common_headers.cc)
target_link_libraries(tessera_common_headers PRIVATE tessera_settings)
tessera_optimize(tessera_common_headers 2)
target_precompile_headers(tessera_common_headers PRIVATE ${common_headers})

# Several files of a target are compiled as one, which takes a third of the time: most of it goes
# into headers and templates that they share. So names in unnamed namespaces are unique in a folder.
# The dev preset compiles each file alone (docs/decisions/0062).
function(tessera_join target files)
  if(TESSERA_JOIN)
    set_target_properties(${target} PROPERTIES
      UNITY_BUILD ON UNITY_BUILD_MODE BATCH UNITY_BUILD_BATCH_SIZE ${files})
    # g++ takes the files for headers, where types that have members from unnamed namespaces are an
    # error.
    target_compile_options(${target} PRIVATE
      $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# tessera_library(NAME SOURCES... [LINKS targets...] [OPTIMIZE level] [PRECOMPILED headers...]): one
# target for each folder, tessera_NAME. The global property TESSERA_FOLDER_LIBRARIES lists those that
# were declared so far, lowest layer first. PRECOMPILED: headers that its files include in addition to
# `common_headers`. OPTIMIZE: 2 by default.
function(tessera_library name)
  cmake_parse_arguments(ARG "" "OPTIMIZE" "SOURCES;LINKS;PRECOMPILED" ${ARGN})
  add_library(tessera_${name} STATIC ${ARG_SOURCES})
  target_include_directories(tessera_${name} PUBLIC
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(tessera_${name} PUBLIC ${ARG_LINKS} PRIVATE tessera_settings)
  set_property(GLOBAL APPEND PROPERTY TESSERA_FOLDER_LIBRARIES tessera_${name})
  if(NOT ARG_OPTIMIZE)
    set(ARG_OPTIMIZE 2)
  endif()
  tessera_optimize(tessera_${name} ${ARG_OPTIMIZE})
  tessera_join(tessera_${name} 12)
  if(ARG_PRECOMPILED OR NOT ARG_OPTIMIZE EQUAL 2)
    target_precompile_headers(tessera_${name} PRIVATE ${common_headers} ${ARG_PRECOMPILED})
  else()
    target_precompile_headers(tessera_${name} REUSE_FROM tessera_common_headers)
  endif()
endfunction()

# Compile options of GoogleTest programs. They consist of many small files, for which the compiler
# mostly parses GoogleTest's headers and optimises expectations. So the headers are parsed once for
# all programs, and expectations are not optimised. Sanitizers are for the code under test, so
# arithmetic in tests is not instrumented. The dev preset precompiles nothing, so that missing
# includes are found.
set(test_headers <gmock/gmock.h> <gtest/gtest.h> <string> <vector>)
function(tessera_test_options target)
  target_link_libraries(${target} PRIVATE
    GTest::gtest GTest::gmock GTest::gtest_main tessera_settings)
  target_compile_options(${target} PRIVATE -O0)
  if(TESSERA_SANITIZE)
    target_compile_options(${target} PRIVATE -fno-sanitize=undefined)
    # Compilers use different macros for this.
    target_compile_definitions(${target} PRIVATE TESSERA_SANITIZED=1)
  endif()
endfunction()
if(TESSERA_TESTS)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/test_headers.cc CONTENT "int main() { return 0; }\n")
  add_executable(tessera_test_headers EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/test_headers.cc)
  tessera_test_options(tessera_test_headers)
  target_precompile_headers(tessera_test_headers PRIVATE ${test_headers})
endif()

# tessera_test_settings(TARGET [headers...]): applies these options to TARGET; `headers`, which many
# of its files include, are parsed only once too.
function(tessera_test_settings target)
  tessera_test_options(${target})
  tessera_join(${target} 12)
  if(ARGN)
    target_precompile_headers(${target} PRIVATE ${test_headers} ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM tessera_test_headers)
  endif()
endfunction()

# All unit tests, including those that a build under sanitizers builds only on demand.
add_custom_target(unit_tests)

# tessera_unit_tests(TARGET [SERIAL] [SANITIZED_ON_DEMAND] [ENVIRONMENT NAME=VALUE]): registers each
# case of a GoogleTest program in ctest, and the program in unit_tests.json in the build folder.
# tools/run_tests reads this file and runs all cases of a program in one process. ctest finds the
# cases when it runs, so that the build does not start programs. SERIAL: no other test runs at the
# same time.
function(tessera_unit_tests target)
  cmake_parse_arguments(ARG "SERIAL;SANITIZED_ON_DEMAND" "ENVIRONMENT" "" ${ARGN})
  # In tests, binds measure nothing and write nothing by default.
  set(environment TESSERA_OPTIMIZE=0 ${ARG_ENVIRONMENT})
  list(GET environment -1 newest)  # gtest_discover_tests() cannot pass on lists
  set(properties ENVIRONMENT ${newest})
  set(is_serial false)
  set(is_on_demand false)
  if(ARG_SERIAL)
    list(APPEND properties RUN_SERIAL TRUE)
    set(is_serial true)
  endif()
  if(ARG_SANITIZED_ON_DEMAND AND TESSERA_SANITIZE)
    list(APPEND properties LABELS sanitized_on_demand)
    set(is_on_demand true)
  endif()
  gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST PROPERTIES ${properties})
  list(JOIN environment "\", \"" environment)
  set_property(GLOBAL APPEND_STRING PROPERTY TESSERA_UNIT_TESTS
    "{\"name\": \"${target}\", \"is_serial\": ${is_serial}, \"is_on_demand\": ${is_on_demand}, \"environment\": [\"${environment}\"]},\n")
endfunction()

# Writes unit_tests.json; called after all folders were configured.
function(tessera_list_unit_tests)
  get_property(tests GLOBAL PROPERTY TESSERA_UNIT_TESTS)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/unit_tests.json CONTENT "[\n@tests@null\n]\n" @ONLY)
endfunction()

# tessera_test(NAME SOURCES... [LINKS targets...] [PRECOMPILED headers...] [SANITIZED_ON_DEMAND]):
# one GoogleTest program for each folder, tessera_NAME_test. SANITIZED_ON_DEMAND is for code that
# handles no memory itself: such tests are slow to compile under sanitizers, so only `unit_tests`
# builds them there, and their label is `sanitized_on_demand`.
function(tessera_test name)
  if(NOT TESSERA_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "SANITIZED_ON_DEMAND" "" "SOURCES;LINKS;PRECOMPILED" ${ARGN})
  add_executable(tessera_${name}_test ${ARG_SOURCES})
  target_link_libraries(tessera_${name}_test PRIVATE tessera_${name} ${ARG_LINKS})
  tessera_test_settings(tessera_${name}_test ${ARG_PRECOMPILED})
  add_dependencies(unit_tests tessera_${name}_test)
  set(on_demand "")
  if(ARG_SANITIZED_ON_DEMAND)
    set(on_demand SANITIZED_ON_DEMAND)
    if(TESSERA_SANITIZE)
      set_target_properties(tessera_${name}_test PROPERTIES EXCLUDE_FROM_ALL TRUE)
    endif()
  endif()
  tessera_unit_tests(tessera_${name}_test ${on_demand})
endfunction()
