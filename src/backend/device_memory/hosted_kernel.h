// Lets the checks of candidates, which work in the host's memory, check those of devices too.
#pragma once

#include <memory>

#include "backend/candidates.h"
#include "backend/contract/kernel.h"
#include "backend/layouts.h"

namespace tessera {

// A kernel of a candidate on a device, for buffers in the host's memory: those of a port without a
// pack are in the default layout. It copies its inputs to new memory of the device, runs `kernel`
// there, waits, and copies the outputs back. A run fails if `kernel` wrote to an input or beyond
// the end of an output. Slow. `layouts` must outlive it.
Kernel hosted(std::shared_ptr<const Kernel> kernel, const Candidate& candidate,
              const LayoutTable& layouts);

// The candidate of such a kernel, which must not be a view or joint; `build` returns it. A
// candidate on the host is returned as it is.
Candidate hosted(const Candidate& candidate, const LayoutTable& layouts);

}  // namespace tessera
