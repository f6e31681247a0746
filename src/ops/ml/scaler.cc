// Scaler: (X - offset) * scale, for each feature.
// https://onnx.ai/onnx/operators/onnx_aionnxml_Scaler.html
#include <string>

#include "ops/ml/feature_rows.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

void infer_scaler(InferContext& context) {
  const std::optional<Shape>& shape = context.input(0).type.shape;
  if (shape && shape->empty()) context.fail_input(0, "expected rows of features, found a scalar");
  for (const std::string attribute : {"offset", "scale"}) {
    const auto count = std::ssize(float_list(context.node(), attribute));
    if (count <= 1 || !shape || !shape->back().is_known()) continue;
    if (count != shape->back().value()) {
      context.fail("attribute '" + attribute + "': expected 1 number or " +
                   std::to_string(shape->back().value()) + ", one for each feature, found " +
                   std::to_string(count));
    }
  }
  context.set_output(0, DataType::Float32, shape);
}

// An attribute that is left out is `neutral`.
struct PerFeature {
  std::span<const float> numbers;
  double neutral = 0;

  double at(int64_t feature) const {
    if (numbers.empty()) return neutral;
    return numbers[numbers.size() == 1 ? 0 : static_cast<size_t>(feature)];
  }
};

void run_scaler(const KernelCall& call) {
  const PerFeature offsets = {float_list(call.node, "offset"), 0};
  const PerFeature scales = {float_list(call.node, "scale"), 1};
  const int64_t features = call.inputs[0].dims.back();
  float* const output = call.outputs[0].as<float>().data();
  visit_feature(call.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const input = call.inputs[0].as<T>().data();
    call.pool.parallel_for(call.inputs[0].elements, kElementGrain, [&](int64_t begin, int64_t end) {
      int64_t feature = begin % features;
      for (int64_t index = begin; index < end; ++index) {
        const double shifted = static_cast<double>(input[index]) - offsets.at(feature);
        output[index] = static_cast<float>(shifted * scales.at(feature));
        if (++feature == features) feature = 0;
      }
    });
  });
}

}  // namespace

std::vector<Op> scaler_ops() {
  return {{.name = "Scaler",
           .domain = "ai.onnx.ml",
           .versions = {1},
           .inputs = {{"X", "T"}},
           .outputs = {{"Y", "tensor(float)"}},
           .type_variables = {{"T", kFeatureTypes}},
           .attributes = {{"offset", AttributeKind::Floats}, {"scale", AttributeKind::Floats}},
           .infer = infer_scaler,
           .kernel = run_scaler}};
}

}  // namespace tessera::ops
