// From a Graph to the bytes of an ONNX file. protobuf stays inside this folder and import's.
#pragma once

#include <span>
#include <string>

#include "graph/graph.h"
#include "ops/registry.h"

namespace tessera {

// The bytes of a ModelProto that means `graph`, which must not be nested in another. Equal graphs
// give equal bytes. Constants are stored inside; values and nodes keep their names, but where a
// nested graph would hide one of the graph around it, or two outputs would have one name: then
// "#2" is added, and an Identity for the output. Not in the file: what is only kept
// (Graph::kept), that a value is state, and marks of passes (Node::inference_only).
//
// `registry` tells which operator sets contain the versions of the nodes. Throws Unsupported where
// no single set of a domain contains those of all nodes, naming two that cannot stand together;
// where an input has no element type, and where the file would exceed protobuf's 2 GiB. What was
// written is read again and compared before it is given away.
std::string export_onnx(const Graph& graph, const ops::Registry& registry);

// The same for extract_group(graph, nodes); see graph/extract_group.h for its inputs and outputs.
std::string export_group(const Graph& graph, std::span<const NodeId> nodes,
                         const ops::Registry& registry);

// The same with `constants` as further inputs, in that order, behind those of the group; their
// elements are not looked at. Throws InvalidArgument where one of them is no constant that the
// group reads.
std::string export_open_group(const Graph& graph, std::span<const NodeId> nodes,
                              std::span<const ValueId> constants, const ops::Registry& registry);

}  // namespace tessera
