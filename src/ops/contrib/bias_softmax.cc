// BiasSoftmax: softmax(data + bias) over all axes from `axis` on.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/compensated_sum.h"
#include "ops/contrib/contrib.h"
#include "ops/convert_element.h"
#include "ops/domains.h"

namespace tessera::ops {
namespace {

// The number of elements before and from `axis` on; nullopt if a dimension is unknown.
std::optional<int64_t> known_product(const Shape& shape, size_t begin, size_t end) {
  const Shape part(shape.begin() + static_cast<std::ptrdiff_t>(begin),
                   shape.begin() + static_cast<std::ptrdiff_t>(end));
  if (!is_known(part)) return std::nullopt;
  return element_count(dims_from(part));
}

void infer_bias_softmax(InferContext& context) {
  context.set_output(0, context.element(0), context.input(0).type.shape);
  const Shape* shape = context.shape(0);
  if (shape == nullptr) return;
  const auto axis = static_cast<size_t>(context.normalized_axis(
      context.node().attributes.get_int("axis"), static_cast<int64_t>(shape->size())));
  const auto rows = known_product(*shape, 0, axis);
  const auto columns = known_product(*shape, axis, shape->size());
  const Shape* bias = context.shape(1);
  if (!rows || !columns || bias == nullptr || !is_known(*bias)) return;
  const int64_t given = element_count(dims_from(*bias));
  const bool has_rows = *columns > 0 && given > 0 && given % *columns == 0;
  if (*rows != 0 && *columns != 0 && (!has_rows || *rows % (given / *columns) != 0)) {
    context.fail_input(1, "expected rows of " + std::to_string(*columns) + " elements, of which " +
                              std::to_string(*rows) + " is a multiple, found [" + text(*bias) +
                              "]");
  }
}

template <class T>
void biased_softmax_row(const T* input, const T* bias, T* output, int64_t length) {
  const auto biased = [&](int64_t index) {
    return to_double(input[index]) + to_double(bias[index]);
  };
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t index = 0; index < length; ++index) largest = std::max(largest, biased(index));
  CompensatedSum powers;
  for (int64_t index = 0; index < length; ++index) powers.add(std::exp(biased(index) - largest));
  for (int64_t index = 0; index < length; ++index) {
    output[index] = from_double<T>(std::exp(biased(index) - largest) / powers.value());
  }
}

void run_bias_softmax(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  if (input.elements == 0) return;
  int64_t axis = call.node.attributes.get_int("axis");
  if (axis < 0) axis += input.rank();
  const int64_t rows = element_count(input.dims.first(static_cast<size_t>(axis)));
  const int64_t columns = input.elements / rows;
  const int64_t bias_rows = call.inputs[1].elements / columns;
  // A row of the bias serves neighbouring rows of the data, or each of its rows one after another.
  const bool is_inner = call.node.attributes.get_int("is_inner_broadcast") != 0;
  const int64_t repeats = rows / bias_rows;
  visit_floating(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* source = input.as<T>().data();
    const T* bias = call.inputs[1].as<T>().data();
    T* target = call.outputs[0].as<T>().data();
    call.pool.parallel_for(rows, row_grain(8 * columns), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t bias_row = is_inner ? row / repeats : row % bias_rows;
        biased_softmax_row(source + row * columns, bias + bias_row * columns,
                           target + row * columns, columns);
      }
    });
  });
}

}  // namespace

std::vector<Op> bias_softmax_ops() {
  return {{.name = "BiasSoftmax",
           .domain = kMicrosoftDomain,
           .versions = {1},
           .inputs = {{"data", "T"}, {"bias", "T"}},
           .outputs = {{"output", "T"}},
           .type_variables = {{"T", kFloatTypes}},
           .attributes = {{"axis", AttributeKind::Int, int64_t{1}},
                          {"is_inner_broadcast", AttributeKind::Int, std::nullopt, 1, kAnyVersion,
                           true}},
           .infer = infer_bias_softmax,
           .kernel = run_bias_softmax}};
}

}  // namespace tessera::ops
