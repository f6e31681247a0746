// Softmax and LogSoftmax. Up to version 12, a row consists of all axes from `axis` on; from 13 on,
// of `axis` alone.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/compensated_sum.h"
#include "ops/op.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

constexpr int kFirstSingleAxisVersion = 13;

void infer_softmax(InferContext& context) {
  const Shape* shape = context.shape(0);
  if (shape != nullptr) {
    // Rank 0 has no axis, but the default axis is valid for a scalar: one row of one element.
    const auto rank = std::max<int64_t>(1, static_cast<int64_t>(shape->size()));
    const int64_t axis = context.node().attributes.get_int("axis");
    // The old form flattens, so an axis equal to the rank means rows of one element.
    const bool is_flattening = context.version() < kFirstSingleAxisVersion;
    if (!(is_flattening && axis == rank)) context.normalized_axis(axis, rank);
  }
  context.set_output(0, context.element(0), context.input(0).type.shape);
}

// A row has `length` elements, `stride` apart; there are outer * stride rows.
struct Rows {
  int64_t outer = 1;
  int64_t length = 1;
  int64_t stride = 1;
};

Rows rows_of(const Node& node, std::span<const int64_t> dims) {
  const auto rank = static_cast<int64_t>(dims.size());
  int64_t axis = node.attributes.get_int("axis");
  if (axis < 0) axis += std::max<int64_t>(1, rank);
  const int64_t row_end = node.version < kFirstSingleAxisVersion ? rank : axis + 1;
  Rows rows;
  for (int64_t index = 0; index < rank; ++index) {
    const int64_t dim = dims[static_cast<size_t>(index)];
    (index < axis ? rows.outer : index < row_end ? rows.length : rows.stride) *= dim;
  }
  return rows;
}

template <class T, bool kIsLog>
void softmax_row(const T* input, T* output, int64_t length, int64_t stride) {
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t index = 0; index < length; ++index) {
    largest = std::max(largest, static_cast<double>(compute_t<T>(input[index * stride])));
  }
  CompensatedSum powers;
  for (int64_t index = 0; index < length; ++index) {
    powers.add(std::exp(static_cast<double>(compute_t<T>(input[index * stride])) - largest));
  }
  const double sum = powers.value();
  const double log_sum = std::log(sum);
  for (int64_t index = 0; index < length; ++index) {
    const double shifted = static_cast<double>(compute_t<T>(input[index * stride])) - largest;
    const double result = kIsLog ? shifted - log_sum : std::exp(shifted) / sum;
    output[index * stride] = static_cast<T>(result);
  }
}

template <bool kIsLog>
void run_softmax(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  const Rows rows = rows_of(call.node, input.dims);
  if (input.elements == 0) return;
  visit_floating(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* source = input.as<T>().data();
    T* target = call.outputs[0].as<T>().data();
    const int64_t grain = std::max<int64_t>(1, 1024 / rows.length);
    call.pool.parallel_for(rows.outer * rows.stride, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t start = row / rows.stride * rows.length * rows.stride + row % rows.stride;
        softmax_row<T, kIsLog>(source + start, target + start, rows.length, rows.stride);
      }
    });
  });
}

int64_t softmax_flops(const Node& node, std::span<const Type> inputs,
                      std::span<const Type> outputs) {
  // Maximum, subtraction, exponential, sum, division.
  return 5 * flops_per_output(node, inputs, outputs);
}

Op softmax_op(const char* name, ReferenceKernel kernel) {
  return {.name = name,
          .versions = {1, 11, 13},
          .inputs = {{"input", "T"}},
          .outputs = {{"output", "T"}},
          .type_variables = {{"T", kFloatTypes}},
          .attributes = {{"axis", AttributeKind::Int, int64_t{1}, 1, 12},
                         {"axis", AttributeKind::Int, int64_t{-1}, 13}},
          .traits = kRowWise,
          .infer = infer_softmax,
          .flops = softmax_flops,
          .kernel = kernel};
}

}  // namespace

std::vector<Op> softmax_ops() {
  return {softmax_op("Softmax", run_softmax<false>), softmax_op("LogSoftmax", run_softmax<true>)};
}

}  // namespace tessera::ops
