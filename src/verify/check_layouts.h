// Tests the layouts and direct conversions of a plug-in.
#pragma once

#include <memory>

#include "backend/plugin.h"
#include "verify/report.h"
#include "verify/verify_steps.h"

namespace tessera::verification {

// Checks for every layout, with odd shapes of all ranks and every element type: storage_bytes is
// plausible; conversions stay within their buffers and do not change their source; a round trip
// gives equal bits; one thread and two give equal bits; dense layouts hold each element once and
// zeros as padding; shared layout names mean what the contract says. Checks for every direct
// conversion that it gives the same bits as the route through the default layout.
void check_layouts(const std::shared_ptr<const Plugin>& plugin, uint64_t seed, VerifySteps& steps,
                   Report& report);

}  // namespace tessera::verification
