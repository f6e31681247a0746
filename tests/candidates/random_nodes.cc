#include "random_nodes.h"

#include <algorithm>
#include <utility>

#include "graph/attributes_test.h"

namespace tessera {

RandomGraph random_transpose(Dice& dice, const ops::Registry& registry, Tensor x) {
  RandomGraph made(registry, 13);
  const size_t rank = x.dims().size();
  made.input("x", std::move(x));
  std::vector<int64_t> order;
  for (size_t axis = 0; axis < rank; ++axis) {
    order.insert(order.begin() + dice.whole(0, static_cast<int64_t>(axis)),
                 static_cast<int64_t>(axis));
  }
  Attributes attributes;
  if (!dice.one_in(5)) attributes.set("perm", order);
  made.node("y", "Transpose", {"x"}, attributes);
  return made.ending_in("y");
}

RandomGraph random_batch_normalization(Dice& dice, const ops::Registry& registry,
                                       const std::vector<int64_t>& dims,
                                       const std::string& variance) {
  RandomGraph made(registry, dice.one_in(2) ? 9 : 15);
  made.input("x", dice.tensor(dims, -3, 3));
  made.operand(dice, "scale", dice.tensor({dims[1]}, 0.5F, 2));
  made.operand(dice, "shift", dice.tensor({dims[1]}));
  made.operand(dice, "mean", dice.tensor({dims[1]}));
  made.operand(dice, "variance", dice.tensor({dims[1]}, 0.1F, 4));
  Attributes attributes;
  if (dice.one_in(2)) attributes.set("epsilon", dice.number(1e-6F, 1e-2F));
  made.node("y", "BatchNormalization", {"x", "scale", "shift", "mean", variance}, attributes);
  const bool has_relu = dice.one_in(2);
  if (has_relu) made.node("z", "Relu", {"y"});
  return made.ending_in(has_relu ? "z" : "y");
}

RandomGraph max_pool_with_indices(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 20);
  made.input("x", dice.tensor({1, 2, 6, 6}));
  made.node("pool", "MaxPool", {"x"}, {"y", "indices"}, attributes_of({{"kernel_shape", {2, 2}}}));
  return made.ending_in("y", "indices");
}

MatMulShapes random_mat_mul_shapes(Dice& dice, int64_t rows, int64_t depth, int64_t columns,
                                   int64_t batch_axes, int64_t max_batch) {
  MatMulShapes shapes;
  auto& [left, right, result] = shapes;
  const int64_t right_axes = dice.whole(0, batch_axes);
  for (int64_t axis = 0; axis < batch_axes; ++axis) {
    const int64_t dim = dice.whole(1, max_batch);
    left.push_back(dice.one_in(4) ? 1 : dim);
    const bool is_right = axis >= batch_axes - right_axes;
    if (is_right) right.push_back(dice.one_in(4) ? 1 : dim);
    result.push_back(std::max(left.back(), is_right ? right.back() : 1));
  }
  const bool is_left_vector = batch_axes == 0 && dice.one_in(5);
  const bool is_right_vector = right_axes == 0 && dice.one_in(5);
  if (!is_left_vector) left.push_back(rows);
  left.push_back(depth);
  right.push_back(depth);
  if (!is_right_vector) right.push_back(columns);
  if (!is_left_vector) result.push_back(rows);
  if (!is_right_vector) result.push_back(columns);
  return shapes;
}

RandomGraph small_recurrence(Dice& dice, const ops::Registry& registry, const Recurrent& recurrent,
                             const Attributes& attributes, const std::vector<std::string>& inputs) {
  RandomGraph made(registry, 14);
  const int64_t directions = attributes.find_string("direction") != nullptr ? 2 : 1;
  made.input("x", dice.tensor({2, 2, 1}));
  made.input("fed", dice.tensor({directions, recurrent.gates, 1}));
  made.constant("w", dice.tensor({directions, recurrent.gates, 1}));
  made.constant("r", dice.tensor({directions, recurrent.gates, 1}));
  made.constant("holes", dice.tensor({directions, 3}));
  made.constant("lengths", Tensor::from<int32_t>(DataType::Int32, {2}, std::vector<int32_t>{2, 1}));
  made.node("node", recurrent.op, inputs, {"y"}, attributes);
  return made.ending_in("y");
}

}  // namespace tessera
