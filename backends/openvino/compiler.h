// The border between the plug-in, which is opened with every model, and the library that is linked
// with OpenVINO, which is loaded when a region is built first: OpenVINO and what it needs are many
// megabytes, and most models never use it.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "region_model.h"
#include "tessera/backend.h"

namespace tessera::openvino {

class Compiler {
 public:
  virtual ~Compiler() = default;
  // The kernel of `model` for `options.threads` threads. `options.absorbed` are its weights; they
  // are not copied. Throws Failure with OpenVINO's reason. From any thread.
  virtual std::unique_ptr<plugin::Kernel> compile(const RegionModel& model,
                                                  const plugin::BuildOptions& options) = 0;
  // The same from what its save() gave, for `threads` threads. The bytes are not copied. Throws
  // Failure where this OpenVINO does not take them, or where they are of another region.
  virtual std::unique_ptr<plugin::Kernel> load(const RegionModel& model, int32_t threads,
                                               std::string_view bytes) = 0;
};

// What the library exports: both sides are built together, so that C++ may cross.
using MakeCompiler = Compiler* (*)();
#define TESSERA_OPENVINO_MAKE_COMPILER "tessera_openvino_make_compiler"

}  // namespace tessera::openvino
