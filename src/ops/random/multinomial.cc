// Multinomial: indices of outcomes, drawn with the probabilities whose logarithms, up to a
// constant, each row of the input has.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory_resource>
#include <string>
#include <vector>

#include "ops/convert_element.h"
#include "ops/onnx_types.h"
#include "ops/op.h"
#include "ops/random/random_numbers.h"

namespace tessera::ops {
namespace {

void infer_multinomial(InferContext& context) {
  const DataType type = element_type_of(context, "dtype", kIndexTypes);
  const int64_t samples = context.node().attributes.get_int("sample_size");
  if (samples < 1) {
    context.fail("attribute 'sample_size': expected a number of at least 1, found " +
                 std::to_string(samples));
  }
  const Shape* shape = context.shape(0);
  context.set_output(0, type);
  if (shape == nullptr) return;
  if (shape->size() != 2 || (*shape)[1] == Dim(0)) {
    context.fail_input(0, "expected rows of at least one outcome, found shape " + text(*shape));
  }
  context.set_output(0, type, Shape{(*shape)[0], samples});
}

// The running sums of exp(x - max): a draw in [0, the last sum) belongs to the first larger sum.
// Outcomes of infinite log-probability share all draws, as in the limit.
template <class T>
void sum_weights(const KernelCall& call, const T* row, std::span<double> sums) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  double largest = -kInfinite;
  for (size_t index = 0; index < sums.size(); ++index) {
    const double value = to_double(row[index]);
    if (std::isnan(value)) call.fail("expected log-probabilities, found NaN");
    largest = std::max(largest, value);
  }
  if (largest == -kInfinite) {
    call.fail("expected an outcome that is possible in each row, found -infinity for all");
  }
  double sum = 0;
  for (size_t index = 0; index < sums.size(); ++index) {
    const double value = to_double(row[index]);
    sum += value == largest ? 1 : std::exp(value - largest);
    sums[index] = sum;
  }
}

void run_multinomial(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  const MutableTensorView& output = call.outputs[0];
  if (output.elements == 0) return;
  const uint64_t seed = float_seed(call.node);
  const int64_t outcomes = input.dims[1];
  const int64_t samples = output.dims[1];
  std::pmr::vector<double> sums(static_cast<size_t>(outcomes), &call.scratch);
  for (int64_t row = 0; row < input.dims[0]; ++row) {
    visit_floating(input.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      sum_weights(call, input.as<T>().data() + row * outcomes, sums);
    });
    const auto draw = [&](auto* target) {
      for (int64_t sample = row * samples; sample < (row + 1) * samples; ++sample) {
        const double drawn = uniform_number(seed, sample) * sums.back();
        const auto found = std::ranges::upper_bound(sums, drawn) - sums.begin();
        // A product that is rounded up reaches the end.
        const int64_t outcome = std::min<int64_t>(found, outcomes - 1);
        target[sample] = static_cast<std::remove_pointer_t<decltype(target)>>(outcome);
      }
    };
    if (output.type == DataType::Int32) {
      draw(output.as<int32_t>().data());
    } else {
      draw(output.as<int64_t>().data());
    }
  }
}

}  // namespace

std::vector<Op> multinomial_ops() {
  return {{.name = "Multinomial",
           .versions = {7, 22},
           .inputs = {{"input", "T1"}},
           .outputs = {{"output", "T2"}},
           .type_variables = {{"T1", kFloatTypes}, {"T2", kIndexTypes}},
           .attributes = {{"dtype", AttributeKind::Int, int64_t{6}},
                          {"sample_size", AttributeKind::Int, int64_t{1}},
                          {"seed", AttributeKind::Float, std::nullopt}},
           .traits = kRandom,
           .infer = infer_multinomial,
           .kernel = run_multinomial}};
}

}  // namespace tessera::ops
