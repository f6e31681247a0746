// What the user wants of the choice among candidates: pins and exclusions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/candidates.h"
#include "backend/plugin.h"
#include "graph/graph.h"
#include "ops/registry.h"
#include "tessera/error.h"

namespace tessera {

// Forces nodes onto a backend, and onto one of its algorithms.
struct NodePin {
  std::string nodes;  // a name, a prefix that ends with '*', or a metadata property "key=value"
  std::string backend;
  std::string algorithm;  // "": any; else what the algorithm's name begins with
};

struct BackendExclusion {
  std::string backend;
  std::string op;  // "": every op
};

struct OfferSelection {
  std::vector<NodePin> pins;
  std::vector<BackendExclusion> exclusions;
};

// Throws InvalidArgument for a backend in `selection` that is none of `plugins`, and for an
// excluded op that neither `registry` nor a plug-in knows; one that the graph does not have is
// fine.
void check_selected_names(const OfferSelection& selection, const ops::Registry& registry,
                          const std::vector<std::shared_ptr<const Plugin>>& plugins);

// Takes candidates out of `offers` that `selection` does not want, leaving refusals in their place.
// A group is kept only if it serves the pins of all its nodes. Throws InvalidArgument for a pin
// that fits no node, and two that contradict; Unsupported for a pin that nobody can serve, with who
// refused and why. Names are as check_selected_names() wants them.
Offers select_offers(Offers offers, const Graph& graph, const OfferSelection& selection);

// Throws Unsupported for the first node that no candidate covers which is not forbidden (by
// candidate), with what each backend said of it.
void check_is_covered(const Offers& offers, const Graph& graph,
                      const std::vector<bool>& is_forbidden);

// Why `node` is left over: what each backend offers for it that is not forbidden (by candidate),
// and what it refused. Unsupported.
Error explain_uncovered(const Offers& offers, const Graph& graph, NodeId node,
                        const std::vector<bool>& is_forbidden);

}  // namespace tessera
