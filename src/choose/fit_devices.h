// Keeps the memory that a placement needs on each device within what the device has.
#pragma once

#include <optional>

#include "backend/candidates.h"
#include "backend/layouts.h"
#include "choose/choice_problem.h"
#include "graph/graph.h"
#include "place/placement.h"

namespace tessera {

// If the arena and the constants of `placement` need more memory on a device than it has, or a
// larger block than it allocates, returns `constraints` with some of the candidates on that device
// as failed, first the candidates with the largest constants and outputs: choose again. nullopt if
// it fits. Devices that do not say how much memory they have are not judged.
std::optional<Constraints> restrict_to_device_memory(const Graph& graph, const Offers& offers,
                                                     const LayoutTable& layouts,
                                                     const Placement& placement,
                                                     const Constraints& constraints);

}  // namespace tessera
