#include "matmul/matmul_problem.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "base/element_type.h"
#include "base/grain.h"
#include "base/refusal.h"

namespace tessera::native {

using plugin::Node;
using plugin::RunContext;
using plugin::Value;

namespace {

// The last two dimensions of an operand, and its batch before them. A vector on the left is a row,
// a vector on the right is a column.
struct Operand {
  std::span<const int64_t> batch = {};
  int64_t rows = 1;
  int64_t columns = 1;
};

Operand operand_of(std::span<const int64_t> dims, bool is_left) {
  if (dims.size() == 1) {
    return {.rows = is_left ? 1 : dims[0], .columns = is_left ? dims[0] : 1};
  }
  const size_t batch_axes = dims.size() - 2;
  return {dims.first(batch_axes), dims[batch_axes], dims[batch_axes + 1]};
}

// Walks through the batch of an operand from the innermost axis outwards.
class BatchAxes {
 public:
  BatchAxes(std::span<const int64_t> dims, int64_t matrix) : dims_(dims), stride_(matrix) {}

  struct Step {
    int64_t dim = 1;
    int64_t stride = 0;  // 0: broadcast
  };
  Step next() {
    if (dims_.empty()) return {};
    const int64_t dim = dims_.back();
    dims_ = dims_.first(dims_.size() - 1);
    const Step step = {dim, dim == 1 ? 0 : stride_};
    stride_ *= dim;
    return step;
  }

 private:
  std::span<const int64_t> dims_;
  int64_t stride_;
};

MatMulProblem problem_of_matmul(std::span<const int64_t> left_dims,
                                std::span<const int64_t> right_dims) {
  const Operand left = operand_of(left_dims, true);
  const Operand right = operand_of(right_dims, false);
  MatMulProblem problem;
  problem.rows = left.rows;
  problem.depth = left.columns;
  problem.columns = right.columns;
  problem.left_row_stride = problem.depth;
  problem.right_depth_stride = problem.columns;
  problem.has_shared_right =
      std::all_of(right.batch.begin(), right.batch.end(), [](int64_t dim) { return dim == 1; });
  if (problem.has_shared_right) {
    for (const int64_t dim : left.batch) problem.rows *= dim;
    return problem;
  }
  BatchAxes of_left(left.batch, left.rows * left.columns);
  BatchAxes of_right(right.batch, right.rows * right.columns);
  for (size_t axis = std::max(left.batch.size(), right.batch.size()); axis-- > 0;) {
    const BatchAxes::Step one = of_left.next();
    const BatchAxes::Step other = of_right.next();
    const int64_t dim = one.dim == 1 ? other.dim : one.dim;
    problem.count *= dim;
    problem.batch.add({dim, one.stride, other.stride});
  }
  return problem;
}

MatMulProblem problem_of_gemm(const MatMulOp& op, std::span<const int64_t> left,
                              std::span<const int64_t> right) {
  MatMulProblem problem;
  problem.rows = left[op.is_left_transposed ? 1 : 0];
  problem.depth = left[op.is_left_transposed ? 0 : 1];
  problem.columns = right[op.is_right_transposed ? 0 : 1];
  problem.left_row_stride = op.is_left_transposed ? 1 : problem.depth;
  problem.left_depth_stride = op.is_left_transposed ? problem.rows : 1;
  problem.right_depth_stride = op.is_right_transposed ? 1 : problem.columns;
  problem.right_column_stride = op.is_right_transposed ? problem.depth : 1;
  return problem;
}

constexpr int64_t kTile = 128;

template <class T, bool kIsInteger = std::is_integral_v<T>>
struct UnsignedSum {
  using type = T;
};
template <class T>
struct UnsignedSum<T, true> {
  using type = std::make_unsigned_t<T>;
};

template <class T>
void multiply(RunContext& context, const MatMulOp& op, const MatMulProblem& problem,
              const void* left, const void* right, const void* addend, void* to) {
  // Integers wrap around.
  using Sum = typename UnsignedSum<T>::type;
  const T* added = static_cast<const T*>(addend);
  const int64_t grain = kGrain / (problem.depth * problem.columns + 1) + 1;
  const auto multiply_row = [&](int64_t index, int64_t column, int64_t count) {
    const MatMulBatch::Offsets offsets = problem.batch.offsets_of(index / problem.rows);
    const int64_t row = index % problem.rows;
    const T* a = static_cast<const T*>(left) + offsets.left + row * problem.left_row_stride;
    const T* b =
        static_cast<const T*>(right) + offsets.right + column * problem.right_column_stride;
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
        sum *= op.alpha;
        if (other != nullptr) sum += *other * static_cast<T>(op.beta);
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

MatMulOp matmul_op_of(const Node& node) {
  MatMulOp op = {.is_gemm = node.op() == "Gemm"};
  if (!op.is_gemm) return op;
  const plugin::Attributes attributes = node.attributes();
  op.is_left_transposed = attributes.get_int("transA") != 0;
  op.is_right_transposed = attributes.get_int("transB") != 0;
  op.alpha = attributes.get_float("alpha", 1);
  const float beta = attributes.get_float("beta", 1);
  const Value addend = node.input(2);
  // As in BLAS, C is not read if beta is 0, even if it holds NaN.
  if (!addend.is_present() || beta == 0) return op;
  const std::vector<int64_t> dims = addend.type().dims;
  op.beta = beta;
  op.addend = addend.id();
  op.has_addend_columns = !dims.empty() && dims.back() != 1;
  op.has_addend_rows = dims.size() == 2 && dims[0] != 1;
  return op;
}

void MatMulBatch::add(const Axis& axis) {
  if (axis.dim == 1) return;
  if (rank > 0) {
    Axis& inner = axes[rank - 1];
    if (axis.left == inner.left * inner.dim && axis.right == inner.right * inner.dim) {
      inner.dim *= axis.dim;
      return;
    }
  }
  if (rank == kMaxAxes) refuse("takes batches that broadcast in fewer ways only");
  axes[rank++] = axis;
}

MatMulProblem matmul_problem_of(const MatMulOp& op, std::span<const int64_t> left,
                                std::span<const int64_t> right) {
  MatMulProblem problem =
      op.is_gemm ? problem_of_gemm(op, left, right) : problem_of_matmul(left, right);
  if (op.has_addend_columns) problem.addend_column_stride = 1;
  if (op.has_addend_rows) {
    problem.addend_row_stride = op.has_addend_columns ? problem.columns : 1;
  }
  return problem;
}

GenericMatMul find_generic_matmul(int32_t data_type) {
  return find_loop<double, int32_t, int64_t, uint32_t, uint64_t>(
      data_type, []<class T>() -> GenericMatMul { return multiply<T>; });
}

}  // namespace tessera::native
