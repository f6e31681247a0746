#include "matmul/matmul_problem.h"

#include <algorithm>
#include <type_traits>

#include "base/element_type.h"
#include "base/grain.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Node;
using plugin::RunContext;
using plugin::Value;

namespace {

// The offset of the matrix of each product, for batches of `dims` that broadcast to `batch`.
std::vector<int64_t> starts_of(const std::vector<int64_t>& dims, const std::vector<int64_t>& batch,
                               int64_t matrix) {
  std::vector<int64_t> strides = plugin::broadcast_strides(dims, batch.size());
  for (int64_t& stride : strides) stride *= matrix;
  return batch_offsets(batch, strides);
}

MatMulProblem problem_of_matmul(const Node& node) {
  std::vector<int64_t> left = node.input(0).type().dims;
  std::vector<int64_t> right = node.input(1).type().dims;
  if (left.size() == 1) left.insert(left.begin(), 1);
  if (right.size() == 1) right.push_back(1);
  MatMulProblem problem;
  problem.rows = left[left.size() - 2];
  problem.depth = left.back();
  problem.columns = right.back();
  problem.left_row_stride = problem.depth;
  problem.right_depth_stride = problem.columns;
  left.resize(left.size() - 2);
  right.resize(right.size() - 2);
  const bool is_one = std::all_of(right.begin(), right.end(), [](int64_t dim) { return dim == 1; });
  if (is_one) {
    for (const int64_t dim : left) problem.rows *= dim;
    problem.left_offsets = {0};
    return problem;
  }
  std::vector<int64_t> batch(std::max(left.size(), right.size()), 1);
  for (const std::vector<int64_t>* dims : {&left, &right}) {
    const size_t offset = batch.size() - dims->size();
    for (size_t axis = 0; axis < dims->size(); ++axis) {
      if ((*dims)[axis] != 1) batch[offset + axis] = (*dims)[axis];
    }
  }
  problem.left_offsets = starts_of(left, batch, problem.rows * problem.depth);
  problem.right_offsets = starts_of(right, batch, problem.depth * problem.columns);
  problem.count = static_cast<int64_t>(problem.left_offsets.size());
  return problem;
}

MatMulProblem problem_of_gemm(const Node& node) {
  const plugin::Attributes attributes = node.attributes();
  const std::vector<int64_t> left = node.input(0).type().dims;
  const std::vector<int64_t> right = node.input(1).type().dims;
  const bool is_left_transposed = attributes.get_int("transA") != 0;
  const bool is_right_transposed = attributes.get_int("transB") != 0;
  MatMulProblem problem;
  problem.rows = left[is_left_transposed ? 1 : 0];
  problem.depth = left[is_left_transposed ? 0 : 1];
  problem.columns = right[is_right_transposed ? 0 : 1];
  problem.left_offsets = {0};
  problem.left_row_stride = is_left_transposed ? 1 : problem.depth;
  problem.left_depth_stride = is_left_transposed ? problem.rows : 1;
  problem.right_depth_stride = is_right_transposed ? 1 : problem.columns;
  problem.right_column_stride = is_right_transposed ? problem.depth : 1;
  problem.alpha = attributes.get_float("alpha", 1);
  problem.beta = attributes.get_float("beta", 1);
  const Value addend = node.input(2);
  // As in BLAS, C is not read if beta is 0, even if it holds NaN.
  if (!addend.is_present() || problem.beta == 0) {
    problem.beta = 1;
    return problem;
  }
  const std::vector<int64_t> dims = addend.type().dims;
  problem.addend = addend.id();
  problem.addend_column_stride = !dims.empty() && dims.back() != 1 ? 1 : 0;
  if (dims.size() == 2 && dims[0] != 1) problem.addend_row_stride = dims[1];
  return problem;
}

constexpr int64_t kTile = 128;

template <class T>
void multiply(RunContext& context, const MatMulProblem& problem, const void* left,
              const void* right, const void* addend, void* to) {
  // Integers wrap around as narrower ones do.
  using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
  const T* added = static_cast<const T*>(addend);
  const int64_t grain = kGrain / (problem.depth * problem.columns + 1) + 1;
  const auto multiply_row = [&](int64_t index, int64_t column, int64_t count) {
    const auto which = static_cast<size_t>(index / problem.rows);
    const int64_t row = index % problem.rows;
    const T* a =
        static_cast<const T*>(left) + problem.left_offsets[which] + row * problem.left_row_stride;
    const T* b = static_cast<const T*>(right) + column * problem.right_column_stride +
                 (problem.has_shared_right() ? 0 : problem.right_offsets[which]);
    Sum sums[kTile] = {};
    for (int64_t depth = 0; depth < problem.depth; ++depth) {
      const auto factor = static_cast<Sum>(a[depth * problem.left_depth_stride]);
      const T* line = b + depth * problem.right_depth_stride;
      for (int64_t position = 0; position < count; ++position) {
        sums[position] += factor * static_cast<Sum>(line[position * problem.right_column_stride]);
      }
    }
    T* target = static_cast<T*>(to) + index * problem.columns + column;
    for (int64_t position = 0; position < count; ++position) {
      Sum sum = sums[position];
      const T* other = added == nullptr ? nullptr
                                        : added + row * problem.addend_row_stride +
                                              (column + position) * problem.addend_column_stride;
      if constexpr (std::is_floating_point_v<T>) {
        sum *= problem.alpha;
        if (other != nullptr) sum += *other * static_cast<T>(problem.beta);
      } else if (other != nullptr) {
        sum += static_cast<Sum>(*other);
      }
      target[position] = static_cast<T>(sum);
    }
  };
  context.parallel_for(problem.count * problem.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      for (int64_t column = 0; column < problem.columns; column += kTile) {
        multiply_row(index, column, std::min(kTile, problem.columns - column));
      }
    }
  });
}

}  // namespace

std::vector<int64_t> batch_offsets(const std::vector<int64_t>& batch,
                                   const std::vector<int64_t>& strides) {
  int64_t count = 1;
  for (const int64_t dim : batch) count *= dim;
  std::vector<int64_t> offsets;
  for (int64_t index = 0; index < count; ++index) {
    int64_t rest = index;
    int64_t offset = 0;
    for (size_t axis = batch.size(); axis-- > 0; rest /= batch[axis]) {
      offset += rest % batch[axis] * strides[axis];
    }
    offsets.push_back(offset);
  }
  return offsets;
}

MatMulProblem matmul_problem_of(const Node& node) {
  return node.op() == "Gemm" ? problem_of_gemm(node) : problem_of_matmul(node);
}

GenericMatMul find_generic_matmul(int32_t data_type) {
  return find_loop<double, int32_t, int64_t, uint32_t, uint64_t>(
      data_type, []<class T>() -> GenericMatMul { return multiply<T>; });
}

}  // namespace tessera::native
