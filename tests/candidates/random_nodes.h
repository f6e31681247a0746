// Random nodes that the property tests of several backends draw.
#pragma once

#include <string>
#include <vector>

#include "random_graph.h"
#include "random_recurrence.h"

namespace tessera {

// `x` with its axes in any order.
RandomGraph random_transpose(Dice& dice, const ops::Registry& registry, Tensor x);

// A BatchNormalization of a tensor of these sizes, sometimes with a Relu. `variance` is the name of
// its last input: "variance", or "scale", which is an input of it too.
RandomGraph random_batch_normalization(Dice& dice, const ops::Registry& registry,
                                       const std::vector<int64_t>& dims,
                                       const std::string& variance = "variance");

// A MaxPool both of whose outputs are read.
RandomGraph max_pool_with_indices(Dice& dice, const ops::Registry& registry);

// The shapes of the operands of a MatMul, of up to `max_batch` matrices along each of `batch_axes`
// axes, and of its result. A side may be a vector.
struct MatMulShapes {
  std::vector<int64_t> left;
  std::vector<int64_t> right;
  std::vector<int64_t> result;
};
MatMulShapes random_mat_mul_shapes(Dice& dice, int64_t rows, int64_t depth, int64_t columns,
                                   int64_t batch_axes, int64_t max_batch);

// A recurrent node of one hidden unit with these attributes and with inputs of these names: "x",
// the constants "w", "r", "holes" and "lengths", and "fed", which are weights that are no constant.
RandomGraph small_recurrence(Dice& dice, const ops::Registry& registry, const Recurrent& recurrent,
                             const Attributes& attributes, const std::vector<std::string>& inputs);

}  // namespace tessera
