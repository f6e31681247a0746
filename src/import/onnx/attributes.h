// Attributes of nodes, but for nested graphs, which are graph_builder.h's.
#pragma once

#include <string>

#include "graph/attribute.h"
#include "import/onnx/tensors.h"
#include "onnx.pb.h"

namespace tessera::onnx_import {

// What the attribute holds: as declared, or, where the file does not say, what it gives a value
// for. Throws InvalidModel at `where` where that cannot be told.
onnx::AttributeProto::AttributeType attribute_type(const onnx::AttributeProto& proto,
                                                   const std::string& where);

// Anything but nested graphs. Throws Unsupported for sparse tensors and lists of types, and what
// TensorReader::read() throws.
Attribute read_attribute(const onnx::AttributeProto& proto, TensorReader& tensors,
                         const std::string& where);

}  // namespace tessera::onnx_import
