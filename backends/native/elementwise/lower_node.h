// Lowers elementwise nodes of ONNX to steps of a program.
#pragma once

#include "elementwise/program_builder.h"
#include "tessera/backend.h"

namespace tessera::native {

// The output that `node` computes elementwise. If the op is not elementwise, the result's
// is_present() is false.
plugin::Value elementwise_result(const plugin::Node& node);

// Whether it is a QuantizeLinear or DequantizeLinear, of ONNX or com.microsoft.
bool is_quantization(const plugin::Node& node);

// Appends the computation of `node` to a program whose result has the dimensions of the node's
// result. Throws Failure with the reason if the node is not supported.
void lower_node(const plugin::Node& node, ProgramBuilder& builder);

}  // namespace tessera::native
