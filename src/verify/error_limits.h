// How far results of kernels may be from the exact ones, element by element: the bounds that ops
// state (ops::ErrorBound), carried through the nodes of a group. compare_tensors.h judges by it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/threads/parallel.h"
#include "graph/graph.h"
#include "ops/registry.h"
#include "tessera/tensor.h"

namespace tessera::verification {

// Of one value. is_known() is false for values that were not analysed.
struct ErrorLimits {
  Tensor exact;  // float64 if the value is floating-point, else of its own type
  // float64 of the same dimensions: the largest |found - exact|. For other types: elements that are
  // accepted too, because errors within their bounds may decide for them (Floor, Less, ArgMax).
  // Empty: no difference is allowed.
  Tensor spread;

  bool is_known() const { return !exact.is_empty(); }
};

// How results are compared with the reference.
enum class Judge : uint8_t {
  // Within the bounds of all nodes added up, in ulps of the expected elements. Quick, and refuses
  // more than Limits: errors may be larger where terms cancel.
  Ulps,
  Limits,  // see ErrorLimits
  Wide,    // by a tolerance for the type, relative to the largest elements too
};

// Results of products that depend on true values alone, by name of the value and kind of result:
// many groups of a graph begin with the same product.
struct KnownProducts {
  std::map<std::string, Tensor> by_value;
  int64_t bytes = 0;
  int64_t max_bytes = int64_t{256} << 20;
};

// After more products in a row, nothing useful follows from the bounds of single nodes.
inline constexpr int kMaxProductsInARow = 2;

// The limits of all values of `graph`, by id. `known` has the values of its inputs and constants,
// by id. The graph is computed in float64, on the reference kernels. Each node adds its own bound;
// the errors of its inputs are carried through it:
//   - by sums and products of magnitudes, if its bound counts terms;
//   - by computing it for inputs that are larger and smaller by their error, if each element of its
//     result depends on few elements of the input, or monotonically;
//   - else by computing it for errors of random signs, and of opposite signs for any two elements.
// nullopt if nothing can be said: an op states no bound or cannot compute in float64, a node has
// nested graphs, or there are more than kMaxProductsInARow.
std::optional<std::vector<ErrorLimits>> error_limits(const Graph& graph,
                                                     const ops::Registry& registry,
                                                     std::vector<Tensor> known, ThreadPool& pool,
                                                     KnownProducts* products = nullptr);

// The sum of the bounds of all nodes of `graph` in ulps; nullopt if one of them is not stated.
std::optional<double> ulps_of(const Graph& graph, const ops::Registry& registry);

}  // namespace tessera::verification
