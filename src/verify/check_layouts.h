// Tries the layouts and direct conversions of a plug-in.
#pragma once

#include <memory>

#include "backend/plugin.h"
#include "verify/report.h"
#include "verify/verify_steps.h"

namespace tessera::verification {

// For every layout, on odd shapes of all ranks and on every element type: storage_bytes is a number
// that fits, conversions stay within their buffers and leave their source alone, there and back
// gives equal bits, one thread and two give equal bits, dense layouts have each element once and
// zero as padding, and names that all libraries share mean what the contract says. For every direct
// conversion: equal bits to the way through the default layout.
void check_layouts(const std::shared_ptr<const Plugin>& plugin, uint64_t seed, VerifySteps& steps,
                   Report& report);

}  // namespace tessera::verification
