// Normalisations with what precedes them, those by the root of the mean square, and the loss of a
// softmax.
#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "ops/convert_elements.h"
#include "ops/domains.h"
#include "rewrite/lower_functions.h"

namespace tessera {
namespace {

constexpr int64_t kOnnxFloat = 1;  // TensorProto.FLOAT, for stash_type

// x / sqrt(mean(x^2) + epsilon) * scale over the axes from `axis` on, and the factor of x.
struct RootMeanSquare {
  ValueId result;
  ValueId inverse;
};

RootMeanSquare root_mean_square(NodeBuilder& builder, ValueId x, ValueId scale, float epsilon,
                                const std::vector<int64_t>& axes) {
  const ValueId squares = builder.add("Mul", {x, x});
  const ValueId mean = builder.add("ReduceMean", {squares, builder.integers(axes)});
  const ValueId shifted = builder.add("Add", {mean, builder.number(epsilon, mean)});
  const ValueId inverse = builder.add("Reciprocal", {builder.add("Sqrt", {shifted})});
  const ValueId normalised = builder.add("Mul", {x, inverse});
  return {builder.add("Mul", {normalised, scale}), inverse};
}

std::vector<int64_t> axes_from(int64_t axis, int64_t rank) {
  std::vector<int64_t> axes(static_cast<size_t>(rank - (axis < 0 ? axis + rank : axis)));
  std::iota(axes.begin(), axes.end(), axis < 0 ? axis + rank : axis);
  return axes;
}

// RMSNormalization, and ONNX Runtime's SimplifiedLayerNormalization, which has a second output.
bool write_rms_normalization(NodeBuilder& builder) {
  const DataType element = builder.element_of(builder.input(1));
  const int64_t rank = builder.rank_of(builder.input(0));
  const int64_t axis = builder.replaced().attributes.get_int("axis");
  if (rank < 1 || axis < -rank || axis >= rank) return false;
  const ValueId x = widened(builder, builder.input(0));
  const ValueId scale = widened(builder, builder.input(1));
  if (builder.element_of(x) != builder.element_of(scale)) return false;
  const float epsilon = builder.replaced().attributes.get_float("epsilon");
  const RootMeanSquare made = root_mean_square(builder, x, scale, epsilon, axes_from(axis, rank));
  if (builder.has_output(1)) {
    const DataType inverse = builder.type_of(builder.replaced().outputs[1]).element;
    give_as(builder, 1, made.inverse, inverse);
  }
  give_as(builder, 0, made.result, element);
  return true;
}

// The sum of the input, the skipped one and the bias at `bias`, if there is one.
ValueId skip_sum(NodeBuilder& builder, size_t bias) {
  ValueId sum =
      builder.add("Add", {widened(builder, builder.input(0)), widened(builder, builder.input(1))});
  if (builder.has_input(bias)) {
    sum = builder.add("Add", {sum, widened(builder, builder.input(bias))});
  }
  return sum;
}

bool write_skip_layer_normalization(NodeBuilder& builder) {
  if (builder.has_output(1) || builder.has_output(2)) return false;
  const DataType element = builder.element_of(builder.input(0));
  const ValueId sum = skip_sum(builder, 4);
  std::vector<ValueId> inputs = {sum, widened(builder, builder.input(2))};
  if (builder.has_input(3)) inputs.push_back(widened(builder, builder.input(3)));
  const float epsilon = builder.replaced().attributes.get_float("epsilon");
  const ValueId result = builder.add(
      "LayerNormalization", inputs,
      attribute_list({{"axis", int64_t{-1}}, {"epsilon", epsilon}, {"stash_type", kOnnxFloat}}));
  give_as(builder, 3, sum, element);
  give_as(builder, 0, result, element);
  return true;
}

bool write_skip_simplified(NodeBuilder& builder) {
  const int64_t rank = builder.rank_of(builder.input(0));
  if (rank < 1 || builder.has_output(1) || builder.has_output(2)) return false;
  const DataType element = builder.element_of(builder.input(0));
  const ValueId sum = skip_sum(builder, 3);
  const float epsilon = builder.replaced().attributes.get_float("epsilon");
  const RootMeanSquare made = root_mean_square(builder, sum, widened(builder, builder.input(2)),
                                               epsilon, axes_from(-1, rank));
  give_as(builder, 3, sum, element);
  give_as(builder, 0, made.result, element);
  return true;
}

// Output 1: how many words of each sequence the mask keeps; 0 if there is none.
void give_word_counts(NodeBuilder& builder) {
  constexpr int64_t kOnnxInt32 = 6;
  constexpr size_t kMask = 7;
  ValueId is_kept;
  if (builder.has_input(kMask)) {
    const ValueId mask = builder.input(kMask);
    is_kept = builder.add("Equal", {mask, builder.number(1, mask)});
  } else {
    const ValueId ids = builder.input(0);
    is_kept = builder.add("Less", {ids, ids});
  }
  const ValueId ones = builder.add("Cast", {is_kept}, attribute_list({{"to", kOnnxInt32}}));
  builder.give(1, builder.add("ReduceSum", {ones, builder.integers({1})},
                              attribute_list({{"keepdims", int64_t{0}}})));
}

// The sum of the embeddings, normalised. The position of a word is its column.
bool write_embed_layer_normalization(NodeBuilder& builder) {
  if (builder.rank_of(builder.input(0)) != 2) return false;
  const DataType element = builder.element_of(builder.input(2));
  ValueId sum = widened(builder, builder.add("Gather", {builder.input(2), builder.input(0)}));
  if (builder.has_input(8)) {
    const ValueId found = builder.add("Gather", {builder.input(3), builder.input(8)});
    sum = builder.add("Add", {sum, widened(builder, found)});
  } else {
    const ValueId length =
        builder.add("Shape", {builder.input(0)}, attribute_list({{"start", int64_t{1}}}));
    const ValueId found = builder.add(
        "Slice", {builder.input(3), builder.integers({0}), length, builder.integers({0})});
    sum = builder.add("Add", {sum, widened(builder, found)});
  }
  if (builder.has_input(4) && builder.has_input(1)) {
    const ValueId found = builder.add("Gather", {builder.input(4), builder.input(1)});
    sum = builder.add("Add", {sum, widened(builder, found)});
  }
  const float epsilon = builder.replaced().attributes.get_float("epsilon");
  const ValueId result = builder.add(
      "LayerNormalization",
      {sum, widened(builder, builder.input(5)), widened(builder, builder.input(6))},
      attribute_list({{"axis", int64_t{-1}}, {"epsilon", epsilon}, {"stash_type", kOnnxFloat}}));
  if (builder.has_output(1)) give_word_counts(builder);
  give_as(builder, 2, sum, element);
  give_as(builder, 0, result, element);
  return true;
}

// `x` divided by its norm; 0 where the norm is 0.
bool write_lp_normalization(NodeBuilder& builder) {
  const DataType element = builder.element_of(builder.input(0));
  const int64_t rank = builder.rank_of(builder.input(0));
  const int64_t axis = builder.replaced().attributes.get_int("axis");
  if (rank < 1 || axis < -rank || axis >= rank) return false;
  const ValueId x = widened(builder, builder.input(0));
  const char* reduction = builder.replaced().attributes.get_int("p") == 1 ? "ReduceL1" : "ReduceL2";
  const ValueId norm = builder.add(reduction, {x, builder.integers({axis})});
  const ValueId is_zero = builder.add("Equal", {norm, builder.number(0, norm)});
  const ValueId divisor = builder.add("Where", {is_zero, builder.number(1, norm), norm});
  give_as(builder, 0, builder.add("Div", {x, divisor}), element);
  return true;
}

bool write_mean_variance_normalization(NodeBuilder& builder) {
  constexpr double kDeviationOffset = 1e-9;
  const DataType element = builder.element_of(builder.input(0));
  const int64_t rank = builder.rank_of(builder.input(0));
  if (rank < 1) return false;
  const ValueId x = widened(builder, builder.input(0));
  std::vector<int64_t> axes = builder.replaced().attributes.get_ints("axes");
  if (axes.empty()) axes = axes_from(0, rank);
  const ValueId mean = builder.add("ReduceMean", {x, builder.integers(axes)});
  const ValueId centered = builder.add("Sub", {x, mean});
  const ValueId squares = builder.add("Mul", {centered, centered});
  const ValueId variance = builder.add("ReduceMean", {squares, builder.integers(axes)});
  const ValueId deviation = builder.add("Sqrt", {variance});
  const ValueId divisor =
      builder.add("Add", {deviation, builder.number(kDeviationOffset, deviation)});
  give_as(builder, 0, builder.add("Div", {centered, divisor}), element);
  return true;
}

bool write_global_lp_pool(NodeBuilder& builder) {
  const DataType element = builder.element_of(builder.input(0));
  const int64_t rank = builder.rank_of(builder.input(0));
  const int64_t p = builder.replaced().attributes.get_int("p");
  if (rank < 3 || p < 1 || p > 2) return false;
  const ValueId x = widened(builder, builder.input(0));
  give_as(builder, 0,
          builder.add(p == 1 ? "ReduceL1" : "ReduceL2", {x, builder.integers(axes_from(2, rank))}),
          element);
  return true;
}

// 1 at the position of the largest element. Before version 13, all axes from `axis` on are one.
bool write_hardmax(NodeBuilder& builder) {
  constexpr int kFirstOneAxisVersion = 13;
  const Type type = builder.type_of(builder.input(0));
  const int64_t rank = builder.rank_of(builder.input(0));
  const int64_t given = builder.replaced().attributes.get_int("axis");
  const int64_t axis = given < 0 ? given + rank : given;
  if (builder.replaced().version < kFirstOneAxisVersion || axis < 0 || axis >= rank) return false;
  const Dim length = (*type.shape)[static_cast<size_t>(axis)];
  if (!length.is_known() || length.value() < 1) return false;
  const ValueId position = builder.add("ArgMax", {builder.input(0)},
                                       attribute_list({{"axis", axis}, {"keepdims", int64_t{0}}}));
  Tensor values(type.element, {2});
  const std::array<float, 2> numbers = {0, 1};
  ops::convert_elements(DataType::Float32, numbers.data(), type.element, values.mutable_data(), 2);
  builder.give(0, builder.add("OneHot",
                              {position, builder.integers({length.value()}),
                               builder.constant(std::move(values))},
                              attribute_list({{"axis", axis}})));
  return true;
}

// The loss of the logarithms of probabilities. A sum of losses near 0 would add up their errors.
bool write_softmax_cross_entropy(NodeBuilder& builder) {
  const Attributes& attributes = builder.replaced().attributes;
  const std::string& reduction = attributes.get_string("reduction");
  if (reduction == "sum" || builder.rank_of(builder.input(0)) < 2) return false;
  const DataType element = builder.element_of(builder.input(0));
  if (element == DataType::Float64) return false;
  const ValueId logs = builder.add("LogSoftmax", {widened(builder, builder.input(0))},
                                   attribute_list({{"axis", int64_t{1}}}));
  std::vector<ValueId> inputs = {logs, builder.input(1)};
  if (builder.has_input(2)) inputs.push_back(widened(builder, builder.input(2)));
  Attributes loss = attribute_list({{"reduction", reduction}});
  if (const int64_t* ignored = attributes.find_int("ignore_index")) {
    loss.set("ignore_index", *ignored);
  }
  give_as(builder, 0, builder.add("NegativeLogLikelihoodLoss", inputs, std::move(loss)), element);
  give_as(builder, 1, logs, element);
  return true;
}

constexpr FunctionLowering kNormalizationLowerings[] = {
    {"", "GlobalLpPool", write_global_lp_pool},
    {"", "Hardmax", write_hardmax},
    {"", "LpNormalization", write_lp_normalization},
    {"", "MeanVarianceNormalization", write_mean_variance_normalization},
    {"", "RMSNormalization", write_rms_normalization},
    {"", "SimplifiedLayerNormalization", write_rms_normalization},
    {"", "SoftmaxCrossEntropyLoss", write_softmax_cross_entropy},
    {ops::kMicrosoftDomain, "SkipLayerNormalization", write_skip_layer_normalization},
    {ops::kMicrosoftDomain, "SkipSimplifiedLayerNormalization", write_skip_simplified},
    {ops::kMicrosoftDomain, "EmbedLayerNormalization", write_embed_layer_normalization},
};

}  // namespace

std::span<const FunctionLowering> normalization_lowerings() { return kNormalizationLowerings; }

}  // namespace tessera
