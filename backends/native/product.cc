#include "product.h"

#include <algorithm>

namespace tessera::native {

using plugin::Node;
using plugin::Value;

namespace {

// Where the matrix of each product begins, for batches of `dims` that broadcast to `batch`.
std::vector<int64_t> starts_of(const std::vector<int64_t>& dims, const std::vector<int64_t>& batch,
                               int64_t matrix) {
  std::vector<int64_t> strides(batch.size(), 0);
  int64_t stride = matrix;
  for (size_t axis = dims.size(); axis-- > 0;) {
    if (dims[axis] != 1) strides[batch.size() - dims.size() + axis] = stride;
    stride *= dims[axis];
  }
  int64_t count = 1;
  for (const int64_t dim : batch) count *= dim;
  std::vector<int64_t> starts;
  for (int64_t index = 0; index < count; ++index) {
    int64_t rest = index;
    int64_t start = 0;
    for (size_t axis = batch.size(); axis-- > 0;) {
      start += rest % batch[axis] * strides[axis];
      rest /= batch[axis];
    }
    starts.push_back(start);
  }
  return starts;
}

Product mat_mul_of(const Node& node) {
  std::vector<int64_t> left = node.input(0).type().dims;
  std::vector<int64_t> right = node.input(1).type().dims;
  if (left.size() == 1) left.insert(left.begin(), 1);
  if (right.size() == 1) right.push_back(1);
  Product product;
  product.rows = left[left.size() - 2];
  product.depth = left.back();
  product.columns = right.back();
  product.left_row = product.depth;
  product.right_depth = product.columns;
  left.resize(left.size() - 2);
  right.resize(right.size() - 2);
  const bool is_one = std::all_of(right.begin(), right.end(), [](int64_t dim) { return dim == 1; });
  if (is_one) {
    for (const int64_t dim : left) product.rows *= dim;
    product.left_starts = {0};
    return product;
  }
  std::vector<int64_t> batch(std::max(left.size(), right.size()), 1);
  for (const std::vector<int64_t>* dims : {&left, &right}) {
    const size_t offset = batch.size() - dims->size();
    for (size_t axis = 0; axis < dims->size(); ++axis) {
      if ((*dims)[axis] != 1) batch[offset + axis] = (*dims)[axis];
    }
  }
  product.left_starts = starts_of(left, batch, product.rows * product.depth);
  product.right_starts = starts_of(right, batch, product.depth * product.columns);
  product.count = static_cast<int64_t>(product.left_starts.size());
  return product;
}

Product gemm_of(const Node& node) {
  const plugin::Attributes attributes = node.attributes();
  const std::vector<int64_t> left = node.input(0).type().dims;
  const std::vector<int64_t> right = node.input(1).type().dims;
  const bool is_left_turned = attributes.get_int("transA") != 0;
  const bool is_right_turned = attributes.get_int("transB") != 0;
  Product product;
  product.rows = left[is_left_turned ? 1 : 0];
  product.depth = left[is_left_turned ? 0 : 1];
  product.columns = right[is_right_turned ? 0 : 1];
  product.left_starts = {0};
  product.left_row = is_left_turned ? 1 : product.depth;
  product.left_depth = is_left_turned ? product.rows : 1;
  product.right_depth = is_right_turned ? 1 : product.columns;
  product.right_column = is_right_turned ? product.depth : 1;
  product.alpha = attributes.get_float("alpha", 1);
  product.beta = attributes.get_float("beta", 1);
  const Value addend = node.input(2);
  // As in BLAS, a factor of 0 leaves C out, whatever it holds.
  if (!addend.is_present() || product.beta == 0) {
    product.beta = 1;
    return product;
  }
  const std::vector<int64_t> dims = addend.type().dims;
  product.addend = addend.id();
  product.addend_column = !dims.empty() && dims.back() != 1 ? 1 : 0;
  if (dims.size() == 2 && dims[0] != 1) product.addend_row = dims[1];
  return product;
}

}  // namespace

Product product_of(const Node& node) {
  return node.op() == "Gemm" ? gemm_of(node) : mat_mul_of(node);
}

}  // namespace tessera::native
