// HannWindow, HammingWindow and BlackmanWindow: sums of a constant and cosines.
#include <cmath>
#include <numbers>

#include "ops/convert_element.h"
#include "ops/onnx_types.h"
#include "ops/op.h"
#include "ops/signal/scalar_inputs.h"

namespace tessera::ops {
namespace {

void infer_signal_window(InferContext& context) {
  const DataType type = element_type_of(context, "output_datatype", kNumericTypes);
  const std::optional<Dim> size = scalar_dim(context, 0, 0);
  context.set_output(0, type, Shape{size.value_or(unknown_dim(context, 0, 0))});
}

// A window is constant - first * cos(t) + second * cos(2 t) with t = 2 pi index / length. The three
// coefficients add up to 1.
struct WindowTerms {
  double first = 0;
  double second = 0;

  // In a form that is exact in the middle, where the window is 1: integers are truncated.
  double at(double angle) const {
    const double one = 1 - first * (1 + std::cos(angle));
    return second == 0 ? one : one - second * (1 - std::cos(2 * angle));
  }
};

constexpr WindowTerms kHann = {0.5, 0};
constexpr WindowTerms kHamming = {21.0 / 46, 0};
constexpr WindowTerms kBlackman = {0.5, 0.08};

// The index runs from 0 to the length, which is 1 less than the size for symmetric windows. A
// symmetric window of one element is 0 / 0, as in ONNX's definition.
template <const WindowTerms& kTerms>
void run_signal_window(const KernelCall& call) {
  const MutableTensorView& output = call.outputs[0];
  const int64_t size = output.elements;
  const bool is_periodic = call.node.attributes.get_int("periodic") != 0;
  const auto length = static_cast<double>(is_periodic ? size : size - 1);
  visit_numeric(output.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* target = output.as<T>().data();
    call.pool.parallel_for(size, kElementGrain, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        const double angle = 2 * std::numbers::pi * (static_cast<double>(index) / length);
        target[index] = from_double<T>(kTerms.at(angle));
      }
    });
  });
}

Op signal_window_op(const char* name, ReferenceKernel kernel) {
  return {.name = name,
          .versions = {17},
          .inputs = {{"size", "T1"}},
          .outputs = {{"output", "T2"}},
          .type_variables = {{"T1", kIndexTypes}, {"T2", kNumericTypes}},
          .attributes = {{"output_datatype", AttributeKind::Int, int64_t{1}},
                         {"periodic", AttributeKind::Int, int64_t{1}}},
          .infer = infer_signal_window,
          .kernel = std::move(kernel)};
}

}  // namespace

std::vector<Op> hann_window_ops() {
  return {signal_window_op("HannWindow", run_signal_window<kHann>),
          signal_window_op("HammingWindow", run_signal_window<kHamming>),
          signal_window_op("BlackmanWindow", run_signal_window<kBlackman>)};
}

}  // namespace tessera::ops
