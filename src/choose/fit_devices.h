// Keeps the memory that a placement needs on each device within what the device has.
#pragma once

#include "backend/candidates.h"
#include "backend/layouts.h"
#include "choose/placer.h"
#include "graph/graph.h"
#include "place/placement.h"

namespace tessera {

// If the arena and the constants of `placement` need more memory on a device than it has, or a
// larger block than it allocates, forbids some of the candidates on that device to `placer`, first
// the candidates with the largest constants and outputs, and returns true: choose again. Devices
// that do not say how much memory they have are not judged.
bool restrict_to_device_memory(const Graph& graph, const Offers& offers, const LayoutTable& layouts,
                               const Placement& placement, Placer& placer);

}  // namespace tessera
