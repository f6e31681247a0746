// Whether a kernel can be printed, without printing it: binding asks for each group, and few of
// them are compiled.
#pragma once

#include "kernel_loops.h"
#include "processor.h"
#include "tessera/backend_fusion.h"

namespace tessera::jit {

// Throws a Failure if print_llvm() throws one for the same arguments; if a group has several
// reasons, perhaps with another of them. Takes a small part of the time of print_llvm().
void check_printable(const plugin::FusedGroup& group, const KernelShape& shape,
                     const Target& target);

}  // namespace tessera::jit
