// Runs one candidate and compares it with values that the reference has computed.
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
  double relative = 1e-5;    // relative to the element
  double of_largest = 5e-6;  // relative to the largest element of the tensor
  // If not empty: the largest error of each element of the outputs, in place of the two above.
  std::vector<double> of_elements = {};
  // The lowest one that candidates may compute in; TESSERA_PRECISION_.
  int precision = TESSERA_PRECISION_FLOAT32;
};

// Explains what is wrong with `candidate`; "" if it is fine. Builds it and runs it twice, in place
// and adding if it declares support for these, and with inputs that are parts of larger tensors if
// it accepts them. `values` are all values of `graph`. Every buffer is surrounded by guard bytes.
// For views and joint candidates, checks where their parts are.
std::string explain_wrong(const Graph& graph, const std::vector<Tensor>& values,
                          const LayoutTable& layouts, const Candidate& candidate, ThreadPool& pool,
                          const Tolerance& tolerance);

}  // namespace tessera
