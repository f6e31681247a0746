// Finds the op of a node by its operator set in the registry.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "graph/graph.h"
#include "onnx.pb.h"
#include "ops/registry.h"

namespace tessera::onnx_import {

// Versions of operator sets by domain; "" is ONNX's own.
using Opsets = std::map<std::string, int64_t>;

// Maps both spellings of ONNX's own domain to "".
std::string normalized_domain(const std::string& domain);

// Throws InvalidModel at `where` if a domain has two versions, Unsupported if the version of ONNX's
// own domain is outside of [ops::kOldestOpset, ops::kNewestOpset].
Opsets read_opsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports,
                   const std::string& where);

// Sets node.version and returns the op. Throws InvalidModel if the node's domain is not imported;
// Unsupported, naming node, op, domain and version, if the registry has no such op or the operator
// set does not contain it.
const ops::Op& find_op(const ops::Registry& registry, const Opsets& opsets, Node& node);

}  // namespace tessera::onnx_import
