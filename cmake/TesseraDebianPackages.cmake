# `cpack -G DEB` in the folder of a build makes two Debian packages: `tessera` (component runtime)
# and `libtessera-dev` (component development). docs/decisions/0045 gives the reasons.
# Distributors of packages set this to their own address; example.org belongs to nobody.
set(TESSERA_PACKAGE_CONTACT "Tessera developers <tessera@example.org>" CACHE STRING
  "Maintainer of the Debian packages, as 'Name <address>'")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tessera)
set(CPACK_PACKAGE_VENDOR Tessera)
set(CPACK_PACKAGE_CONTACT ${TESSERA_PACKAGE_CONTACT})
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime development)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/finish_debian_packages.cmake)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# Libraries that programs are linked with are dependencies, as dpkg-shlibdeps finds them.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME tessera)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION science)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
# The package on which programs that link with the library depend. CPack would make this file, but
# warns of each plug-in.
get_target_property(soversion tessera SOVERSION)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/cmake/shlibs CONTENT
  "libtessera ${soversion} tessera (>= ${PROJECT_VERSION})\n")
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/cmake/triggers CONTENT "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA
  ${PROJECT_BINARY_DIR}/cmake/shlibs ${PROJECT_BINARY_DIR}/cmake/triggers)
set(description
"Tessera reads neural networks in the ONNX format. For each operator, and each
group of operators, it chooses the fastest kernel of the installed libraries.
")
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "run ONNX models with the libraries of the machine
${description}
This package contains the shared library, its plug-ins, the program tessera,
and tessera-worker, in which kernels are measured.")
# Libraries that plug-ins open at run time. oneDNN 3 and OpenVINO are in no package of Debian 12.
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS libllvm19)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS
  "ocl-icd-libopencl1, libclblast1, pocl-opencl-icd | opencl-icd")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libtessera-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
  "tessera (= ${PROJECT_VERSION})")
# Packages that programs need if they link with the archive.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS
  "libprotobuf-dev, libre2-dev, libsodium-dev, libtbb-dev, libxxhash-dev")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "run ONNX models - headers and static library
${description}
This package contains the headers for C and C++, the static library, and the
files by which CMake and pkg-config find both libraries.")
include(CPack)
