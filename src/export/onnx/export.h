// Writes a Graph as the bytes of an ONNX file. protobuf stays inside this folder and import's.
#pragma once

#include <map>
#include <span>
#include <string>

#include "graph/graph.h"
#include "ops/registry.h"

namespace tessera {

// The bytes of a ModelProto equivalent to `graph`, which must not be nested in another. Equal
// graphs give equal bytes. Constants are stored inside. Values and nodes keep their names, with two
// exceptions: if a nested graph would shadow a name of an enclosing graph, or two outputs would
// have the same name, "#2" is appended, and an output gets an Identity node. Not written: kept
// values (Graph::kept), state flags, and marks of passes (Node::inference_only).
//
// `registry` tells which operator sets contain the versions of the nodes. Throws Unsupported if no
// operator set of a domain fits all nodes (naming two incompatible ones), if an input has no
// element type, or if the file would exceed protobuf's limit of 2 GiB. The written bytes are read
// back and compared before they are returned.
std::string export_onnx(const Graph& graph, const ops::Registry& registry);

// Exports extract_group(graph, nodes); see graph/extract_group.h for its inputs and outputs.
std::string export_group(const Graph& graph, std::span<const NodeId> nodes,
                         const ops::Registry& registry);

// Same as export_group(), with `constants` as additional inputs, in that order, after those of the
// group; their elements are not read. Throws InvalidArgument if one of them is not a constant that
// the group reads.
std::string export_open_group(const Graph& graph, std::span<const NodeId> nodes,
                              std::span<const ValueId> constants, const ops::Registry& registry);

// Chooses for each domain an operator set that gives every node its version. Operator sets by
// domain; always includes "", ONNX's own. Considers nested graphs too. If several sets fit, chooses
// the one nearest to 13 for ONNX's own domain, which most programs support, and the oldest for
// other domains. Throws Unsupported, naming two nodes, if none fits.
std::map<std::string, int> choose_opsets(const Graph& graph, const ops::Registry& registry);

namespace onnx_export {

// Compares a graph with the result of writing and reading it (explain_difference.cc). Returns the
// first difference between the two graphs: in nodes, their ops, versions, attributes, metadata, the
// names and types of the values that they read and make, in inputs, outputs and constants; "" if
// there is none. Values are compared by name, because ids may differ, and so are dimensions.
std::string explain_difference(const Graph& written, const Graph& read);

}  // namespace onnx_export
}  // namespace tessera
