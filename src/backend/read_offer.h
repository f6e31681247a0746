// Reads one candidate of a plug-in from its C face and checks it: nothing in it is believed.
// candidates.h collects what passes.
#pragma once

#include <string>

#include "backend/candidates.h"
#include "backend/graph_view.h"
#include "backend/layouts.h"
#include "tessera/backend_abi.h"

namespace tessera {

// A layout that stands for any dense one until candidates are expanded.
inline constexpr LayoutId kAnyDense{-2};

// Thrown where an offer is not legal; the reason goes on after "is not legal: ".
struct IllegalOffer {
  std::string reason;
};

// Thrown for an offer that is legal, but nobody here could use.
struct PassedOver {};

// The candidate with its ports read and checked; a layout may still be kAnyDense. Plug-in,
// preference, face and build are left to the caller. Throws IllegalOffer or PassedOver.
Candidate read_offer(const tessera_candidate& face, const tessera_graph& graph,
                     const LayoutTable& layouts);

// Checks where the ports of a view or a joint candidate lie, once no layout is kAnyDense, and
// leaves out strides that say nothing. Throws IllegalOffer.
void settle_parts(Candidate& candidate, const tessera_graph& graph, const LayoutTable& layouts);

// Whether `layout` holds a value of this type; one of unknown size lies in the default layout only.
bool can_hold(const LayoutTable& layouts, LayoutId layout, const Type& type);

}  // namespace tessera
