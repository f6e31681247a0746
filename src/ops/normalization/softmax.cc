// Softmax, LogSoftmax and Hardmax. Up to version 12, a row consists of all axes from `axis` on;
// from 13 on, of `axis` alone.
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

// 1 at the first largest element, where the first NaN counts as the largest, as in ArgMax.
template <class T>
void hardmax_row(const T* input, T* output, int64_t length, int64_t stride) {
  using C = compute_t<T>;
  int64_t best = 0;
  for (int64_t index = 1; index < length; ++index) {
    const C value = static_cast<C>(input[index * stride]);
    const C largest = static_cast<C>(input[best * stride]);
    if (std::isnan(largest)) break;
    if (value > largest || std::isnan(value)) best = index;
  }
  for (int64_t index = 0; index < length; ++index) {
    output[index * stride] = static_cast<T>(static_cast<C>(index == best ? 1 : 0));
  }
}

// Calls compute(input, output, length, stride) for each row, in parallel.
template <class Compute>
void for_each_row(const KernelCall& call, const Compute& compute) {
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
        compute(source + start, target + start, rows.length, rows.stride);
      }
    });
  });
}

template <bool kIsLog>
void run_softmax(const KernelCall& call) {
  for_each_row(call, []<class T>(const T* input, T* output, int64_t length, int64_t stride) {
    softmax_row<T, kIsLog>(input, output, length, stride);
  });
}

void run_hardmax(const KernelCall& call) {
  for_each_row(call, []<class T>(const T* input, T* output, int64_t length, int64_t stride) {
    hardmax_row(input, output, length, stride);
  });
}

int64_t softmax_flops(const Node& node, std::span<const Type> inputs,
                      std::span<const Type> outputs) {
  // Maximum, subtraction, exponential, sum, division.
  return 5 * flops_per_output(node, inputs, outputs);
}

Op softmax_op(const char* name, ReferenceKernel kernel, FlopsRule flops = softmax_flops) {
  return {.name = name,
          .versions = {1, 11, 13},
          .inputs = {{"input", "T"}},
          .outputs = {{"output", "T"}},
          .type_variables = {{"T", kFloatTypes}},
          .attributes = {{"axis", AttributeKind::Int, int64_t{1}, 1, 12},
                         {"axis", AttributeKind::Int, int64_t{-1}, 13}},
          .traits = kRowWise,
          .infer = infer_softmax,
          .flops = flops,
          .kernel = kernel};
}

}  // namespace

std::vector<Op> softmax_ops() {
  return {softmax_op("Softmax", run_softmax<false>), softmax_op("LogSoftmax", run_softmax<true>),
          softmax_op("Hardmax", run_hardmax, flops_per_output)};
}

}  // namespace tessera::ops
