// The backend of Tessera's own kernels: ops that no library has, and those that are faster here.
#pragma once

#include "tessera/backend.h"

namespace tessera::native {

// 16 hex digits that change with this folder's sources and how they are compiled; generated
// (cmake/TesseraKernelRevision.cmake).
const char* kernel_revision();

class Native : public plugin::Backend {
 public:
  plugin::Description describe() override;
  void propose(const plugin::Graph& graph, const plugin::ProposeOptions& options,
               plugin::Proposals& proposals) override;
};

}  // namespace tessera::native
