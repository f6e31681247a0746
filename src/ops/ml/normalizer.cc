// Normalizer: rows divided by their largest element, by the sum of magnitudes, or by their length.
// https://onnx.ai/onnx/operators/onnx_aionnxml_Normalizer.html
#include <algorithm>
#include <array>
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

// Combines the elements of a row in lanes, so that the loop is vectorised.
template <class Number>
using NormLanes = std::array<Number, 8>;

template <class Number, class T, class Combine>
NormLanes<Number> combine_in_lanes(std::span<const T> row, Number start, const Combine& combine) {
  NormLanes<Number> lanes;
  lanes.fill(start);
  size_t at = 0;
  for (; at + lanes.size() <= row.size(); at += lanes.size()) {
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      lanes[lane] = combine(lanes[lane], row[at + lane]);
    }
  }
  for (; at < row.size(); ++at) lanes[0] = combine(lanes[0], row[at]);
  return lanes;
}

// A NaN is not larger than any number.
template <class T>
double largest_of(std::span<const T> row) {
  using Limits = std::numeric_limits<T>;
  const T lowest = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  return static_cast<double>(std::ranges::max(combine_in_lanes(
      row, lowest, [](T largest, T element) { return std::max(largest, element); })));
}

template <class T>
double divisor_of(std::string_view norm, std::span<const T> row) {
  if (norm == "MAX") return largest_of(row);
  const bool is_l1 = norm == "L1";
  const auto add = [](double sum, T element) {
    return sum + std::abs(static_cast<double>(element));
  };
  const auto add_square = [](double sum, T element) {
    const auto value = static_cast<double>(element);
    return sum + value * value;
  };
  double sum = 0;
  for (const double lane :
       is_l1 ? combine_in_lanes(row, 0.0, add) : combine_in_lanes(row, 0.0, add_square)) {
    sum += lane;
  }
  return is_l1 ? sum : std::sqrt(sum);
}

template <class T>
void divide_row(std::span<const T> from, double divisor, float* to) {
  const double inverse = 1 / divisor;
  // Both ways round to the same float32, except about one in 2^28 numbers.
  if (std::isnormal(inverse)) {
    std::ranges::transform(from, to, [=](T element) {
      return static_cast<float>(static_cast<double>(element) * inverse);
    });
  } else {
    std::ranges::transform(from, to, [=](T element) {
      return static_cast<float>(static_cast<double>(element) / divisor);
    });
  }
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
        const double divisor = divisor_of(norm, from);
        divide_row(from, divisor == 0 ? 1 : divisor, output.data() + row * features);
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
