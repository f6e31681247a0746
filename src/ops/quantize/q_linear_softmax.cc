// QLinearSoftmax of com.microsoft. The attribute 'opset' says which Softmax it is: up to 12, a row
// consists of all axes from `axis` on; from 13 on, of `axis` alone.
// https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
#include <algorithm>
#include <cmath>

#include "ops/domains.h"
#include "ops/quantize/quantization.h"

namespace tessera::ops {
namespace {

constexpr int64_t kFirstOpsetOfSingleAxes = 13;

bool is_of_single_axis(const Node& node) {
  return node.attributes.get_int("opset") >= kFirstOpsetOfSingleAxes;
}

void infer_quantized_softmax(InferContext& context) {
  check_tensor_scale(context, 1, 2);
  check_tensor_scale(context, 3, 4);
  if (const Shape* const shape = context.shape(0)) {
    // As in Softmax: a scalar is one row, and the old form may have rows of one element.
    const auto rank = std::max<int64_t>(1, static_cast<int64_t>(shape->size()));
    const int64_t axis = context.node().attributes.get_int("axis");
    if (is_of_single_axis(context.node()) || axis != rank) context.normalized_axis(axis, rank);
  }
  context.set_output(0, context.element(0), context.input(0).type.shape);
}

// A row has `length` elements, `stride` apart; there are outer * stride rows.
struct ByteRows {
  int64_t outer = 1;
  int64_t length = 1;
  int64_t stride = 1;
};

ByteRows byte_rows_of(const KernelCall& call) {
  const int64_t rank = call.inputs[0].rank();
  int64_t axis = call.node.attributes.get_int("axis");
  if (axis < 0) axis += std::max<int64_t>(1, rank);
  const int64_t row_end = is_of_single_axis(call.node) ? axis + 1 : rank;
  ByteRows rows;
  for (int64_t index = 0; index < rank; ++index) {
    const int64_t dim = call.inputs[0].dims[static_cast<size_t>(index)];
    (index < axis ? rows.outer : index < row_end ? rows.length : rows.stride) *= dim;
  }
  return rows;
}

// exp(-distance * |scale|): the power of an element that is `distance` below the largest one.
ByteTable<double> powers_of(double scale) {
  return byte_table<uint8_t, double>(
      [&](uint8_t distance) { return std::exp(-distance * std::abs(scale)); });
}

template <class T>
void softmax_of_bytes(const T* input, T* output, const ByteRows& rows,
                      const ByteTable<double>& powers, bool is_descending,
                      const TensorScale& result) {
  T top = input[0];
  for (int64_t index = 0; index < rows.length; ++index) {
    const T element = input[index * rows.stride];
    top = is_descending ? std::min(top, element) : std::max(top, element);
  }
  const auto power_of = [&](int64_t index) {
    return powers[static_cast<size_t>(std::abs(top - input[index * rows.stride]))];
  };
  double sum = 0;
  for (int64_t index = 0; index < rows.length; ++index) sum += power_of(index);
  for (int64_t index = 0; index < rows.length; ++index) {
    output[index * rows.stride] = result.integer_of<T>(power_of(index) / sum);
  }
}

void run_quantized_softmax(const KernelCall& call) {
  if (call.inputs[0].elements == 0) return;
  const ByteRows rows = byte_rows_of(call);
  const double scale = tensor_scale_of(call, 1, 2).scale;
  const TensorScale result = tensor_scale_of(call, 3, 4);
  const ByteTable<double> powers = powers_of(scale);
  const int64_t grain = std::max<int64_t>(1, 4096 / rows.length);
  visit_byte(call.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const input = call.inputs[0].as<T>().data();
    T* const output = call.outputs[0].as<T>().data();
    call.pool.parallel_for(rows.outer * rows.stride, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t start = row / rows.stride * rows.length * rows.stride + row % rows.stride;
        softmax_of_bytes(input + start, output + start, rows, powers, scale < 0, result);
      }
    });
  });
}

}  // namespace

std::vector<Op> q_linear_softmax_ops() {
  return {{.name = "QLinearSoftmax",
           .domain = kMicrosoftDomain,
           .versions = {1},
           .inputs = {{"X", "T"},
                      {"X_scale", "TS"},
                      {"x_zero_point", "T", Arity::Optional},
                      {"y_scale", "TS"},
                      {"y_zero_point", "T"}},
           .outputs = {{"Y", "T"}},
           .type_variables = {{"T", kByteTypes}, {"TS", TypeSet{DataType::Float32}}},
           .attributes = {{"axis", AttributeKind::Int, int64_t{-1}},
                          {"opset", AttributeKind::Int, std::nullopt, 1, kAnyVersion, true}},
           .infer = infer_quantized_softmax,
           .kernel = run_quantized_softmax}};
}

}  // namespace tessera::ops
