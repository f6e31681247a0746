// FusedGemm: Gemm followed by an activation function. matmul/gemm.cc has Gemm.
#include "ops/broadcast.h"
#include "ops/contrib/contrib.h"
#include "ops/contrib/fused_activation.h"
#include "ops/contrib/strided_operand.h"
#include "ops/domains.h"

namespace tessera::ops {
namespace {

bool is_swapped(const Node& node, const char* attribute) {
  return node.attributes.get_int(attribute) != 0;
}

void infer_fused_gemm(InferContext& context) {
  read_activation(context.node());
  context.set_output(0, context.element(0));
  check_rank(context, 0, 2);
  check_rank(context, 1, 2);
  const Shape* left = context.shape(0);
  const Shape* right = context.shape(1);
  if (left == nullptr || right == nullptr) return;
  const size_t left_depth = is_swapped(context.node(), "transA") ? 0 : 1;
  const size_t right_depth = is_swapped(context.node(), "transB") ? 1 : 0;
  if (!can_be_equal({(*left)[left_depth]}, {(*right)[right_depth]})) {
    context.fail_input(1, "expected " + (*left)[left_depth].text() + " along axis " +
                              std::to_string(right_depth) + " to multiply with A (" + text(*left) +
                              "), found [" + text(*right) + "]");
  }
  const Shape output = {(*left)[1 - left_depth], (*right)[1 - right_depth]};
  const Shape* addend = context.has_input(2) ? context.shape(2) : nullptr;
  if (addend != nullptr && !can_broadcast_to(*addend, output)) {
    context.fail_input(2, "expected a shape that broadcasts to [" + text(output) + "], found [" +
                              text(*addend) + "]");
  }
  context.set_output(0, context.element(0), output);
}

// The strides of C along the rows and columns of the output; 0 where it is broadcast.
StridedMatrix addend_strides(std::span<const int64_t> dims) {
  StridedMatrix strides = {.row_stride = 0, .column_stride = 0};
  if (dims.empty()) return strides;
  if (dims.back() != 1) strides.column_stride = 1;
  if (dims.size() == 2 && dims[0] != 1) strides.row_stride = dims[1];
  return strides;
}

template <class T>
void multiply_fused(const KernelCall& call, const FusedActivation& activation) {
  const auto operand = [&](size_t index, const char* attribute) {
    const int64_t length = call.inputs[index].dims[1];
    const StridedMatrix plain = {.row_stride = length, .column_stride = 1};
    const StridedMatrix swapped = {.row_stride = 1, .column_stride = length};
    return ReadStrided<T>{.elements = call.inputs[index].as<T>().data(),
                          .matrix = is_swapped(call.node, attribute) ? swapped : plain,
                          .is_left = index == 0};
  };
  const double alpha = call.node.attributes.get_float("alpha");
  const double beta = call.node.attributes.get_float("beta");
  // As in BLAS, C is not read if beta is 0.
  const bool has_addend = call.has_input(2) && beta != 0;
  const T* addend = has_addend ? call.inputs[2].as<T>().data() : nullptr;
  const StridedMatrix strides = has_addend ? addend_strides(call.inputs[2].dims) : StridedMatrix();
  const auto finish = [&](int64_t row, int64_t column, std::span<double> sums) {
    for (double& sum : sums) {
      sum *= alpha;
      if (addend != nullptr) {
        const int64_t place = row * strides.row_stride + column * strides.column_stride;
        sum += beta * to_double(addend[place]);
      }
      ++column;
    }
    activation.apply(sums);
  };
  const auto left = call.inputs[0].dims;
  multiply_strided(call,
                   {.rows = call.outputs[0].dims[0],
                    .columns = call.outputs[0].dims[1],
                    .depth = is_swapped(call.node, "transA") ? left[0] : left[1]},
                   operand(0, "transA"), operand(1, "transB"), call.outputs[0].as<T>().data(),
                   finish);
}

void run_fused_gemm(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  const FusedActivation activation = read_activation(call.node);
  visit_floating(call.outputs[0].type,
                 [&](auto tag) { multiply_fused<typename decltype(tag)::type>(call, activation); });
}

// A multiply-add for each term of each sum. C initialises the sums.
int64_t fused_gemm_flops(const Node& node, std::span<const Type> inputs,
                         std::span<const Type> outputs) {
  const Dim depth = (*inputs[0].shape)[is_swapped(node, "transA") ? 0 : 1];
  return multiply(flops_per_output(node, inputs, outputs), multiply(depth, 2)).value();
}

}  // namespace

std::vector<Op> fused_gemm_ops() {
  Op op = {.name = "FusedGemm",
           .domain = kMicrosoftDomain,
           .versions = {1},
           .inputs = {{"A", "T"}, {"B", "T"}, {"C", "T", Arity::Optional}},
           .outputs = {{"Y", "T"}},
           .type_variables = {{"T", kFloatTypes}},
           .attributes = {{"activation", AttributeKind::String, std::nullopt},
                          {"alpha", AttributeKind::Float, 1.0F},
                          {"beta", AttributeKind::Float, 1.0F},
                          {"transA", AttributeKind::Int, int64_t{0}},
                          {"transB", AttributeKind::Int, int64_t{0}}},
           .infer = infer_fused_gemm,
           .flops = fused_gemm_flops,
           .kernel = run_fused_gemm};
  for (const char* parameter : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    op.attributes.push_back({parameter, AttributeKind::Float, std::nullopt});
  }
  return {op};
}

}  // namespace tessera::ops
