// Gemm: alpha * A * B + beta * C; A and B may be transposed.
#include <algorithm>

#include "ops/check_shape.h"
#include "ops/matmul/dense_operand.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

// Up to version 6, C is broadcast only if an attribute says so.
constexpr int kFirstBroadcastingVersion = 7;

bool is_transposed(const Node& node, const char* attribute) {
  return node.attributes.get_int(attribute) != 0;
}

void check_addend(const InferContext& context, const Shape& output) {
  if (!context.has_input(2) || context.shape(2) == nullptr) return;
  const Shape& addend = *context.shape(2);
  const bool can_broadcast = context.version() >= kFirstBroadcastingVersion ||
                             context.node().attributes.get_int("broadcast") != 0;
  if (!can_broadcast) return check_shape(context, 2, output);
  bool fits = addend.size() <= output.size();
  for (size_t axis = 0; fits && axis < addend.size(); ++axis) {
    const Dim& expected = output[output.size() - addend.size() + axis];
    fits = addend[axis] == Dim(1) || can_be_equal({addend[axis]}, {expected});
  }
  if (!fits) {
    context.fail_input(
        2, "expected a shape that broadcasts to " + text(output) + ", found " + text(addend));
  }
}

void infer_gemm(InferContext& context) {
  context.set_output(0, context.element(0));
  for (const size_t index : {size_t{0}, size_t{1}}) {
    const Shape* shape = context.shape(index);
    if (shape != nullptr && shape->size() != 2) {
      context.fail_input(index, "expected a matrix, found " + text(*shape));
    }
  }
  const Shape* left = context.shape(0);
  const Shape* right = context.shape(1);
  if (left == nullptr || right == nullptr) return;
  const size_t left_depth = is_transposed(context.node(), "transA") ? 0 : 1;
  const size_t right_depth = is_transposed(context.node(), "transB") ? 1 : 0;
  if (!can_be_equal({(*left)[left_depth]}, {(*right)[right_depth]})) {
    context.fail_input(1, "expected " + (*left)[left_depth].text() + " along axis " +
                              std::to_string(right_depth) + " to multiply with A (" + text(*left) +
                              "), found " + text(*right));
  }
  const Shape output = {(*left)[1 - left_depth], (*right)[1 - right_depth]};
  check_addend(context, output);
  context.set_output(0, context.element(0), output);
}

// Finds the element of C for each element of the output.
struct Addend {
  int64_t row_stride = 0;
  int64_t column_stride = 0;
};

Addend addend_of(std::span<const int64_t> dims) {
  Addend addend;
  if (dims.empty()) return addend;
  if (dims.back() != 1) addend.column_stride = 1;
  if (dims.size() == 2 && dims[0] != 1) addend.row_stride = dims[1];
  return addend;
}

template <class T, class Sum>
void multiply_and_add(const KernelCall& call) {
  const bool has_left_lines_along_depth = !is_transposed(call.node, "transA");
  const bool has_right_lines_along_depth = is_transposed(call.node, "transB");
  const auto left = call.inputs[0].dims;
  const auto right = call.inputs[1].dims;
  const ReadDense<Sum, T> read_left = {call.inputs[0].as<T>().data(), left[1]};
  const ReadDense<Sum, T> read_right = {call.inputs[1].as<T>().data(), right[1]};
  const double alpha = call.node.attributes.get_float("alpha");
  const double beta = call.node.attributes.get_float("beta");
  // As in BLAS, C is not read if beta is 0.
  const bool has_addend = call.has_input(2) && beta != 0;
  const T* addends = has_addend ? call.inputs[2].as<T>().data() : nullptr;
  const Addend addend = has_addend ? addend_of(call.inputs[2].dims) : Addend();
  T* output = call.outputs[0].as<T>().data();
  const int64_t columns = call.outputs[0].dims[1];
  const auto store = [&](int64_t, int64_t row, int64_t column, int64_t count, const Sum* sums) {
    T* target = output + row * columns + column;
    for (int64_t index = 0; index < count; ++index) {
      const T* added = addends == nullptr ? nullptr
                                          : addends + row * addend.row_stride +
                                                (column + index) * addend.column_stride;
      if (std::is_integral_v<T> && alpha == 1 && (added == nullptr || beta == 1)) {
        // Integers stay exact and wrap around, unless alpha or beta requires floating point.
        target[index] = narrow<T>(sums[index] + (added == nullptr ? Sum{0} : widen<Sum>(*added)));
      } else {
        using Wide = std::conditional_t<std::is_integral_v<T>, T, double>;
        const double offset = added == nullptr ? 0.0 : beta * to_double(*added);
        target[index] = from_double<T>(alpha * to_double(narrow<Wide>(sums[index])) + offset);
      }
    }
  };
  multiply_matrices<Sum>(call, {.rows = call.outputs[0].dims[0],
                                .columns = columns,
                                .depth = has_left_lines_along_depth ? left[1] : left[0],
                                .left = {read_left, has_left_lines_along_depth},
                                .right = {read_right, has_right_lines_along_depth},
                                .store = store});
}

void run_gemm(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  visit_product_types(call.outputs[0].type, [&](auto tag, auto sum_tag) {
    multiply_and_add<typename decltype(tag)::type, typename decltype(sum_tag)::type>(call);
  });
}

// A multiply-add for each term of each sum. C initialises the sums.
int64_t gemm_flops(const Node& node, std::span<const Type> inputs, std::span<const Type> outputs) {
  const Dim depth = (*inputs[0].shape)[is_transposed(node, "transA") ? 0 : 1];
  return multiply(flops_per_output(node, inputs, outputs), multiply(depth, 2)).value();
}

}  // namespace

std::vector<Op> gemm_ops() {
  return {{.name = "Gemm",
           .versions = {6, 7, 9, 11, 13},
           .inputs = {{"A", "T"},
                      {"B", "T"},
                      {"C", "T", Arity::Required, 1, 10},
                      {"C", "T", Arity::Optional, 11}},
           .outputs = {{"Y", "T"}},
           .type_variables = {{"T", kProductTypes}},
           .attributes = {{"alpha", AttributeKind::Float, 1.0F},
                          {"beta", AttributeKind::Float, 1.0F},
                          {"broadcast", AttributeKind::Int, int64_t{0}, 1, 6},
                          {"transA", AttributeKind::Int, int64_t{0}},
                          {"transB", AttributeKind::Int, int64_t{0}}},
           .traits = kProduct | kBoundsMagnitude,
           .infer = infer_gemm,
           .flops = gemm_flops,
           .kernel = run_gemm}};
}

}  // namespace tessera::ops
