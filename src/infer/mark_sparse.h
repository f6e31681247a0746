// Which values may be stored sparsely, and with how much room.
#pragma once

#include <map>
#include <string>

#include "graph/graph.h"
#include "ops/registry.h"

namespace tessera {

// Gives values of `graph`, whose sizes are known, their `sparse` form: inputs and outputs named in
// `exchanged` the one given there, constants that are sparse in the file their own, and what is
// made of these by ops that keep zeros the form of what it is made of. A graph without any stays as
// it is. Throws InvalidArgument for a name that is no input or output, and for a form that does not
// hold the value.
void mark_sparse(Graph& graph, const std::map<std::string, SparseForm>& exchanged,
                 const ops::Registry& registry);

}  // namespace tessera
