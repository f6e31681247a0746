// The user's constraints on the choice among candidates: pins and exclusions.
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

// Forces nodes onto a backend, and optionally onto one of its algorithms.
struct NodePin {
  std::string nodes;  // a name, a prefix that ends with '*', or a metadata property "key=value"
  std::string backend;
  std::string algorithm;  // prefix of the algorithm's name; "": any
};

struct BackendExclusion {
  std::string backend;
  std::string op;  // "": every op
};

struct OfferSelection {
  std::vector<NodePin> pins;
  std::vector<BackendExclusion> exclusions;
  // The devices that may be used besides the host's processor, by name; empty: all. "cpu" stands
  // for none.
  std::vector<std::string> devices = {};
};

// Whether the pin is for a node of `graph`, or of a graph nested in it.
bool concerns(const NodePin& pin, const Graph& graph);

// Throws InvalidArgument for a backend in `selection` that is not in `plugins`, for a device that
// none of them has, and for an excluded op that neither `registry` nor a plug-in knows. An op that
// the graph does not contain is allowed.
void check_selected_names(const OfferSelection& selection, const ops::Registry& registry,
                          const std::vector<std::shared_ptr<const Plugin>>& plugins);

// Removes candidates that `selection` does not allow from `offers` and adds refusals for them. A
// group is kept only if it satisfies the pins of all its nodes. Throws InvalidArgument for a pin
// that matches no node, and for two pins that contradict each other; Unsupported for a pin that no
// candidate satisfies, with the reasons of the backend. Requires names that check_selected_names()
// accepts.
Offers select_offers(Offers offers, const Graph& graph, const OfferSelection& selection);

// Throws Unsupported for the first node that no allowed candidate covers. The message contains what
// each backend said about the node. `is_forbidden` is by candidate.
void check_is_covered(const Offers& offers, const Graph& graph,
                      const std::vector<bool>& is_forbidden);

// Returns an Unsupported error that says why `node` is uncovered: the allowed candidates that each
// backend offers for it, and the refusals. `is_forbidden` is by candidate.
Error explain_uncovered(const Offers& offers, const Graph& graph, NodeId node,
                        const std::vector<bool>& is_forbidden);

}  // namespace tessera
