// The activation functions of com.microsoft: Gelu, FastGelu, QuickGelu, BiasGelu and BiasSplitGelu,
// and BiasAdd. Most of them add a bias first, which has an element for each column.
// elementwise/activation.cc has the functions of ONNX's own domain.
#include "ops/contrib/contrib.h"
#include "ops/convert_element.h"
#include "ops/domains.h"
#include "ops/elementwise/activation_functions.h"
#include "ops/elementwise/unary.h"

namespace tessera::ops {
namespace {

void infer_biased(InferContext& context) {
  if (const Shape* shape = context.shape(0)) check_columns(context, 1, *shape);
  infer_same_as_input(context);
}

void infer_bias_add(InferContext& context) {
  check_rank(context, 0, 3);
  if (const Shape* shape = context.shape(0)) check_shape(context, 2, *shape);
  infer_biased(context);
}

void infer_bias_split_gelu(InferContext& context) {
  check_rank(context, 0, 3);
  const Shape* shape = context.shape(0);
  if (shape == nullptr) return context.set_output(0, context.element(0));
  check_columns(context, 1, *shape);
  const Dim& columns = shape->back();
  if (columns.is_known() && columns.value() % 2 != 0) {
    context.fail_input(0, "expected an even number of columns, found [" + text(*shape) + "]");
  }
  Shape half = *shape;
  half.back() = floor_divide(columns, 2);
  context.set_output(0, context.element(0), half);
}

// Calls compute(T tag, row) for each row of the output.
template <class Compute>
void for_each_biased_row(const KernelCall& call, const Compute& compute) {
  const MutableTensorView& output = call.outputs[0];
  if (output.elements == 0) return;
  const int64_t columns = column_count(output.dims);
  visit_floating(output.type, [&](auto tag) {
    call.pool.parallel_for(output.elements / columns, row_grain(columns),
                           [&](int64_t begin, int64_t end) {
                             for (int64_t row = begin; row < end; ++row) compute(tag, row);
                           });
  });
}

template <double (*kFunction)(double)>
void run_after_bias(const KernelCall& call) {
  if (!call.has_input(1)) return run_unary<kFunction>(call);
  const int64_t columns = column_count(call.outputs[0].dims);
  for_each_biased_row(call, [&](auto tag, int64_t row) {
    using T = typename decltype(tag)::type;
    const T* input = call.inputs[0].as<T>().data() + row * columns;
    const T* bias = call.inputs[1].as<T>().data();
    T* output = call.outputs[0].as<T>().data() + row * columns;
    for (int64_t index = 0; index < columns; ++index) {
      output[index] = from_double<T>(kFunction(to_double(input[index]) + to_double(bias[index])));
    }
  });
}

void run_quick_gelu(const KernelCall& call) {
  run_on_doubles(call, [](std::span<double> elements, const Attributes& attributes) {
    const double alpha = attributes.get_float("alpha");
    for (double& x : elements) x *= activation::sigmoid(alpha * x);
  });
}

void run_bias_add(const KernelCall& call) {
  const int64_t columns = column_count(call.outputs[0].dims);
  for_each_biased_row(call, [&](auto tag, int64_t row) {
    using T = typename decltype(tag)::type;
    const T* input = call.inputs[0].as<T>().data() + row * columns;
    const T* bias = call.inputs[1].as<T>().data();
    const T* skip = call.inputs[2].as<T>().data() + row * columns;
    T* output = call.outputs[0].as<T>().data() + row * columns;
    for (int64_t index = 0; index < columns; ++index) {
      output[index] =
          from_double<T>(to_double(input[index]) + to_double(bias[index]) + to_double(skip[index]));
    }
  });
}

// The left half of each row times the Gelu of its right half.
void run_bias_split_gelu(const KernelCall& call) {
  const int64_t half = column_count(call.outputs[0].dims);
  for_each_biased_row(call, [&](auto tag, int64_t row) {
    using T = typename decltype(tag)::type;
    const T* input = call.inputs[0].as<T>().data() + row * 2 * half;
    const T* bias = call.inputs[1].as<T>().data();
    T* output = call.outputs[0].as<T>().data() + row * half;
    const auto biased = [&](int64_t index) {
      return to_double(input[index]) + to_double(bias[index]);
    };
    for (int64_t index = 0; index < half; ++index) {
      output[index] = from_double<T>(biased(index) * activation::gelu(biased(half + index)));
    }
  });
}

Op gelu_variant(const char* name, const char* input, const char* output,
                std::vector<Parameter> more, ReferenceKernel kernel) {
  Op op = {.name = name,
           .domain = kMicrosoftDomain,
           .versions = {1},
           .inputs = {{input, "T"}},
           .outputs = {{output, "T"}},
           .type_variables = {{"T", kFloatTypes}},
           .infer = infer_same_as_input,
           .kernel = kernel};
  op.inputs.insert(op.inputs.end(), more.begin(), more.end());
  if (!more.empty()) op.infer = infer_biased;
  return op;
}

}  // namespace

std::vector<Op> bias_gelu_ops() {
  Op quick = gelu_variant("QuickGelu", "X", "Y", {}, run_quick_gelu);
  quick.attributes = {{"alpha", AttributeKind::Float, 1.702F}};
  Op split = gelu_variant("BiasSplitGelu", "X", "Y", {{"bias", "T"}}, run_bias_split_gelu);
  split.infer = infer_bias_split_gelu;
  Op add = gelu_variant("BiasAdd", "X", "Y", {{"bias", "T"}, {"skip", "T"}}, run_bias_add);
  add.infer = infer_bias_add;
  return {gelu_variant("Gelu", "X", "Y", {}, run_unary<activation::gelu>),
          gelu_variant("BiasGelu", "A", "C", {{"B", "T"}}, run_after_bias<activation::gelu>),
          gelu_variant("FastGelu", "X", "Y", {{"bias", "T", Arity::Optional}},
                       run_after_bias<activation::gelu_by_tanh>),
          quick,
          split,
          add};
}

}  // namespace tessera::ops
