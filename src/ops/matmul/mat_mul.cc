// MatMul with NumPy's semantics: the last two axes are matrices, the axes before them broadcast. A
// vector is a matrix of one row (left) or one column (right), whose axis is dropped from the
// result.
#include "ops/matmul/mat_mul.h"

#include <array>

#include "ops/broadcast.h"
#include "ops/matmul/dense_operand.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

[[noreturn]] void fail_shapes(const InferContext& context, const std::string& expected) {
  context.fail("expected " + expected + ", found " + text(*context.shape(0)) + " and " +
               text(*context.shape(1)));
}

// The broadcast of the batch dimensions of two operands.
Shape batch_shape(const InferContext& context, const Shape& left, const Shape& right) {
  const std::optional<Shape> batch =
      broadcast(Shape(left.begin(), left.end() - 2), Shape(right.begin(), right.end() - 2));
  if (!batch) fail_shapes(context, "batches that broadcast");
  return *batch;
}

void infer_mat_mul(InferContext& context) {
  context.set_output(0, context.element(0));
  const Shape* left_shape = context.shape(0);
  const Shape* right_shape = context.shape(1);
  for (const size_t index : {size_t{0}, size_t{1}}) {
    if (context.shape(index) != nullptr && context.shape(index)->empty()) {
      context.fail_input(index,
                         "expected a vector, a matrix or a batch of matrices, found a scalar");
    }
  }
  if (left_shape == nullptr || right_shape == nullptr) return;
  Shape left = *left_shape;
  Shape right = *right_shape;
  if (left_shape->size() == 1) left.insert(left.begin(), Dim(1));
  if (right_shape->size() == 1) right.emplace_back(1);
  const Dim& depth = left.back();
  const Dim& other_depth = right[right.size() - 2];
  if (depth.is_known() && other_depth.is_known() && depth != other_depth) {
    fail_shapes(context, "as many columns on the left as rows on the right");
  }
  Shape output = batch_shape(context, left, right);
  if (left_shape->size() > 1) output.push_back(left[left.size() - 2]);
  if (right_shape->size() > 1) output.push_back(right.back());
  context.set_output(0, context.element(0), std::move(output));
}

// One operand as a batch of [lines, line_length] matrices.
struct Batch {
  std::span<const int64_t> dims;
  int64_t lines = 1;
  int64_t line_length = 1;
};

Batch batch_of(std::span<const int64_t> dims, bool is_left) {
  Batch batch;
  if (dims.size() == 1) {
    (is_left ? batch.line_length : batch.lines) = dims[0];
    return batch;
  }
  batch.dims = dims.first(dims.size() - 2);
  batch.lines = dims[dims.size() - 2];
  batch.line_length = dims.back();
  return batch;
}

// The first element of the matrix of each product. `count` is the number of products, `output`
// their batch dimensions.
std::pmr::vector<int64_t> starts_of(const Batch& batch, std::span<const int64_t> output,
                                    int64_t count, std::pmr::memory_resource& memory) {
  const BroadcastLoop loop(output, {batch.dims}, &memory);
  const int64_t matrix = batch.lines * batch.line_length;
  std::pmr::vector<int64_t> starts(&memory);
  starts.reserve(static_cast<size_t>(count));
  loop.for_each_run(0, count, [&](const BroadcastLoop::Run& run) {
    for (int64_t index = 0; index < run.length; ++index) {
      starts.push_back((run.inputs[0] + index * loop.step(0)) * matrix);
    }
  });
  return starts;
}

template <class T, class Sum>
void multiply_batches(const KernelCall& call) {
  Batch left = batch_of(call.inputs[0].dims, true);
  Batch right = batch_of(call.inputs[1].dims, false);
  // The batch dimensions of the output: all but the rows of the left and the columns of the right
  // matrix.
  const size_t matrix_axes =
      (call.inputs[0].rank() > 1 ? size_t{1} : 0) + (call.inputs[1].rank() > 1 ? size_t{1} : 0);
  std::span<const int64_t> dims =
      call.outputs[0].dims.first(call.outputs[0].dims.size() - matrix_axes);
  // If there is one right matrix for all left ones, multiply all left rows in a single product.
  if (element_count(right.dims) == 1 && left.dims.size() >= right.dims.size()) {
    left.lines *= element_count(left.dims);
    left.dims = {};
    right.dims = {};
    dims = {};
  }
  const int64_t count = element_count(dims);
  const std::pmr::vector<int64_t> left_starts = starts_of(left, dims, count, call.scratch);
  const std::pmr::vector<int64_t> right_starts = starts_of(right, dims, count, call.scratch);
  const ReadDense<Sum, T> read_left = {call.inputs[0].as<T>().data(), left.line_length,
                                       left_starts};
  const ReadDense<Sum, T> read_right = {call.inputs[1].as<T>().data(), right.line_length,
                                        right_starts};
  T* output = call.outputs[0].as<T>().data();
  const auto store = [&](int64_t which, int64_t row, int64_t column, int64_t length,
                         const Sum* sums) {
    T* target = output + (which * left.lines + row) * right.line_length + column;
    for (int64_t index = 0; index < length; ++index) target[index] = narrow<T>(sums[index]);
  };
  multiply_matrices<Sum>(call, {.count = count,
                                .rows = left.lines,
                                .columns = right.line_length,
                                .depth = left.line_length,
                                .left = {read_left, true},
                                .right = {read_right, false},
                                .store = store});
}

int64_t mat_mul_flops(const Node& node, std::span<const Type> inputs,
                      std::span<const Type> outputs) {
  const Dim depth = inputs[0].shape->back();
  return multiply(flops_per_output(node, inputs, outputs), multiply(depth, 2)).value();
}

}  // namespace

std::vector<Op> mat_mul_ops();

void run_mat_mul(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  visit_product_types(call.outputs[0].type, [&](auto tag, auto sum_tag) {
    multiply_batches<typename decltype(tag)::type, typename decltype(sum_tag)::type>(call);
  });
}

std::optional<Shape> product_shape(const InferContext& context, size_t left, size_t right) {
  static const Op kMatMul = std::move(mat_mul_ops().front());
  const std::array inputs = {context.input(left), context.input(right)};
  InferContext product(kMatMul, context.node(), inputs);
  infer_mat_mul(product);
  return product.outputs()[0].type.shape;
}

std::vector<Op> mat_mul_ops() {
  return {{.name = "MatMul",
           .versions = {1, 9, 13},
           .inputs = {{"A", "T"}, {"B", "T"}},
           .outputs = {{"Y", "T"}},
           .type_variables = {{"T", kProductTypes}},
           .traits = kProduct | kBoundsMagnitude,
           .infer = infer_mat_mul,
           .flops = mat_mul_flops,
           .kernel = run_mat_mul}};
}

}  // namespace tessera::ops
