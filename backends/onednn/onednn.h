// The backend over oneDNN. families.h lists what it computes.
#pragma once

#include "dnnl.hpp"
#include "tessera/backend.h"

namespace tessera::onednn {

// 16 hex digits that change with this folder's sources and how they are compiled; generated
// (cmake/TesseraKernelRevision.cmake). The library has a version of its own.
const char* kernel_revision();

class Onednn : public plugin::Backend {
 public:
  explicit Onednn(const tessera_host* host);

  plugin::Description describe() override;
  void propose(const plugin::Graph& graph, const plugin::ProposeOptions& options,
               plugin::Proposals& proposals) override;

 private:
  const tessera_host* host_;
  dnnl::engine engine_;
};

}  // namespace tessera::onednn
