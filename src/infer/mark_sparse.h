// Decides which values may be stored sparsely, and with which capacity.
#pragma once

#include <map>
#include <string>

#include "graph/graph.h"
#include "ops/registry.h"

namespace tessera {

// Sets Value::sparse of values of `graph`, whose sizes are known. Inputs and outputs named in
// `exchanged` get the form given there, constants that are sparse in the file their own, and
// results of ops that keep zeros the form of their input. Other graphs stay unchanged. Throws
// InvalidArgument for a name that is not an input or output, and for a form that cannot hold the
// value.
void mark_sparse(Graph& graph, const std::map<std::string, SparseForm>& exchanged,
                 const ops::Registry& registry);

}  // namespace tessera
