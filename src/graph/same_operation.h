// Whether nodes compute the same function.
#pragma once

#include "graph/graph.h"
#include "tessera/tensor.h"

namespace tessera {

// Whether both have the same type, dimensions and bytes. False if the elements of one were released
// and the memory differs.
bool have_same_elements(const Tensor& left, const Tensor& right);

// Whether both are the same op with the same attributes, so that equal inputs give equal outputs.
// False for nodes with nested graphs. Random ops count as others do.
bool do_same_operation(const Node& left, const Node& right);

}  // namespace tessera
