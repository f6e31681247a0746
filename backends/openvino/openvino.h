// The backend over OpenVINO: regions of a graph, up to the whole graph, compiled as one.
#pragma once

#include <memory>
#include <mutex>

#include "compiler.h"
#include "tessera/backend.h"

namespace tessera::openvino {

// 16 hex digits that change with this folder's sources and how they are compiled; generated
// (cmake/TesseraKernelRevision.cmake). The library has a version of its own.
const char* kernel_revision();

// Loads the compiler on first use. Shared by all candidates.
class CompilerLoader {
 public:
  // Throws Failure with the reason of the loader if the library is missing.
  std::shared_ptr<Compiler> get();

 private:
  std::mutex mutex_;
  std::shared_ptr<Compiler> compiler_;
};

class Openvino : public plugin::Backend {
 public:
  plugin::Description describe() override;
  void propose(const plugin::Graph& graph, const plugin::ProposeOptions& options,
               plugin::Proposals& proposals) override;

 private:
  std::shared_ptr<CompilerLoader> loader_ = std::make_shared<CompilerLoader>();
};

}  // namespace tessera::openvino
