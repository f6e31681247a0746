// Fused groups in CUDA C++, as the runtime compiler (NVRTC) takes it: without any header.
#pragma once

#include <string>
#include <vector>

#include "tessera/backend_fusion_c.h"

namespace tessera::cuda {

// The names of types and functions in CUDA C++.
plugin::CDialect cuda_dialect();

// The source of a kernel `fused`, whose arguments are pointers and then numbers. Throws Failure
// (TESSERA_UNSUPPORTED) as c_source() does.
std::string cuda_source(const plugin::FusedGroup& group, const plugin::CKernel& kernel);

// The options with which arithmetic is exactly that of IEEE 754.
std::vector<std::string> exact_options();

}  // namespace tessera::cuda
