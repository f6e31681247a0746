// FeatureVectorizer: joins the features of several inputs.
// https://onnx.ai/onnx/operators/onnx_aionnxml_FeatureVectorizer.html
#include <algorithm>
#include <limits>
#include <string>

#include "ops/ml/feature_rows.h"
#include "ops/op.h"
#include "ops/shape_rules.h"

namespace tessera::ops {
namespace {

// fail_input()s unless the rank is 1 or 2, if it is known.
void check_rank(const InferContext& context, size_t index) {
  const Shape* const shape = context.shape(index);
  if (shape == nullptr || shape->size() == 1 || shape->size() == 2) return;
  context.fail_input(index, "expected rows of features, of rank 2, or one row, of rank 1, found " +
                                text(context.input(index).type));
}

void infer_feature_vectorizer(InferContext& context) {
  const std::span<const int64_t> sizes = int_list(context.node(), "inputdimensions");
  if (sizes.size() != context.input_count()) {
    context.fail("attribute 'inputdimensions': expected a size for each of " +
                 std::to_string(context.input_count()) + " inputs, found " +
                 std::to_string(sizes.size()));
  }
  int64_t features = 0;
  for (const int64_t size : sizes) {
    if (size < 0 || size > std::numeric_limits<int32_t>::max() - features) {
      context.fail(
          "attribute 'inputdimensions': expected sizes of at least 0 that add up to less "
          "than 2147483648, found " +
          std::to_string(size));
    }
    features += size;
  }
  std::optional<Dim> rows;
  for (size_t index = 0; index < context.input_count(); ++index) {
    check_rank(context, index);
    const Shape* const shape = context.shape(index);
    if (shape == nullptr) continue;
    const Dim found = shape->size() == 1 ? Dim(1) : shape->front();
    if (rows && rows->is_known() && found.is_known() && *rows != found) {
      context.fail_input(index, "expected " + rows->text() +
                                    " rows, as an input before has, found " + found.text());
    }
    if (!rows || !rows->is_known()) rows = found;
  }
  context.set_output(0, DataType::Float32,
                     Shape{rows ? *rows : unknown_dim(context, 0, 0), Dim(features)});
}

// As in ONNX Runtime, further features of an input are left out, and missing ones are 0.
void copy_features(const TensorView& input, const MutableTensorView& output, int64_t at,
                   int64_t size) {
  const FeatureRows rows = feature_rows(input.dims);
  const int64_t copied = std::min(size, rows.features);
  visit_feature(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const source = static_cast<const T*>(input.data);
    for (int64_t row = 0; row < rows.rows; ++row) {
      float* const target = static_cast<float*>(output.data) + row * output.dims[1] + at;
      std::transform(source + row * rows.features, source + row * rows.features + copied, target,
                     [](T element) { return static_cast<float>(element); });
      std::fill(target + copied, target + size, 0.0F);
    }
  });
}

void run_feature_vectorizer(const KernelCall& call) {
  int64_t at = 0;
  for (size_t index = 0; index < call.inputs.size(); ++index) {
    const int64_t size = int_list(call.node, "inputdimensions")[index];
    copy_features(call.inputs[index], call.outputs[0], at, size);
    at += size;
  }
}

}  // namespace

std::vector<Op> feature_vectorizer_ops() {
  return {{.name = "FeatureVectorizer",
           .domain = "ai.onnx.ml",
           .versions = {1},
           .inputs = {{"X", "T1", Arity::Variadic}},
           .outputs = {{"Y", "tensor(float)"}},
           .type_variables = {{"T1", kFeatureTypes}},
           .attributes = {{"inputdimensions", AttributeKind::Ints}},
           .infer = infer_feature_vectorizer,
           .flops = no_flops,
           .kernel = run_feature_vectorizer}};
}

}  // namespace tessera::ops
