// FusedMatMul, TransposeMatMul and FusedMatMulActivation: a factor times MatMul of operands whose
// axes may be permuted, then an activation function. matmul/mat_mul.cc has MatMul.
#include <algorithm>

#include "ops/broadcast.h"
#include "ops/contrib/contrib.h"
#include "ops/contrib/fused_activation.h"
#include "ops/contrib/strided_operand.h"
#include "ops/domains.h"
#include "ops/strided_view.h"

namespace tessera::ops {
namespace {

// How the axes of an operand are permuted before the product. Operands of rank 1 stay as they are.
struct Permutation {
  bool swaps_last = false;   // transA: the last two axes
  bool moves_first = false;  // transBatchA: the first axis goes behind the other batch axes

  // Permutes what belongs to the axes, such as sizes.
  template <class List>
  void apply(List& axes) const {
    if (axes.size() < 2) return;
    if (moves_first) std::rotate(axes.begin(), axes.begin() + 1, axes.end() - 1);
    if (swaps_last) std::swap(axes.back(), *(axes.end() - 2));
  }
};

Permutation permutation_of(const Node& node, const char* swap, const char* move) {
  const int64_t* const moves = node.attributes.find_int(move);
  return {.swaps_last = node.attributes.get_int(swap) != 0,
          .moves_first = moves != nullptr && *moves != 0};
}

Permutation left_permutation(const Node& node) {
  return permutation_of(node, "transA", "transBatchA");
}

Permutation right_permutation(const Node& node) {
  return permutation_of(node, "transB", "transBatchB");
}

[[noreturn]] void fail_product(const InferContext& context, const std::string& expected,
                               const Shape& left, const Shape& right) {
  context.fail("expected " + expected + ", found [" + text(left) + "] and [" + text(right) +
               "] after transposing");
}

void infer_fused_mat_mul(InferContext& context) {
  read_activation(context.node());
  context.set_output(0, context.element(0));
  for (const size_t index : {size_t{0}, size_t{1}}) {
    if (context.shape(index) != nullptr && context.shape(index)->empty()) {
      context.fail_input(index, "expected a vector, a matrix or a batch, found a scalar");
    }
  }
  if (context.shape(0) == nullptr || context.shape(1) == nullptr) return;
  Shape left = *context.shape(0);
  Shape right = *context.shape(1);
  const bool moves =
      left_permutation(context.node()).moves_first || right_permutation(context.node()).moves_first;
  if (moves && (left.size() < 3 || left.size() != right.size())) {
    context.fail(
        "expected inputs of one rank of at least 3 for 'transBatchA' or 'transBatchB', "
        "found [" +
        text(left) + "] and [" + text(right) + "]");
  }
  left_permutation(context.node()).apply(left);
  right_permutation(context.node()).apply(right);
  const bool has_rows = left.size() > 1;
  const bool has_columns = right.size() > 1;
  if (!has_rows) left.insert(left.begin(), Dim(1));
  if (!has_columns) right.emplace_back(1);
  if (!can_be_equal({left.back()}, {*(right.end() - 2)})) {
    fail_product(context, "as many columns on the left as rows on the right", left, right);
  }
  std::optional<Shape> output =
      broadcast(Shape(left.begin(), left.end() - 2), Shape(right.begin(), right.end() - 2));
  if (!output) fail_product(context, "batches that broadcast", left, right);
  if (has_rows) output->push_back(*(left.end() - 2));
  if (has_columns) output->push_back(right.back());
  context.set_output(0, context.element(0), output);
}

// An operand as a batch of matrices [rows, columns], with the strides of all axes.
struct StridedBatch {
  std::pmr::vector<int64_t> dims;
  std::pmr::vector<int64_t> strides;
  StridedMatrix matrix;

