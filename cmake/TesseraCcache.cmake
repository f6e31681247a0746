# Compilation goes through ccache where it is installed, unless a launcher is given
# (-DCMAKE_CXX_COMPILER_LAUNCHER=, which may be empty).
if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(TESSERA_CCACHE ccache)
  mark_as_advanced(TESSERA_CCACHE)
  if(TESSERA_CCACHE)
    # Without SLOPPINESS, ccache does not cache files that use a precompiled header. Without DEPEND it
    # compares preprocessed texts, which have no comments, and answers with the precompiled header of a
    # file whose comments were others; g++ knows a file with `#pragma once` by its bytes, so that file
    # is then included twice. NAMESPACE leaves alone what ccache stored before it was told so.
    set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_DEPEND=1
      CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_NAMESPACE=tessera-depend ${TESSERA_CCACHE})
  endif()
endif()
