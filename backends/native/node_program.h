// What each elementwise op of ONNX is as steps of a program.
#pragma once

#include "program_writer.h"
#include "tessera/backend.h"

namespace tessera::native {

// The output that holds what `node` computes element by element; one that is not present where the
// node is nothing of this kind.
plugin::Value elementwise_result(const plugin::Node& node);

// Appends what `node` computes to a program whose result has the dimensions of the node's. Throws
// Failure with the reason where there is no way to.
void write_node(const plugin::Node& node, ProgramWriter& writer);

}  // namespace tessera::native
