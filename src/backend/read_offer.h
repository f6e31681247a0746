// Reads one candidate of a plug-in from its C struct and checks everything in it. candidates.h
// collects the legal ones.
#pragma once

#include <string>

#include "backend/candidates.h"
#include "backend/graph_view.h"
#include "backend/layouts.h"
#include "tessera/backend_abi.h"

namespace tessera {

// A placeholder for any dense layout until candidates are expanded.
inline constexpr LayoutId kAnyDense{-2};

// Thrown if an offer is illegal; the reason continues "is not legal: ".
struct IllegalOffer {
  std::string reason;
};

// Thrown if an offer is legal but unusable here. If there is a reason, users see it.
struct UnusableOffer {
  std::string reason;
};

// The candidate of `plugin` with its ports read and checked; a layout may still be kAnyDense. The
// caller sets plug-in, preference, abi and build. Throws IllegalOffer or UnusableOffer.
Candidate read_offer(const tessera_candidate& abi, const Plugin& plugin, const tessera_graph& graph,
                     const LayoutTable& layouts);

// Checks the positions of the ports of a view or a joint candidate, after kAnyDense is resolved,
// and removes strides that only say "dense". Throws IllegalOffer.
void check_parts(Candidate& candidate, const tessera_graph& graph, const LayoutTable& layouts);

// "int4, the type of value 'x'", of a value of a small type that the node reads or writes; "" if
// there is none.
std::string explain_small_type(const Graph& graph, NodeId id);

// Whether `layout` supports a value of this type; only the default layout supports unknown sizes.
bool can_hold(const LayoutTable& layouts, LayoutId layout, const Type& type);

}  // namespace tessera
