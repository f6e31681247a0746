// Reshape: the same elements with the dimensions that the second input lists.
#include <algorithm>

#include "ops/op.h"
#include "ops/shape_rules.h"
#include "ops/strided_view.h"

namespace tessera::ops {
namespace {

constexpr int64_t kInferred = -1;

// A quotient of products: symbols on both sides are cancelled, and the numbers of each side are
// multiplied.
struct Quotient {
  std::vector<Dim> symbols_above;
  std::vector<Dim> symbols_below;
  Dim number_above = 1;
  Dim number_below = 1;
};

Quotient cancelled(const std::vector<Dim>& above, const std::vector<Dim>& below) {
  Quotient quotient;
  for (const Dim& dim : below) {
    if (dim.is_known()) {
      quotient.number_below = multiply(quotient.number_below, dim);
    } else {
      quotient.symbols_below.push_back(dim);
    }
  }
  for (const Dim& dim : above) {
    if (dim.is_known()) {
      quotient.number_above = multiply(quotient.number_above, dim);
      continue;
    }
    auto& symbols = quotient.symbols_below;
    const auto same = std::find(symbols.begin(), symbols.end(), dim);
    if (same == symbols.end()) {
      quotient.symbols_above.push_back(dim);
    } else {
      symbols.erase(same);
    }
  }
  return quotient;
}

bool has_zero(const Shape& shape) {
  return std::find(shape.begin(), shape.end(), Dim(0)) != shape.end();
}

Shape without_zeros(Shape shape) {
  std::erase(shape, Dim(0));
  return shape;
}

// The dimension that makes `given` have as many elements as `input`. If there are none, every
// dimension would do; the result is then the one that would fit if the zeros were ones, so that a
// batch of 0 changes nothing else. The standard does not define this case; ONNX Runtime does the
// same if allowzero is set.
Dim inferred_dim(const InferContext& context, const Shape& input, const Shape& given) {
  if (has_zero(given) && is_known(input) && !has_zero(input)) {
    context.fail("expected as many elements as " + text(input) + ", found " + text(given) +
                 " beside -1");
  }
  if (has_zero(input) && !has_zero(given)) return 0;
  Quotient quotient = cancelled(without_zeros(input), without_zeros(given));
  const bool is_number_exact = quotient.number_above.value() % quotient.number_below.value() == 0;
  if (quotient.symbols_below.empty() && (is_number_exact || quotient.symbols_above.empty())) {
    if (!is_number_exact) {
      context.fail("expected dimensions that divide the elements of " + text(input) +
                   " evenly, found " + text(given) + " beside -1");
    }
    quotient.symbols_above.push_back(floor_divide(quotient.number_above, quotient.number_below));
    return product(quotient.symbols_above);
  }
  quotient.symbols_above.push_back(quotient.number_above);
  quotient.symbols_below.push_back(quotient.number_below);
  return floor_divide(product(quotient.symbols_above), product(quotient.symbols_below));
}

// The output's shape for the list `wanted`; `input` is nullptr if its rank is unknown.
Shape reshaped(const InferContext& context, const Shape* input, const std::vector<Dim>& wanted) {
  const bool is_zero_a_size =
      context.version() >= 14 && context.node().attributes.get_int("allowzero") != 0;
  Shape output;
  Shape given;
  std::optional<size_t> inferred;
  for (size_t axis = 0; axis < wanted.size(); ++axis) {
    Dim dim = wanted[axis];
    if (dim == Dim(kInferred)) {
      if (inferred) context.fail("expected at most one dimension of -1, found two");
      inferred = axis;
    } else if (dim.is_known() && dim.value() < 0) {
      context.fail("expected dimensions of at least -1, found " + dim.text());
    } else if (dim == Dim(0) && !is_zero_a_size) {
      if (input != nullptr && axis >= input->size()) {
        context.fail("expected dimension " + std::to_string(axis) +
                     " of the input for a 0, found shape " + text(*input));
      }
      dim = input != nullptr ? (*input)[axis] : unknown_dim(context, 0, axis);
    }
    output.push_back(dim);
    if (inferred != axis) given.push_back(dim);
  }
  if (inferred && input != nullptr) {
    output[*inferred] = inferred_dim(context, *input, given);
  } else if (inferred) {
    output[*inferred] = unknown_dim(context, 0, *inferred);
  } else if (input != nullptr && is_known(*input) && is_known(output) &&
             product(*input) != product(output)) {
    context.fail("expected a shape with as many elements as " + text(*input) + ", found " +
                 text(output));
  }
  return output;
}

void infer_reshape(InferContext& context) {
  const Shape* input = context.shape(0);
  const auto wanted = dim_list(context, 1);
  if (!wanted) {
    const auto length = list_length(context, 1);
    return context.set_output(0, context.element(0),
                              length ? unknown_shape(context, 0, *length) : std::nullopt);
  }
  if (static_cast<int64_t>(wanted->size()) > kMaxDimensions) {
    context.fail_input(1, "expected at most " + std::to_string(kMaxDimensions) +
                              " dimensions, found " + std::to_string(wanted->size()));
  }
  const Shape output = reshaped(context, input, *wanted);
  context.set_output(0, context.element(0), output);
  if (const auto* elements = propagated_elements(context, 0)) context.set_elements(0, *elements);
}

}  // namespace

std::vector<Op> reshape_ops() {
  return {{.name = "Reshape",
           .versions = {5, 13, 14, 19, 21, 23, 24, 25},
           .inputs = {{"data", "T"}, {"shape", "tensor(int64)", Arity::Required, 5}},
           .outputs = {{"reshaped", "T"}},
           .type_variables = {{"T", kAllTypesAndStrings, small_types_since(19)},
                              {"tensor(int64)", kInt64Type}},
           .attributes = {{"allowzero", AttributeKind::Int, int64_t{0}, 14}},
           .traits = kView,
           .infer = infer_reshape,
           .flops = no_flops,
           .kernel = run_view}};
}

}  // namespace tessera::ops
