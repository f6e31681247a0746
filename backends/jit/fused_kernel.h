// Kernels of fused groups: compiled code in the loops of C++.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernel_store.h"
#include "tessera/backend_fusion.h"

namespace tessera::jit {

// One loop nest of a kernel.
struct KernelPart {
  std::string source;
  // Both refer to the group.
  KernelStore::Print print;
  std::function<void()> check_printable;  // throws what `print` throws
};

// The parts of a kernel of the group if whole tensors are in `layout`. Throws Failure
// (TESSERA_UNSUPPORTED) with the reason if compiled kernels have no loops for it.
std::vector<KernelPart> kernel_parts(const plugin::FusedGroup& group, const std::string& layout,
                                     const Target& target);

// Compiles the kernel, or takes it from the store. Throws Failure.
std::unique_ptr<plugin::Kernel> build_fused_kernel(
    const std::shared_ptr<const plugin::FusedGroup>& group, const std::string& layout,
    const std::shared_ptr<KernelStore>& store);

// The kernel from what Kernel::save() returned for an equal group. Throws Failure (TESSERA_CORRUPT)
// if the bytes are damaged or of another group.
std::unique_ptr<plugin::Kernel> load_fused_kernel(
    const std::shared_ptr<const plugin::FusedGroup>& group, std::string_view bytes,
    const std::shared_ptr<KernelStore>& store);

}  // namespace tessera::jit
