// Inputs and outputs by name, and marks of those that the caller passes or receives in memory of a
// device.
#pragma once

#include <map>
#include <string>

#include "graph/graph.h"

namespace tessera {

// The input or output of `graph` with this name. Throws InvalidArgument at `where`, listing all, if
// there is none.
Value& io_value(Graph& graph, const std::string& name, const std::string& where);

// Sets Value::io_device of the inputs and outputs of `graph` with these names. Throws
// InvalidArgument for a name that is no input or output, and for a value whose size is not known or
// that devices cannot have.
void mark_io_devices(Graph& graph, const std::map<std::string, std::string>& devices);

}  // namespace tessera
