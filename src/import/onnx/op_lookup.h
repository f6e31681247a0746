// Which op a node means: operator sets by domain, and the registry.
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

// ONNX's own domain has two spellings.
std::string normalized_domain(const std::string& domain);

// Throws InvalidModel at `where` for two versions of one domain, Unsupported for a set of ONNX's
// own domain outside [ops::kOldestOpset, ops::kNewestOpset].
Opsets read_opsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports,
                   const std::string& where);

// Sets node.version and gives the op. Throws InvalidModel where the node's domain is not imported;
// Unsupported, naming node, op, domain and version, where the registry has no such op or the
// operator set does not contain it.
const ops::Op& find_op(const ops::Registry& registry, const Opsets& opsets, Node& node);

}  // namespace tessera::onnx_import
