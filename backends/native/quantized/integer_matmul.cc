// Products of matrices of bytes: MatMulInteger and QLinearMatMul, and of com.microsoft QGemm,
// MatMulIntegerToFloat and DynamicQuantizeMatMul.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/families.h"
#include "base/refusal.h"
#include "matmul/matmul_problem.h"
#include "quantized/integer_kernel.h"
#include "quantized/integer_offer.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Candidate;
using plugin::Node;
using plugin::ProposeContext;

namespace {

constexpr std::string_view kMicrosoft = "com.microsoft";

// An op and the inputs that it has.
struct ProductOp {
  std::string_view domain;
  std::string_view name;
  IntegerRoles inputs;
};

// Order: left, right, left scale and zero, right scale and zero, integer and real bias, scale,
// zero.
constexpr ProductOp kProductOps[] = {
    {"", "MatMulInteger", {{0, 1, -1, 2, -1, 3, -1, -1, -1, -1}}},
    {"", "QLinearMatMul", {{0, 3, 1, 2, 4, 5, -1, -1, 6, 7}}},
    {kMicrosoft, "QGemm", {{0, 3, 1, 2, 4, 5, 6, -1, 7, 8}}},
    {kMicrosoft, "MatMulIntegerToFloat", {{0, 1, 2, 4, 3, 5, -1, 6, -1, -1}}},
    {kMicrosoft, "DynamicQuantizeMatMul", {{0, 1, -1, -1, 2, 3, -1, 4, -1, -1}}},
};

MatMulOp integer_op_of(const Node& node) {
  MatMulOp op;
  op.is_gemm = node.op() == "QGemm";
  op.is_left_transposed = node.attributes().get_int("transA", 0) != 0;
  op.is_right_transposed = node.attributes().get_int("transB", 0) != 0;
  return op;
}

// The packed matrix that the products of a batch multiply by: they alternate as the right sides do
// in memory.
struct RightMatrices {
  MatMulBatch batch;  // with numbers of matrices as strides on the right
  int64_t count = 1;
};

RightMatrices right_matrices(const MatMulProblem& problem) {
  RightMatrices made = {.batch = problem.batch};
  for (size_t index = 0; index < problem.batch.rank; ++index) {
    MatMulBatch::Axis& axis = made.batch.axes[index];
    if (axis.right == 0) continue;
    axis.right = made.count;
    made.count *= axis.dim;
  }
  return made;
}

SizedProduct sized_matmul(const MatMulOp& op, bool is_right_signed, std::span<const int64_t> left,
                          std::span<const int64_t> right) {
  const MatMulProblem problem = matmul_problem_of(op, left, right);
  const RightMatrices matrices = right_matrices(problem);
  SizedProduct sized;
  sized.product = {.count = problem.count,
                   .rows = problem.rows,
                   .columns = problem.columns,
                   .depth = problem.depth,
                   .left_row_stride = problem.left_row_stride,
                   .left_depth_stride = problem.left_depth_stride,
                   .has_batch = true,
                   .batch = matrices.batch,
                   .to_stride = problem.rows * problem.columns,
                   .to_row_stride = problem.columns};
  sized.right = {.count = matrices.count,
                 .depth = problem.depth,
                 .columns = problem.columns,
                 .depth_stride = problem.right_depth_stride,
                 .column_stride = problem.right_column_stride,
                 .matrix_stride = problem.depth * problem.columns,
                 .is_signed = is_right_signed};
  return sized;
}

void offer_product(ProposeContext& context, const Node& node, const ProductOp& op) {
  IntegerOffer offer = offer_of_node(node, op.inputs);
  offer.work.alpha = node.attributes().get_float("alpha", 1);
  offer.work.has_wide_scales = op.name == "QGemm";
  offer_integer_matmul(context, std::move(offer), integer_op_of(node));
}

}  // namespace

void offer_integer_matmul(ProposeContext& context, IntegerOffer offer, const MatMulOp& op) {
  IntegerWork& work = offer.work;
  const plugin::Value weights = offer.input(kRight);
  const SizedProduct sized =
      sized_matmul(op, work.is_right_signed, offer.input(kLeft).type().dims, weights.type().dims);
  check_depth(offer, sized.product.depth);
  check_by_column(offer, sized.product.columns);
  work.is_packed = weights.is_constant() && sized.right.count == 1;
  work.loops = find_integer_loops(work.is_packed && has_small_weights(weights));
  std::optional<plugin::Pack> pack;
  if (work.is_packed) pack = right_pack(sized.right, work.loops);
  Candidate candidate =
      integer_candidate(offer, work.is_packed ? "bytes_packed" : "bytes", TESSERA_LAYOUT_DEFAULT,
                        TESSERA_LAYOUT_DEFAULT, std::move(pack));
  work.sized = [op, is_signed = work.is_right_signed, left = work.ports.of(kLeft),
                right = work.ports.of(kRight)](std::span<const Buffer> inputs,
                                               std::span<const Buffer>) {
    return sized_matmul(op, is_signed, inputs[left].sizes(), inputs[right].sizes());
  };
  add_integer_candidate(context, std::move(candidate), offer, sized);
}

void propose_integer_matmuls(ProposeContext& context) {
  for (const Node& node : context.graph().nodes()) {
    const auto* const op = std::ranges::find_if(kProductOps, [&](const ProductOp& each) {
      return each.name == node.op() && each.domain == node.domain();
    });
    if (op == std::end(kProductOps) || !context.is_wanted(node)) continue;
    try {
      offer_product(context, node, *op);
    } catch (const std::exception& failure) {
      context.refuse(node.id(), failure.what());
    }
  }
}

}  // namespace tessera::native
