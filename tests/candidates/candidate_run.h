// One candidate, run and held against values that the reference has computed.
#pragma once

#include <string>
#include <vector>

#include "backend/candidates.h"
#include "backend/layouts.h"
#include "base/parallel.h"
#include "graph/graph.h"
#include "tessera/tensor.h"

namespace tessera {

struct Tolerance {
  double relative = 1e-5;    // of the element
  double of_largest = 5e-6;  // of the largest element of the tensor
};

// Says what is wrong with `candidate`, or "". It is built and run twice, in place and adding where
// it says that it can, with inputs in parts of larger tensors where it takes them; `values` are all
// values of `graph`. Guards lie around every buffer. Of views and joint candidates it looks at
// where the parts lie.
std::string explain_wrong(const Graph& graph, const std::vector<Tensor>& values,
                          const LayoutTable& layouts, const Candidate& candidate, ThreadPool& pool,
                          const Tolerance& tolerance);

}  // namespace tessera