  std::span<const int64_t> batch_dims() const { return std::span(dims).first(dims.size() - 2); }
};

StridedBatch strided_batch(const KernelCall& call, size_t index, const Permutation& permutation) {
  const auto given = call.inputs[index].dims;
  StridedBatch batch = {.dims = {given.begin(), given.end(), &call.scratch},
                        .strides = dense_strides(given, &call.scratch)};
  permutation.apply(batch.dims);
  permutation.apply(batch.strides);
  if (given.size() == 1) {
    // A vector is a row on the left and a column on the right.
    const std::ptrdiff_t place = index == 0 ? 0 : 1;
    batch.dims.insert(batch.dims.begin() + place, 1);
    batch.strides.insert(batch.strides.begin() + place, given[0]);
  }
  batch.matrix = {.row_stride = *(batch.strides.end() - 2), .column_stride = batch.strides.back()};
  return batch;
}

// The first element of the matrix of each product; `dims` are the batch dimensions of the output.
std::pmr::vector<int64_t> matrix_starts(const KernelCall& call, const StridedBatch& batch,
                                        std::span<const int64_t> dims) {
  StridedView view(&call.scratch);
  view.dims.assign(dims.begin(), dims.end());
  view.strides.assign(dims.size(), 0);
  const auto own = batch.batch_dims();
  const size_t offset = dims.size() - own.size();
  for (size_t axis = 0; axis < own.size(); ++axis) {
    if (own[axis] != 1) view.strides[offset + axis] = batch.strides[axis];
  }
  const int64_t count = element_count(dims);
  std::pmr::vector<int64_t> starts(&call.scratch);
  starts.reserve(static_cast<size_t>(count));
  Odometer odometer(view, 0);
  for (int64_t index = 0; index < count; ++index, odometer.advance()) {
    starts.push_back(odometer.offset());
  }
  return starts;
}

template <class T>
void multiply_permuted(const KernelCall& call, const FusedActivation& activation) {
  const StridedBatch left = strided_batch(call, 0, left_permutation(call.node));
  const StridedBatch right = strided_batch(call, 1, right_permutation(call.node));
  const size_t matrix_axes =
      (call.inputs[0].rank() > 1 ? size_t{1} : 0) + (call.inputs[1].rank() > 1 ? size_t{1} : 0);
  const auto dims = call.outputs[0].dims.first(call.outputs[0].dims.size() - matrix_axes);
  const std::pmr::vector<int64_t> left_starts = matrix_starts(call, left, dims);
  const std::pmr::vector<int64_t> right_starts = matrix_starts(call, right, dims);
  const int64_t rows = *(left.dims.end() - 2);
  const int64_t columns = right.dims.back();
  const double alpha = call.node.attributes.get_float("alpha");
  T* output = call.outputs[0].as<T>().data();
  const auto finish = [&](int64_t, int64_t, std::span<double> sums) {
    for (double& sum : sums) sum *= alpha;
    activation.apply(sums);
  };
  multiply_strided(call,
                   {.count = static_cast<int64_t>(left_starts.size()),
                    .rows = rows,
                    .columns = columns,
                    .depth = left.dims.back()},
                   ReadStrided<T>{call.inputs[0].as<T>().data(), left.matrix, left_starts, true},
                   ReadStrided<T>{call.inputs[1].as<T>().data(), right.matrix, right_starts, false},
                   output, finish);
}

void run_fused_mat_mul(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  const FusedActivation activation = read_activation(call.node);
  visit_floating(call.outputs[0].type, [&](auto tag) {
    multiply_permuted<typename decltype(tag)::type>(call, activation);
  });
}

// A multiply-add for each term of each sum.
int64_t fused_mat_mul_flops(const Node& node, std::span<const Type> inputs,
                            std::span<const Type> outputs) {
  Shape left = *inputs[0].shape;
  left_permutation(node).apply(left);
  return multiply(flops_per_output(node, inputs, outputs), multiply(left.back(), 2)).value();
}

Op fused_mat_mul(const char* name) {
  return {.name = name,
          .domain = kMicrosoftDomain,
          .versions = {1},
          .inputs = {{"A", "T"}, {"B", "T"}},
          .outputs = {{"Y", "T"}},
          .type_variables = {{"T", kFloatTypes}},
          .attributes = {{"alpha", AttributeKind::Float, 1.0F},
                         {"transA", AttributeKind::Int, int64_t{0}},
                         {"transB", AttributeKind::Int, int64_t{0}}},
          .infer = infer_fused_mat_mul,
          .flops = fused_mat_mul_flops,
          .kernel = run_fused_mat_mul};
}

}  // namespace

std::vector<Op> fused_mat_mul_ops() {
  Op fused = fused_mat_mul("FusedMatMul");
  fused.attributes.push_back({"transBatchA", AttributeKind::Int, int64_t{0}});
  fused.attributes.push_back({"transBatchB", AttributeKind::Int, int64_t{0}});
  Op activated = fused;
  activated.name = "FusedMatMulActivation";
  activated.attributes.push_back(
      {"activation", AttributeKind::String, std::nullopt, 1, kAnyVersion, true});
  activated.attributes.push_back({"activation_axis", AttributeKind::Int, std::nullopt});
  for (const char* parameter : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    activated.attributes.push_back({parameter, AttributeKind::Float, std::nullopt});
  }
  return {fused, fused_mat_mul("TransposeMatMul"), activated};
}

}  // namespace tessera::ops
