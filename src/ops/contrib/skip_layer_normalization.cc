// SkipLayerNormalization and SkipSimplifiedLayerNormalization: the sum of two inputs and a bias,
// normalised over its last axis, with or without the mean.
#include <algorithm>
#include <cmath>

#include "ops/contrib/contrib.h"
#include "ops/contrib/row_normalization.h"
#include "ops/domains.h"

namespace tessera::ops {
namespace {

// The positions of the optional inputs; kNoInput if the op has no such input.
constexpr size_t kNoInput = static_cast<size_t>(-1);
struct SkipInputs {
  size_t shift = kNoInput;
  size_t bias = 3;
};
constexpr SkipInputs kOfSkip = {.shift = 3, .bias = 4};
constexpr SkipInputs kOfSkipSimplified = {};

// The skip has the shape of the input. If that has a batch axis, it may lack that axis, or have 1
// there.
void check_skip(const InferContext& context, const Shape& input) {
  const Shape* skip = context.shape(1);
  if (skip == nullptr) return;
  Shape one = input;
  one.front() = 1;
  const Shape without(input.begin() + 1, input.end());
  const bool has_batch = input.size() == 3;
  if (can_be_equal(*skip, input)) return;
  if (has_batch && (can_be_equal(*skip, one) || can_be_equal(*skip, without))) return;
  context.fail_input(1, "expected the shape of input 'input' (" + text(input) + ")" +
                            (has_batch ? ", of which axis 0 may be 1 or missing" : "") +
                            ", found [" + text(*skip) + "]");
}

void infer_skip(InferContext& context, const SkipInputs& inputs) {
  const std::optional<Shape>& shape = context.input(0).type.shape;
  context.set_output(0, context.element(0), shape);
  context.set_output(3, context.element(0), shape);
  std::optional<Shape> statistics = shape;
  if (shape) {
    if (shape->size() != 2 && shape->size() != 3) {
      context.fail_input(0, "expected rank 2 or 3, found [" + text(*shape) + "]");
    }
    check_skip(context, *shape);
    check_columns(context, 2, *shape);
    if (inputs.shift != kNoInput) check_columns(context, inputs.shift, *shape);
    check_columns(context, inputs.bias, *shape);
    statistics->back() = 1;
  }
  context.set_output(1, DataType::Float32, statistics);
  context.set_output(2, DataType::Float32, statistics);
}

// Empty if the op has no such input or the node leaves it out.
std::pmr::vector<double> optional_numbers(const KernelCall& call, size_t index) {
  if (!call.has_input(index)) return std::pmr::vector<double>(&call.scratch);
  return to_doubles(call.inputs[index], call.scratch);
}

void run_skip(const KernelCall& call, const SkipInputs& inputs) {
  const TensorView& input = call.inputs[0];
  const int64_t columns = input.dims.back();
  const int64_t rows = element_count(input.dims.first(input.dims.size() - 1));
  const std::pmr::vector<double> scale = optional_numbers(call, 2);
  const std::pmr::vector<double> shift = optional_numbers(call, inputs.shift);
  const std::pmr::vector<double> bias = optional_numbers(call, inputs.bias);
  const RowNormalization normalization = {
      .rows = rows,
      .columns = columns,
      .has_mean = inputs.shift != kNoInput,
      .epsilon = call.node.attributes.get_float("epsilon"),
      .mean = 1,
      .inverse = 2,
  };
  visit_floating(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* source = input.as<T>().data();
    const T* skip = call.inputs[1].as<T>().data();
    const int64_t skip_rows = columns == 0 ? 1 : call.inputs[1].elements / columns;
    T* target = call.outputs[0].as<T>().data();
    T* sums = call.has_output(3) ? call.outputs[3].as<T>().data() : nullptr;
    const auto read = [&](int64_t row, std::span<double> line) {
      const T* left = source + row * columns;
      const T* right = skip + row % skip_rows * columns;
      for (size_t column = 0; column < line.size(); ++column) {
        line[column] = to_double(left[column]) + to_double(right[column]);
        if (!bias.empty()) line[column] += bias[column];
        if (sums == nullptr) continue;
        sums[row * columns + static_cast<int64_t>(column)] = from_double<T>(line[column]);
      }
    };
    const auto write = [&](int64_t row, std::span<const double> line) {
      T* result = target + row * columns;
      for (size_t column = 0; column < line.size(); ++column) {
        const double offset = shift.empty() ? 0.0 : shift[column];
        result[column] = from_double<T>(line[column] * scale[column] + offset);
      }
    };
    normalize_lines(call, normalization, read, write);
  });
}

Op skip_op(const char* name, SkipInputs positions) {
  Op op = {.name = name,
           .domain = kMicrosoftDomain,
           .versions = {1},
           .inputs = {{"input", "T"}, {"skip", "T"}, {"gamma", "T"}},
           .outputs = {{"output", "T"},
                       {"mean", "U", Arity::Optional},
                       {"inv_std_var", "U", Arity::Optional},
                       {"input_skip_bias_sum", "T", Arity::Optional}},
           .type_variables = {{"T", kFloatTypes}, {"U", {DataType::Float32}}},
           .attributes = {{"epsilon", AttributeKind::Float, 1e-12F}},
           .flops = normalization_flops};
  if (positions.shift != kNoInput) op.inputs.push_back({"beta", "T", Arity::Optional});
  op.inputs.push_back({"bias", "T", Arity::Optional});
  op.infer = [positions](InferContext& context) { infer_skip(context, positions); };
  op.kernel = [positions](const KernelCall& call) { run_skip(call, positions); };
  return op;
}

}  // namespace

std::vector<Op> skip_layer_normalization_ops() {
  return {skip_op("SkipLayerNormalization", kOfSkip),
          skip_op("SkipSimplifiedLayerNormalization", kOfSkipSimplified)};
}

}  // namespace tessera::ops
