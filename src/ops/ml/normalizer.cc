// Normalizer: rows divided by their largest element, by the sum of magnitudes, or by their length.
// https://onnx.ai/onnx/operators/onnx_aionnxml_Normalizer.html
#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "ops/ml/feature_rows.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

constexpr std::string_view kNorms[] = {"MAX", "L1", "L2"};

void infer_normalizer(InferContext& context) {
  check_word(context, "norm", kNorms);
  row_count(context);
  context.set_output(0, DataType::Float32, context.input(0).type.shape);
}

template <class T>
double divisor_of(std::string_view norm, std::span<const T> row) {
  if (norm == "MAX") {
    double largest = -std::numeric_limits<double>::infinity();
    for (const T element : row) largest = std::max(largest, static_cast<double>(element));
    return largest;
  }
  double sum = 0;
  for (const T element : row) {
    const auto value = static_cast<double>(element);
    sum += norm == "L1" ? std::abs(value) : value * value;
  }
  return norm == "L1" ? sum : std::sqrt(sum);
}

void run_normalizer(const KernelCall& call) {
  const std::string_view norm = call.node.attributes.get_string("norm");
  const FeatureRows rows = feature_rows(call.inputs[0].dims);
  const auto features = static_cast<size_t>(rows.features);
  if (features == 0) return;
  visit_feature(call.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::span<const T> input = call.inputs[0].as<T>();
    const std::span<float> output = call.outputs[0].as<float>();
    const auto run = [&](int64_t begin, int64_t end) {
      for (auto row = static_cast<size_t>(begin); row < static_cast<size_t>(end); ++row) {
        const std::span<const T> from = input.subspan(row * features, features);
        double divisor = divisor_of(norm, from);
        if (divisor == 0) divisor = 1;
        std::ranges::transform(from, output.subspan(row * features).begin(), [&](T element) {
          return static_cast<float>(static_cast<double>(element) / divisor);
        });
      }
    };
    call.pool.parallel_for(rows.rows, std::max<int64_t>(1, kElementGrain / rows.features), run);
  });
}

}  // namespace

std::vector<Op> normalizer_ops() {
  return {{.name = "Normalizer",
           .domain = "ai.onnx.ml",
           .versions = {1},
           .inputs = {{"X", "T"}},
           .outputs = {{"Y", "tensor(float)"}},
           .type_variables = {{"T", kFeatureTypes}},
           .attributes = {{"norm", AttributeKind::String, std::string("MAX")}},
           .infer = infer_normalizer,
           .kernel = run_normalizer}};
}

}  // namespace tessera::ops
