// Marks the inputs and outputs that the caller passes or receives in memory of a device.
#pragma once

#include <map>
#include <string>

#include "graph/graph.h"

namespace tessera {

// Sets Value::io_device of the inputs and outputs of `graph` with these names. Throws
// InvalidArgument for a name that is no input or output, and for a value whose size is not known or
// that devices cannot have.
void mark_io_devices(Graph& graph, const std::map<std::string, std::string>& devices);

}  // namespace tessera
