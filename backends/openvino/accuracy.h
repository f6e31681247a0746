// Where OpenVINO is not as accurate as the ops must be.
#pragma once

#include <string>

#include "tessera/backend.h"

namespace tessera::openvino {

// Why `node` of `graph` is refused; "" if the error of its results is a few units in the last
// place, or of the sum of magnitudes.
std::string explain_inexact(const plugin::Graph& graph, const plugin::Node& node);

}  // namespace tessera::openvino
