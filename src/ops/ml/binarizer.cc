// Binarizer: 1 for elements above a threshold, 0 for others.
// https://onnx.ai/onnx/operators/onnx_aionnxml_Binarizer.html
#include "ops/ml/feature_rows.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

void infer_binarizer(InferContext& context) {
  context.set_output(0, context.element(0), context.input(0).type.shape);
}

void run_binarizer(const KernelCall& call) {
  const double threshold = call.node.attributes.get_float("threshold");
  visit_feature(call.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const input = call.inputs[0].as<T>().data();
    T* const output = call.outputs[0].as<T>().data();
    call.pool.parallel_for(call.inputs[0].elements, kElementGrain, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        // A NaN is not greater than any number.
        output[index] = static_cast<double>(input[index]) > threshold ? T{1} : T{0};
      }
    });
  });
}

}  // namespace

std::vector<Op> binarizer_ops() {
  return {{.name = "Binarizer",
           .domain = "ai.onnx.ml",
           .versions = {1},
           .inputs = {{"X", "T"}},
           .outputs = {{"Y", "T"}},
           .type_variables = {{"T", kFeatureTypes}},
           .attributes = {{"threshold", AttributeKind::Float, 0.0F}},
           .infer = infer_binarizer,
           .kernel = run_binarizer}};
}

}  // namespace tessera::ops
