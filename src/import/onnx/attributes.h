// Reads attributes of nodes, except nested graphs (graph_builder.h).
#pragma once

#include <string>

#include "graph/attribute.h"
#include "import/onnx/tensors.h"
#include "onnx.pb.h"

namespace tessera::onnx_import {

// The declared kind of the attribute or, if the file declares none, the kind of the field that is
// set. Throws InvalidModel at `where` if that is ambiguous.
onnx::AttributeProto::AttributeType attribute_type(const onnx::AttributeProto& proto,
                                                   const std::string& where);

// Reads an attribute of any kind except nested graphs. Throws Unsupported for sparse tensors and
// lists of types, and what TensorReader::read() throws.
Attribute read_attribute(const onnx::AttributeProto& proto, TensorReader& tensors,
                         const std::string& where);

}  // namespace tessera::onnx_import
