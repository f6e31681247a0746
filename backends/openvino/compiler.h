// The interface between the plug-in, which is opened with every model, and the library that is
// linked with OpenVINO, which is loaded when the first region is built: OpenVINO and its
// dependencies are many megabytes, and most models never use it.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "regions.h"
#include "tessera/backend.h"

namespace tessera::openvino {

class Compiler {
 public:
  virtual ~Compiler() = default;
  // Compiles `model` for `options.threads` threads. `options.absorbed` are its weights; they are
  // not copied. Throws Failure with the reason of OpenVINO. Thread-safe.
  virtual std::unique_ptr<plugin::Kernel> compile(const RegionModel& model,
                                                  const plugin::BuildOptions& options) = 0;
  // Restores a kernel from the bytes of its save(), for `threads` threads. The bytes are not
  // copied. Throws Failure if this OpenVINO does not accept them, or if they are of another region.
  virtual std::unique_ptr<plugin::Kernel> load(const RegionModel& model, int32_t threads,
                                               std::string_view bytes) = 0;
};

// The exported function of the library. Both sides are built together, so C++ types may cross.
using MakeCompiler = Compiler* (*)();
#define TESSERA_OPENVINO_MAKE_COMPILER "tessera_openvino_make_compiler"

}  // namespace tessera::openvino
