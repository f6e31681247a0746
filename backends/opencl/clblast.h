// CLBlast, opened at run time like OpenCL itself. clblast.cc runs products with it.
#pragma once

// First, because clblast_c.h would include the headers of an older version of OpenCL.
#include "runtime.h"

#include <clblast_c.h>

#include <string>

#include "tessera/backend_blobs.h"

namespace tessera::opencl {

struct Clblast {
  decltype(&::CLBlastSgemm) gemm = nullptr;
  decltype(&::CLBlastSgemmWithTempBuffer) gemm_with_workspace = nullptr;
  decltype(&::CLBlastSgemmStridedBatched) gemm_batched = nullptr;
  decltype(&::CLBlastSGemmTempBufferSize) gemm_workspace_bytes = nullptr;
};

// The opened library. Throws Failure (TESSERA_UNSUPPORTED) if it is missing, and says what to
// install.
const Clblast& open_clblast();

// "" or the reason why open_clblast() throws.
std::string explain_no_clblast();

// An estimate of how long CLBlast compiles for its first product on this device: nothing if an
// earlier process did it, because then the driver has the programs.
double clblast_build_seconds(const DeviceFacts& device, const plugin::Blobs& blobs);

}  // namespace tessera::opencl
